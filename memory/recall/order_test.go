package recall_test

import (
	"fmt"
	"testing"

	"nodest/memory/recall"
)

// TestAStatementComesBeforeLinesThatOnlyMentionIt has many later lines with a word of the question, of which none
// says what is asked for.
func TestAStatementComesBeforeLinesThatOnlyMentionIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ask, states, mentions string }{
		{"Where do I work?", "I work at the harbour library in Leith.", "My day at work was long, number %d of the week."},
		{"我在哪里工作？", "我在利斯的港口图书馆工作。", "今天工作第%d次拖到很晚。"},
		{"Where do I live?", "I live in Leith, right behind the harbour.", "Some people live for the weekend, says my neighbour %d."},
	} {
		lines := []string{"Ann: " + c.states}
		for i := range 10 {
			lines = append(lines, "Ann: "+fmt.Sprintf(c.mentions, i+1))
		}
		x := indexOf(t, append(sessionUnits(2, "2023-04-04", lines...), everyday(40)...)...)
		hits := find(t, x, recall.Query{Text: c.ask, Now: noon})
		if position(hits, c.states) != 0 {
			t.Errorf("%s: %q", c.ask, hitTexts(hits))
		}
	}
}
