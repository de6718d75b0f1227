package chat_test

import (
	"strings"
	"testing"

	"nodest/internal/summary"
	"nodest/nodest/nodesttest"
)

// A long chat is summarised at a bounded number of calls, and its prompt has one
// summary in place of the messages it covers.
func TestSummariesKeepThePromptSmall(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, "")
	for range 100 { // 200 messages of about 200 characters
		s.ChatAndSummarise(1)
	}
	path := s.Path()
	length := 0
	for _, m := range path {
		length += len(m.Text())
	}
	if most := length/6000 + 2; len(s.Summariser.Prompts) > most || len(s.Summariser.Prompts) < 5 {
		t.Errorf("%d characters took %d calls, at most %d are allowed", length, len(s.Summariser.Prompts), most)
	}
	views := s.AllSummaries()
	a := s.ActiveSummary()
	if a == nil || a != views[0] && a.ID != views[0].ID || a.Range.Start != 3 || a.Method != summary.MethodModel || a.Model != "summariser-1" {
		t.Fatalf("active summary: %+v", a)
	}
	sent := s.Request()
	for i, m := range path {
		covered := i >= 3 && i <= a.Range.End
		if strings.Contains(sent, m.Text()) == covered {
			t.Errorf("message %d of %d (%d are covered): it is sent = %v", i, len(path), a.Count, covered)
		}
	}
	if strings.Count(sent, "CONVERSATION SUMMARY") != 1 || !strings.Contains(sent, a.Text) {
		t.Errorf("the request has not one summary:\n%s", sent)
	}
	if len(sent) > 9000 {
		t.Errorf("the request has %d bytes", len(sent))
	}
	usage, err := s.Usage(t.Context(), nodesttest.Ann, "", "")
	s.Must(err)
	if want := int64(s.Summariser.Replies + len(s.Summariser.Prompts)); len(usage) != 1 || usage[0].Requests != want {
		t.Errorf("usage = %+v, want %d requests", usage, want)
	}
}
