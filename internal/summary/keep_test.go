package summary_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/internal/summary"
)

// owing is a chat in which much is owed and promised.
func owing() []summary.ChatLine {
	texts := []string{"How was your day at the mill?", "It was quiet, and the river was wide and slow.", "I still owe you 35 euros for the tickets to the opera.",
		"The weather was nice, so we sat outside.", "I promise to water Leopold's tomatoes until Sunday.", "That is kind of you, really.",
		"My new address is 17 Harbour Lane.", "Oh, that is near the sea!", "The code of the gate is 4471.", "I see.",
		"Priya lent me her bicycle until May.", "Then you can ride along the shore.", "We decided to call the boat Juniper.", "What a lovely name."}
	lines := chatLines(len(texts)+12, "We walked and looked at the water for a long while.")
	for i, text := range texts {
		lines[i].Text = text
	}
	return lines
}

const (
	bland    = "They talked about the day at the mill and about the river. The weather was nice, so they sat outside. They walked together and looked at the water for a long while, and both of them enjoyed it very much."
	faithful = "Ben owes Mara 35 euros for opera tickets; she promised to water Leopold's tomatoes until Sunday. Ben moved to 17 Harbour Lane, the gate code is 4471. Priya lent Ben her bicycle until May, and they decided to call the boat Juniper."
)

// A model's summary that loses most debts, promises, numbers and names is asked for again, with what was lost, and
// then mended: the lines are put behind it with who said them, within the length.
func TestASummaryThatLosesMostIsMended(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []any
		calls   int
		mended  bool
	}{
		{"nothing is lost", []any{faithful}, 1, false},
		{"lost, then kept", []any{bland, faithful}, 2, false},
		{"lost twice", []any{bland, bland}, 2, true},
		{"lost, then refused", []any{bland, "I'm sorry, but I can't help with that."}, 2, true},
	} {
		for _, length := range []int{500, 1000} {
			model := &scriptedModel{answers: tt.answers}
			draft, err := summary.Write(t.Context(), model, summary.Work{Lines: owing(), Rebuild: true, Length: length})
			if err != nil || draft.Method != summary.MethodModel || len(model.prompts) != tt.calls {
				t.Fatalf("%s: %d calls, %+v, %v", tt.name, len(model.prompts), draft, err)
			}
			if n := utf8.RuneCountInString(draft.Text); n > length {
				t.Errorf("%s: %d characters of %d", tt.name, n, length)
			}
			if !tt.mended {
				if draft.Text != faithful {
					t.Errorf("%s: %s", tt.name, draft.Text)
				}
				continue
			}
			for _, part := range []string{"They talked about", "owe you 35 euros", "Leopold's tomatoes", "4471"} {
				if !strings.Contains(draft.Text, part) {
					t.Errorf("%s, %d: %q is not in\n%s", tt.name, length, part, draft.Text)
				}
			}
			if !strings.Contains(draft.Text, "\n"+owing()[2].Name+": I still owe you 35 euros") {
				t.Errorf("%s: who owes is not said:\n%s", tt.name, draft.Text)
			}
			if !strings.Contains(model.prompts[1], "4471") || !strings.Contains(model.prompts[1], "must not be lost") {
				t.Errorf("%s: the second prompt does not say what was lost", tt.name)
			}
		}
	}
}
