package tavern

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/llm"
)

// words are texts of random documents.
var words = []string{
	"", " ", "castle", "龙", "{{char}} waits.", "{{setvar::a::b}}", "{{getvar::a}}", "{{random::x::y}}", "a\r\nb", "{{original}}", "{0}", "{{trim}}",
	"<START>\n{{user}}: hi\n{{char}}: yo", "{{if", strings.Repeat("long ", 40),
}

// random makes documents, chats and turns.
type random struct{ *rand.Rand }

func (r random) text() string { return words[r.IntN(len(words))] + words[r.IntN(len(words))] }

func (r random) yes() bool { return r.IntN(2) == 0 }

func (r random) preset() *card.Preset {
	p := &card.Preset{
		Utility: card.Utility{
			NewChat: r.text(), NewExample: r.text(), Impersonation: r.text(), ContinueNudge: r.text(), SendIfEmpty: r.text(), WorldInfoFormat: r.text(),
			ScenarioFormat: r.text(), PersonalityFormat: r.text(), AssistantPrefill: r.text(),
		},
		Behaviour: card.Behaviour{
			Names: card.NamesBehaviour(r.IntN(4) - 1), Squash: r.yes(), ContinuePrefill: r.yes(),
			PostProcessing: []string{"", "", "merge", "semi", "strict", "single"}[r.IntN(6)],
		},
	}
	ids := []string{idMain, idPostHistory, "x", "y", idWorldBefore, idWorldAfter, idPersona, idDescription, idPersonality, idScenario, idExamples, idHistory}
	for _, at := range r.Perm(len(ids)) {
		q := card.Prompt{Identifier: ids[at], Content: r.text(), Enable: r.IntN(9) > 0, Role: []string{"system", "user", "assistant"}[r.IntN(3)], InjectionOrder: 100 * r.IntN(3)}
		if r.IntN(3) == 0 {
			one, depth := 1, r.IntN(9)
			q.InjectionPosition, q.InjectionDepth = &one, &depth
		}
		if r.IntN(5) == 0 {
			q.Triggers = []string{string(Continue)}
		}
		if r.IntN(6) > 0 {
			p.Prompts = append(p.Prompts, q)
		}
		if r.IntN(6) > 0 {
			p.TavernOrder = append(p.TavernOrder, card.OrderItem{Identifier: q.Identifier, Enabled: r.IntN(6) > 0})
		}
	}
	return p
}

func (r random) sources() Sources {
	s := Sources{Card: card.RoleCard{
		Name: "Alice", Description: r.text(), Personality: r.text(), Scenario: r.text(), MesExample: r.text(), SystemPrompt: r.text(),
		PostHistoryInstructions: r.text(), DepthPrompt: card.DepthPrompt{Prompt: r.text(), Depth: r.IntN(6), Role: "user"},
	}}
	if r.IntN(5) > 0 {
		s.Preset = r.preset()
	}
	if r.yes() {
		s.CardFields = framework.ListedFields
	}
	var entries []card.Entry
	for range r.IntN(8) {
		entries = append(entries, card.Entry{
			Key: []string{"castle"}, Content: r.text(), Constant: r.yes(), Position: card.Position(r.IntN(8)), Depth: r.IntN(5), Order: float64(r.IntN(3)),
		})
	}
	s.Books = bookOf(entries...)
	return s
}

func (r random) input() framework.Input {
	in := framework.Input{Persona: framework.Persona{Name: "Bob", Description: r.text()}, History: talk(r.IntN(12))}
	for i := range in.History {
		if r.IntN(5) == 0 {
			in.History[i].Text = r.text()
		}
	}
	if len(in.History) > 3 && r.IntN(4) == 0 {
		in.History[0] = framework.Message{Role: framework.RoleSummary, Text: "Before."}
	}
	if r.IntN(4) > 0 {
		in.User = framework.Message{ID: "u", Text: "What of the castle?"}
	}
	if r.yes() {
		in.Findings.Memories = []framework.Memory{{ID: "m", Text: r.text() + "."}}
		in.Rules = r.text()
	}
	if r.IntN(3) == 0 {
		in.Instruction = &framework.Instruction{Task: []llm.Task{llm.Reply, llm.Continue, llm.Impersonate}[r.IntN(3)], Text: r.text()}
	}
	in.Persona.Place = framework.PersonaPlace{Position: []framework.PersonaPosition{0, 2, 3, 4, 9}[r.IntN(5)], Depth: r.IntN(4)}
	in.Options = framework.Options{Seed: r.Uint64(), StrictTurns: r.IntN(4) == 0}
	if r.yes() {
		in.Options.Context, in.Options.Reserve = 100+r.IntN(900), 20+r.IntN(60)
	}
	return in
}

func (r random) play() Play {
	p := Play{
		Names: r.yes(), Prefills: r.yes(), Settings: Settings{PinExamples: r.yes(), IgnoreSystemPrompt: r.IntN(4) == 0},
	}
	if r.yes() {
		p.Note = &Note{Text: r.text(), Position: NotePosition(r.IntN(3)), Depth: r.IntN(5), Role: llm.User, Interval: r.IntN(3)}
	}
	return p
}

// Whatever the documents and the turn: the account agrees with the messages, the message that is
// answered is sent, the budget holds, and the same input gives the same prompt.
func TestRandomPromptsKeepThePromises(t *testing.T) {
	t.Parallel()
	refused := 0
	for seed := range uint64(4000) {
		r := random{rand.New(rand.NewPCG(seed, 1))}
		s, in, play := r.sources(), r.input(), r.play()
		play.Compiled = Compile(s)
		p, _, err := Build(t.Context(), &in, &play)
		if fault.Is(err, fault.ContextTooLarge) {
			refused++
			continue
		}
		must(t, err)
		if err := account(p); err != nil {
			t.Fatalf("%d: %v", seed, err)
		}
		all := strings.Join(lines(p), "\n")
		if in.User.Text != "" && (!strings.Contains(all, in.User.Text) || p.Base < 0 || !strings.Contains(p.UserText(), in.User.Text)) {
			t.Fatalf("%d: the user's message is missing, base %d:\n%s", seed, p.Base, all)
		}
		short := slices.ContainsFunc(p.Warnings, func(w framework.Warning) bool { return w.Code == "reply_shortened" })
		if p.Budget > 0 && p.Tokens > p.Budget && !short {
			t.Fatalf("%d: %d tokens of %d", seed, p.Tokens, p.Budget)
		}
		again, _, err := Build(t.Context(), &in, &play)
		must(t, err)
		if !slices.Equal(again.Hashes, p.Hashes) {
			t.Fatalf("%d: built twice\n%s\n\n%s", seed, all, strings.Join(lines(again), "\n"))
		}
	}
	t.Logf("%d of 4000 do not fit their context", refused)
}
