package nodest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/fault"
)

// Limits of the lists and words in TurnOptions.
const (
	maxStops    = 16
	maxStopSize = 200 // code points
	maxNameSize = 256 // of a provider or model, code points
)

// Validate checks the ranges; path is the place of o in the request
// ("options", "settings", "" for the top level). All invalid fields are told
// in one error.
func (o TurnOptions) Validate(path string) error {
	v := &invalid{path: path}
	v.float("temperature", o.Temperature, 0, 2)
	v.float("topP", o.TopP, 0, 1)
	v.int("maxTokens", o.MaxTokens, 1, 1_000_000)
	v.int("contextTokens", o.ContextTokens, 512, 10_000_000)
	v.word("provider", o.Provider, maxNameSize)
	v.word("model", o.Model, maxNameSize)
	if len(o.Stop) > maxStops {
		v.add("stop", "range", "must have at most %d texts", maxStops)
	}
	for i, s := range o.Stop {
		if n := utf8.RuneCountInString(s); n < 1 || n > maxStopSize {
			v.add(fmt.Sprintf("stop[%d]", i), "range", "must have 1 to %d characters", maxStopSize)
		}
	}
	return v.err()
}

// invalid collects the fields of a request that cannot be used.
type invalid struct {
	path   string
	fields []fault.Field
}

func (v *invalid) add(field, code, format string, args ...any) {
	if v.path != "" {
		field = v.path + "." + field
	}
	v.fields = append(v.fields, fault.Field{Field: field, Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (v *invalid) float(field string, x *float64, low, high float64) {
	if x != nil && !(*x >= low && *x <= high) { // also refuses NaN
		v.add(field, "range", "must be from %g to %g", low, high)
	}
}

func (v *invalid) int(field string, x *int, low, high int) {
	if x != nil && (*x < low || *x > high) {
		v.add(field, "range", "must be from %d to %d", low, high)
	}
}

func (v *invalid) word(field, s string, high int) {
	if strings.ContainsFunc(s, unicode.IsControl) {
		v.add(field, "encoding", "must not contain control characters")
	}
	if utf8.RuneCountInString(s) > high {
		v.add(field, "range", "must have at most %d characters", high)
	}
}

func (v *invalid) err() error {
	if len(v.fields) == 0 {
		return nil
	}
	e := fault.New(fault.Invalid, "%s: %s", v.fields[0].Field, v.fields[0].Detail)
	e.Fields = v.fields
	return e
}

// over returns o with what it leaves open taken from base. A model belongs to
// its provider: who names another provider does not get base's model.
func (o TurnOptions) over(base TurnOptions) TurnOptions {
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
