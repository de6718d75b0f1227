package tavern

import (
	"cmp"
	"encoding/json"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo/worldinfotest"
	"nodest/internal/sharedtest"
	"nodest/llm"
)

// turnInput is the input of a vector of prompt.json.
type turnInput struct {
	worldinfotest.Books
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
	Metadata struct {
		Scenario     string
		SystemPrompt string `json:"system_prompt"`
		MesExample   string `json:"mes_example"`
		Variables    map[string]any
	} `json:"chat_metadata"`
	Scripts     json.RawMessage `json:"regex_scripts"`
	AllowScoped bool            `json:"allow_scoped_regex"`
	Variables   map[string]any
	Globals     map[string]any `json:"global_variables"`

	Type            string
	Preset          json.RawMessage
	Pin             bool  `json:"pin_examples"`
	PreferPrompt    *bool `json:"prefer_character_prompt"`
	PreferJailbreak *bool `json:"prefer_character_jailbreak"`
	DryRun          bool  `json:"dry_run"`
	Options         struct {
		Quiet string `json:"quiet_prompt"`
	} `json:"generate_options"`
}

// UnmarshalJSON reads the members; Books reads its own from the same object.
func (v *turnInput) UnmarshalJSON(data []byte) error {
	type own turnInput
	if err := json.Unmarshal(data, (*own)(v)); err != nil {
		return err
	}
	return json.Unmarshal(data, &v.Books)
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
	return Sources{Card: role, Preset: &preset, CardFields: framework.ListedFields, Books: v.Sources(t)}
}

// play is what Build needs of a vector besides the input.
func (v *turnInput) play(t *testing.T, s Sources) Play {
	info := v.Rules(t)
	play := Play{
		Compiled: Compile(s), Trigger: Trigger(v.Type), Names: true, WorldInfo: &info, Rand: v.Roll(new(int)),
		State:     State{Variables: macro.NewVars(v.variables())},
		Globals:   macro.NewVars(v.Globals),
		Settings:  Settings{PinExamples: v.Pin, IgnoreSystemPrompt: !or(v.PreferPrompt, true), IgnorePostHistory: !or(v.PreferJailbreak, true)},
		Overrides: Overrides{Scenario: v.Metadata.Scenario, SystemPrompt: v.Metadata.SystemPrompt, MesExample: v.Metadata.MesExample},
	}
	if n := v.Note; n != nil {
		play.Note = &Note{
			Text: n.Prompt, Position: or(n.Position, InChat), Depth: or(n.Depth, 4), Role: roleOfNumber(n.Role), Interval: or(n.Interval, 1), Scan: n.Scan,
		}
	}
	return play
}

// input is the input of Build.
func (v *turnInput) input(t *testing.T, s Sources) *framework.Input {
	in := &framework.Input{}
	switch Trigger(v.Type) {
	case Continue:
		in.Instruction = &framework.Instruction{Task: llm.Continue}
	case Impersonate:
		in.Instruction = &framework.Instruction{Task: llm.Impersonate}
	case Quiet:
		in.Instruction = &framework.Instruction{Task: llm.Reply, Text: v.Options.Quiet}
	}
	scripts, err := card.ParseRegexScripts(v.Scripts)
	must(t, err)
	if v.AllowScoped {
		var character struct {
			Extensions struct {
				Scripts json.RawMessage `json:"regex_scripts"`
			}
		}
		must(t, json.Unmarshal(v.Character, &character))
		own, err := card.ParseRegexScripts(character.Extensions.Scripts)
		must(t, err)
		scripts = append(scripts, own...)
	}
	user := or(v.User, "Bob")
	in.Persona = framework.Persona{
		Name: user, Description: v.Persona.Description,
		Place: framework.PersonaPlace{Position: v.Persona.Position, Depth: or(v.Persona.Depth, 2), Role: roleOfNumber(v.Persona.Role)},
	}
	in.Scripts = framework.CompileScripts(card.SillyTavern, scripts).Run(nil)
	for _, m := range v.said() {
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

// said is the chat without the message that is written anew.
func (v *turnInput) said() []chatLine {
	if n := len(v.Chat) - 1; n >= 0 && !v.Chat[n].IsUser && (Trigger(v.Type) == Swipe || Trigger(v.Type) == Regenerate) {
		return v.Chat[:n]
	}
	return v.Chat
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

func (v *turnInput) variables() map[string]any {
	if v.Variables != nil {
		return v.Variables
	}
	return v.Metadata.Variables
}
