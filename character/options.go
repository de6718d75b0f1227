package character

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/op"
)

// Limits of the lists and words in TurnOptions.
const (
	maxStops    = 16
	maxStopSize = 200 // code points
	maxNameSize = 256 // code points of the name of a provider or model
)

// Validate checks the ranges; path is the place of o in the request
// ("options", "settings", "" for the top level). One error reports all
// invalid fields.
func (o TurnOptions) Validate(path string) error {
	c := &op.Checks{Path: path}
	op.Between(c, "temperature", o.Temperature, 0, 2)
	op.Between(c, "topP", o.TopP, 0, 1)
	op.Between(c, "maxTokens", o.MaxTokens, 1, 1_000_000)
	op.Between(c, "contextTokens", o.ContextTokens, 512, 10_000_000)
	for _, f := range []struct{ field, name string }{{"provider", o.Provider}, {"model", o.Model}} {
		c.That(!strings.ContainsFunc(f.name, unicode.IsControl), f.field, "encoding", "must not contain control characters")
		c.That(utf8.RuneCountInString(f.name) <= maxNameSize, f.field, "range", "must have at most %d characters", maxNameSize)
	}
	c.That(len(o.Stop) <= maxStops, "stop", "range", "must have at most %d texts", maxStops)
	for i, s := range o.Stop {
		n := utf8.RuneCountInString(s)
		c.That(n >= 1 && n <= maxStopSize, fmt.Sprintf("stop[%d]", i), "range", "must have 1 to %d characters", maxStopSize)
	}
	return c.Err()
}

// Over returns o with what it leaves open taken from base. A model belongs to
// its provider: who names another provider does not get base's model.
func (o TurnOptions) Over(base TurnOptions) TurnOptions {
	if o.Provider == "" || o.Provider == base.Provider {
		o.Model = cmp.Or(o.Model, base.Model)
	}
	o.Provider = cmp.Or(o.Provider, base.Provider)
	o.CharacterID = cmp.Or(o.CharacterID, base.CharacterID)
	o.Temperature = cmp.Or(o.Temperature, base.Temperature)
	o.TopP = cmp.Or(o.TopP, base.TopP)
	o.MaxTokens = cmp.Or(o.MaxTokens, base.MaxTokens)
	o.ContextTokens = cmp.Or(o.ContextTokens, base.ContextTokens)
	o.UseToolCalls = cmp.Or(o.UseToolCalls, base.UseToolCalls)
	o.SearchEnabled = cmp.Or(o.SearchEnabled, base.SearchEnabled)
	o.Memory = cmp.Or(o.Memory, base.Memory)
	if o.Stop == nil {
		o.Stop = slices.Clone(base.Stop)
	}
	return o
}
