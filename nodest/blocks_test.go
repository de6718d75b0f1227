package nodest_test

import (
	"testing"

	"nodest/chat"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// A block that the model never closes becomes text or reasoning, and a reply that
// consists only of blocks shows their text. The deltas match what is stored.
func TestUnclosedBlocksLoseNoText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, reply, text, reasoning string
		blocks                       int
	}{
		{"mem, unclosed", "<mem>\nYou like tea.\n\nTea it is!", "You like tea.\n\nTea it is!", "", 0},
		{"mem, unclosed behind text", "Yes.\n<mem>You like tea.", "Yes.\nYou like tea.", "", 0},
		{"websearch, unclosed behind a block", "<mem>tea</mem>\nYes. <websearch>It rains.", "Yes. It rains.", "", 1},
		{"thoughts, unclosed", "<think>Well, hello there", "Well, hello there", "", 0},
		{"thoughts, unclosed behind text", "Hello. <thinking>What else?", "Hello.", "What else?", 0},
		{"thoughts, closed", "<think>\nShe greets me.\n</think>\n\nHello.", "Hello.", "She greets me.", 0},
		{"thoughts about tags", "<think>I put it in <mem></mem> tags.</think>Hello.", "Hello.", "I put it in <mem></mem> tags.", 0},
		{"thoughts, closed and unclosed", "<think>First.</think><think>Then hello.", "Then hello.", "First.", 0},
		{"thoughts that the prompt has opened", "She greets me.\n\nI put it in <mem> tags.</think>\n\nHello.", "Hello.", "She greets me.\n\nI put it in <mem> tags.", 0},
		{"such thoughts, then mem", "Tea.\n</think>\nHello.\n<mem>You like tea.</mem>", "Hello.", "Tea.", 1},
		{"only the end of thoughts", "</think>\n\nHello.", "Hello.", "", 0},
		{"only mem", "<mem>You like tea.</mem>", "You like tea.", "", 0},
		{"only blocks", "<mem>You like tea.</mem><websearch>It rains.</websearch>\n", "You like tea.\n\nIt rains.", "", 0},
		{"mem and unclosed thoughts", "<mem>You like tea.</mem><think>And now?", "You like tea.", "And now?", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			c := s.Chat()
			var letters []string
			for _, r := range tt.reply {
				letters = append(letters, string(r))
			}
			s.Model.Enqueue(nodesttest.Reply(letters...))
			m := s.SayAndWait(c, "Hello")
			check := func(m *chat.Message) {
				t.Helper()
				if m.Status != chat.StatusComplete || m.Text() != tt.text || m.Chosen().Reasoning != tt.reasoning || len(m.Chosen().Blocks) != tt.blocks {
					t.Errorf("%s %q, reasoning %q, blocks %+v", m.Status, m.Text(), m.Chosen().Reasoning, m.Chosen().Blocks)
				}
				if got := s.Events.Deltas(t, m.GenerationID, "text", 0); got != m.Text() {
					t.Errorf("deltas give %q, stored is %q", got, m.Text())
				}
				s.Events.Deltas(t, m.GenerationID, "reasoning", 0)
			}
			check(m)
			s.Model.Enqueue(nodesttest.Reply(tt.reply))
			again, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: m.ID})
			s.Must(err)
			s.Await(again.GenerationID)
			check(s.Message(m.ID))
		})
	}
}

func TestContinuingWithABlockLosesNothing(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"\n<mem>You like tea.":        "Yes.\nYou like tea.",
		"<mem>You like tea.</mem>":    "Yes.\n\nYou like tea.",
		" <think>Go on</think>Indeed": "Yes.Indeed",
		"Go on</think> Indeed":        "Yes.Indeed",
	} {
		s := newFixture(t, nodest.Options{})
		c := s.Chat()
		s.Model.Enqueue(nodesttest.Reply("Yes."))
		m := s.SayAndWait(c, "Hello")
		s.Model.Enqueue(nodesttest.Reply(reply))
		on, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: m.ID})
		s.Must(err)
		s.Await(on.GenerationID)
		if got := s.Message(m.ID).Text(); got != want {
			t.Errorf("%q: continued to %q, want %q", reply, got, want)
		}
	}
}
