package nodest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// formatRequest renders a request as the provider received it.
func formatRequest(r llmtest.Request) string {
	var parts []string
	for _, m := range r.Messages {
		parts = append(parts, m.Role+": "+m.Text)
	}
	return strings.Join(parts, "\n--\n")
}

func formatMessages(messages []llm.Message) string {
	var parts []string
	for _, m := range messages {
		parts = append(parts, string(m.Role)+": "+m.Text)
	}
	return strings.Join(parts, "\n--\n")
}

const systemPreset = `{"prompts":[{"identifier":"main","role":"system","content":"Play {{char}}."},
	{"identifier":"charDescription","marker":true,"system_prompt":true},
	{"identifier":"chatHistory","marker":true,"system_prompt":true},
	{"identifier":"jailbreak","role":"system","content":"Stay in character."}]}`

// A server that requires strictly alternating turns accepts every kind of request,
// and the stored prompt is the request it received.
func TestServersWithStrictTurns(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	fake.Always(llmtest.StrictTurns(func(llmtest.Request) llmtest.Reply { return llmtest.Say("Well met.") }))
	alice, err := s.Characters.Create(t.Context(), s.Call(), character.Input{
		RoleCard: json.RawMessage(nodesttest.PlainAlice), WorldBook: json.RawMessage(`{"entries":{}}`),
	})
	s.Must(err)
	c := s.ChatWith(alice.ID)
	s.bindPreset(c.CharacterID, systemPreset)
	loose := s.Await(s.Say(c, "Is it refused?").GenerationID)
	if loose.Status != chat.GenFailed {
		t.Fatalf("the server accepts any order of turns: %s", loose.Status)
	}

	s.RealModel.StrictTurns = true
	preview, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "Hello"})
	s.Must(err)
	sent := s.Say(c, "Hello")
	g := s.Await(sent.GenerationID)
	check := func(what string, g *chat.Generation) {
		t.Helper()
		if g.Status != chat.GenDone {
			t.Fatalf("%s: %s %v", what, g.Status, g.Error)
		}
		all := fake.Requests()
		got := formatRequest(all[len(all)-1])
		p, err := s.Prompt(t.Context(), nodesttest.Ann, g.PromptID)
		s.Must(err)
		if want := formatMessages(p.Prompt.Messages); got != want {
			t.Errorf("%s: sent\n%s\nexplained as\n%s", what, got, want)
		}
		for _, e := range p.Prompt.Entries {
			m := p.Prompt.Messages[e.Message]
			if e.Role != m.Role || e.At > len([]rune(m.Text)) {
				t.Errorf("%s: entry %+v does not fit its message %q", what, e, m.Text)
			}
		}
	}
	check("a message", g)
	all := fake.Requests()
	if got, want := formatRequest(all[len(all)-1]), formatMessages(preview.Messages); got != want {
		t.Errorf("sent\n%s\npreviewed as\n%s", got, want)
	}
	if got := formatRequest(all[len(all)-1]); !strings.HasPrefix(got, "system: Play Alice.\n\nA guide of few words.\n\ncalm\n--\nuser: [Start of the chat]\n--\nassistant: Hello, traveller.") ||
		!strings.HasSuffix(got, "Hello\n\nStay in character.") {
		t.Errorf("sent\n%s", got)
	}

	again, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: sent.Message.ID, Wish: "shorter"})
	s.Must(err)
	check("regenerate", s.Await(again.GenerationID))
	on, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: sent.Message.ID})
	s.Must(err)
	check("continue", s.Await(on.GenerationID))
	mine, err := s.Impersonate(t.Context(), s.Call(), nodest.GenerateInput{ConversationID: c.ID})
	s.Must(err)
	check("impersonate", s.Await(mine))
}
