package tavern

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/internal/sharedtest"
	"nodest/llm"
)

// turnInput is the input of a vector of prompt.json.
type turnInput struct {
	User      *string
	Character json.RawMessage
	Chat      []chatLine
	Persona   struct {
		Description string
		Position    framework.PersonaPosition
		Depth       *int
		Role        int
	}
	Note *struct {
		Prompt   string
		Position *NotePosition
		Depth    *int
		Role     int
		Interval *int
		Scan     bool `json:"allow_wi_scan"`
	} `json:"authors_note"`
	Books   map[string]json.RawMessage
	Global  []string                   `json:"global_books"`
	World   map[string]json.RawMessage `json:"wi_settings"`
	Scripts json.RawMessage            `json:"regex_scripts"`

	Type         string
	Preset       json.RawMessage
	Pin          bool  `json:"pin_examples"`
	PreferPrompt *bool `json:"prefer_character_prompt"`
	DryRun       bool  `json:"dry_run"`
}

type chatLine struct {
	Name     string
	IsUser   bool `json:"is_user"`
	IsSystem bool `json:"is_system"`
	Mes      string
	Extra    struct{ Type string }
}

type turnOutput struct {
	Messages []struct{ Role, Name, Content string }
	Counts   []int `json:"token_counts"`
}

func or[T any](value *T, missing T) T {
	if value == nil {
		return missing
	}
	return *value
}

// stockPreset is SillyTavern's own, which vectors without a preset were recorded with.
const stockPreset = `{"prompts":[
	{"name":"Main Prompt","system_prompt":true,"role":"system","content":"Write {{char}}'s next reply in a fictional chat between {{char}} and {{user}}.","identifier":"main"},
	{"name":"Auxiliary Prompt","system_prompt":true,"role":"system","content":"","identifier":"nsfw"},
	{"name":"Post-History Instructions","system_prompt":true,"role":"system","content":"","identifier":"jailbreak"}
]}`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sources are the documents of a vector.
func (v *turnInput) sources(t *testing.T) Sources {
	character := map[string]json.RawMessage{}
	must(t, json.Unmarshal(v.Character, &character))
	for key, missing := range map[string]string{"name": `"Alice"`, "first_mes": `""`} {
		if character[key] == nil {
			character[key] = json.RawMessage(missing)
		}
	}
	data, err := json.Marshal(map[string]any{"spec": "chara_card_v2", "data": character})
	must(t, err)
	role, err := card.ParseRoleCard(data)
	must(t, err)
	if v.Preset == nil {
		v.Preset = json.RawMessage(stockPreset)
	}
	preset, err := card.ParsePreset(v.Preset)
	must(t, err)
	if v.DryRun { // SillyTavern does not join messages then
		preset.Behaviour.Squash = false
	}
	s := Sources{Card: role, Preset: &preset, CardFields: framework.ListedFields}
	for _, name := range slices.Sorted(maps.Keys(v.Books)) {
		book, err := card.ParseWorldBook(v.Books[name], card.SillyTavern)
		must(t, err)
		origin := worldinfo.OfCharacter
		if slices.Contains(v.Global, name) {
			origin = worldinfo.Global
		}
		s.Books = append(s.Books, worldinfo.Source{Name: name, Origin: origin, Entries: book.Entries})
	}
	return s
}

// play is what Build needs of a vector besides the input.
func (v *turnInput) play(t *testing.T, s Sources) Play {
	play := Play{
		Compiled: Compile(s), Trigger: Trigger(v.Type), Names: true,
		State:    State{Variables: macro.NewVars(nil)},
		Settings: Settings{PinExamples: v.Pin, IgnoreSystemPrompt: !or(v.PreferPrompt, true)},
		Rand:     func() float64 { return 0 },
	}
	if n := v.Note; n != nil {
		play.Note = &Note{
			Text: n.Prompt, Position: or(n.Position, InChat), Depth: or(n.Depth, 4), Role: roleOfNumber(n.Role), Interval: or(n.Interval, 1), Scan: n.Scan,
		}
	}
	world := worldinfo.Settings{Depth: 2, BudgetPercent: 25, IncludeNames: true, Strategy: worldinfo.CharacterFirst}
	for key, value := range v.World {
		switch key {
		case "depth":
			must(t, json.Unmarshal(value, &world.Depth))
		case "recursive":
			must(t, json.Unmarshal(value, &world.Recursive))
		default:
			t.Fatalf("unknown setting %s", key)
		}
	}
	play.WorldInfo = &world
	return play
}

// input is the input of Build.
func (v *turnInput) input(t *testing.T, s Sources) *framework.Input {
	in := &framework.Input{}
	if v.Type == "continue" {
		in.Instruction = &framework.Instruction{Task: llm.Continue}
	}
	scripts, err := card.ParseRegexScripts(v.Scripts)
	must(t, err)
	user := or(v.User, "Bob")
	in.Persona = framework.Persona{
		Name: user, Description: v.Persona.Description,
		Place: framework.PersonaPlace{Position: v.Persona.Position, Depth: or(v.Persona.Depth, 2), Role: roleOfNumber(v.Persona.Role)},
	}
	in.Scripts = framework.CompileScripts(card.SillyTavern, scripts).Run(nil)
	for _, m := range v.Chat {
		if m.IsSystem {
			continue
		}
		said := framework.Message{Role: "assistant", Name: cmp.Or(m.Name, s.Card.Name), Text: m.Mes}
		switch {
		case m.Extra.Type == "narrator":
			said.Role = framework.RoleNarrator
		case m.IsUser:
			said.Role, said.Name = "user", user
		}
		in.History = append(in.History, said)
	}
	limits := struct {
		Context int `json:"openai_max_context"`
		Reply   int `json:"openai_max_tokens"`
	}{16384, 300}
	must(t, json.Unmarshal(v.Preset, &limits))
	in.Options.Tokenizer, in.Options.Context, in.Options.Reserve = "o200k_base", limits.Context, limits.Reply
	return in
}

// countAsThere counts as SillyTavern does for gpt-4o.
func countAsThere(m llm.Message) int {
	n := framework.CountTokens("o200k_base", m.Text) + 5
	if m.Name != "" {
		n += framework.CountTokens("o200k_base", m.Name) + 1
	}
	return n
}

func TestGoldenPrompt(t *testing.T) {
	sharedtest.Replay(t, "sillytavern/prompt.json", func(t *testing.T, v sharedtest.Vector[turnInput, turnOutput]) {
		s := v.Input.sources(t)
		play := v.Input.play(t, s)
		play.Count = countAsThere
		p, _, err := Build(t.Context(), v.Input.input(t, s), &play)
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, p)
		for i, m := range v.Output.Messages {
			want := llm.Message{Role: llm.Role(m.Role), Name: m.Name, Text: m.Content}
			if i >= len(p.Messages) {
				t.Errorf("message %d is missing: %s %q", i, m.Role, m.Content)
				continue
			}
			if got := p.Messages[i]; got.Role != want.Role || got.Name != want.Name || got.Text != want.Text {
				t.Errorf("message %d:\n got %s %s %q\nwant %s %s %q", i, got.Role, got.Name, got.Text, want.Role, want.Name, want.Text)
			}
			if v.Output.Counts != nil && countAsThere(want)+2 != v.Output.Counts[i] {
				t.Errorf("message %d has %d tokens, not %d", i, v.Output.Counts[i], countAsThere(want)+2)
			}
		}
		for _, m := range p.Messages[min(len(v.Output.Messages), len(p.Messages)):] {
			t.Errorf("too much: %s %q", m.Role, m.Text)
		}
	})
}
