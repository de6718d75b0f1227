package macro

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"nodest/internal/sharedtest"
)

// macroCase is the input of a vector of macros.json, as the README of the folder explains it.
type macroCase struct {
	Text      textOrTexts
	User      *string
	Character *struct {
		Name, Description, Personality, Scenario string
		FirstMes                                 string   `json:"first_mes"`
		MesExample                               string   `json:"mes_example"`
		SystemPrompt                             string   `json:"system_prompt"`
		PostHistory                              string   `json:"post_history_instructions"`
		CreatorNotes                             string   `json:"creator_notes"`
		Version                                  string   `json:"character_version"`
		Alternates                               []string `json:"alternate_greetings"`
		Extensions                               struct {
			DepthPrompt struct{ Prompt string } `json:"depth_prompt"`
		}
	}
	Persona struct{ Description string }
	Chat    []struct {
		IsUser   bool `json:"is_user"`
		IsSystem bool `json:"is_system"`
		Mes      string
		SendDate string `json:"send_date"`
		Swipes   []string
		SwipeID  int `json:"swipe_id"`
	}
	Options struct {
		Original                                    *string
		Name1Override, Name2Override, GroupOverride string
		DynamicMacros                               map[string]string
		ReplaceCharacterCard                        *bool
	}
	Textarea        string
	Variables       map[string]any
	GlobalVariables map[string]any `json:"global_variables"`
	Legacy          bool           `json:"legacy_macros"`
	Rolls           []float64
}

type textOrTexts struct {
	list []string
	one  bool
}

func (t *textOrTexts) UnmarshalJSON(data []byte) error {
	if t.one = data[0] == '"'; t.one {
		t.list = make([]string, 1)
		return json.Unmarshal(data, &t.list[0])
	}
	return json.Unmarshal(data, &t.list)
}

func (in *macroCase) env(t *testing.T) *Env {
	t.Helper()
	now := time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC)
	e := &Env{
		Names: People{User: "Bob", Char: "Alice", Group: in.Options.GroupOverride}, Now: now, Input: in.Textarea,
		Card:  Card{Persona: in.Persona.Description},
		Local: NewVars(in.Variables), Global: NewVars(in.GlobalVariables), Extra: map[string]string{},
		Model: Model{MaxContext: 4095, MaxReply: 300}, // values of a preset without these fields
	}
	if in.User != nil {
		e.Names.User = *in.User
	}
	if c := in.Character; c != nil {
		e.Names.Char = cmp.Or(c.Name, "Alice")
		e.Card.Description, e.Card.Personality, e.Card.Scenario = c.Description, c.Personality, c.Scenario
		e.Card.MesExamples, e.Card.CharPrompt, e.Card.CharInstruction = c.MesExample, c.SystemPrompt, c.PostHistory
		e.Card.CreatorNotes, e.Card.Version, e.Card.DepthPrompt = c.CreatorNotes, c.Version, c.Extensions.DepthPrompt.Prompt
		e.Card.Greetings = append([]string{c.FirstMes}, c.Alternates...)
	}
	if with := in.Options.ReplaceCharacterCard; with != nil && !*with {
		e.Card = Card{}
	}
	if rolls := in.Rolls; len(rolls) > 0 {
		drawn := 0
		e.Rand = func() float64 { drawn++; return rolls[(drawn-1)%len(rolls)] }
	}
	if in.Options.Name1Override != "" {
		e.Names.User = in.Options.Name1Override
	}
	if in.Options.Name2Override != "" {
		e.Names.Char = in.Options.Name2Override
	}
	for name, value := range in.Options.DynamicMacros {
		e.Extra[strings.ToLower(name)] = value
	}
	for _, m := range in.Chat {
		at, _ := time.Parse(time.RFC3339, m.SendDate)
		e.Chat.Messages = append(e.Chat.Messages, Message{
			User: m.IsUser, Hidden: m.IsSystem, Text: m.Mes, At: at, Swipes: len(m.Swipes), Swipe: m.SwipeID,
		})
	}
	if in.Options.Original != nil {
		e = e.WithOriginal(*in.Options.Original)
	}
	return e
}

func TestGoldenMacros(t *testing.T) {
	type output struct {
		Text            textOrTexts
		Variables       map[string]any
		GlobalVariables map[string]any `json:"global_variables"`
	}
	sharedtest.Replay(t, "sillytavern/macros.json", func(t *testing.T, v sharedtest.Vector[macroCase, output]) {
		switch {
		case v.Input.Legacy:
			t.Skip("SillyTavern's old engine, optional for a product")
		case strings.HasPrefix(v.Name, "macro/instruct-off"):
			t.Skip("depends on settings of SillyTavern, as the README says")
		}
		e := v.Input.env(t)
		for i, text := range v.Input.Text.list {
			if got := e.Expand(text); got != v.Output.Text.list[i] {
				t.Errorf("%q:\ngot  %q\nwant %q", text, got, v.Output.Text.list[i])
			}
		}
		if got := e.Local.All(); v.Output.Variables != nil && !reflect.DeepEqual(got, v.Output.Variables) {
			t.Errorf("variables %v, want %v", got, v.Output.Variables)
		}
		if got := e.Global.All(); v.Output.GlobalVariables != nil && !reflect.DeepEqual(got, v.Output.GlobalVariables) {
			t.Errorf("global variables %v, want %v", got, v.Output.GlobalVariables)
		}
	})
}
