package chat_test

import (
	"testing"

	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/nodest/nodesttest"
)

// A summary requested while another one is being written is made after it; neither a
// reply that ends meanwhile nor a failed attempt replaces the request.
func TestASummaryRequestDuringAJobRunsAfterwards(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewSummaries(t, "")
	s.InsertExchanges(20)
	s.SendExchanges(1) // the summary is due
	claimed := s.ClaimJobs()
	if len(claimed) != 1 {
		t.Fatalf("%d jobs are due", len(claimed))
	}
	s.Must(s.Chats.SummariseLater(t.Context(), s.Call(), s.Conversation.ID, chat.SummaryRange{}))
	s.SendExchanges(1)
	s.Must(s.DB.EndJob(t.Context(), claimed[0], jobs.Outcome{State: jobs.Queued}))
	for _, want := range []string{`{"tokens":0}`, `{"forced":{}}`} {
		if claimed = s.ClaimJobs(); len(claimed) != 1 {
			t.Fatalf("%d jobs are due", len(claimed))
		}
		if got := string(claimed[0].Payload); got != want {
			t.Errorf("the job is to do %s, want %s", got, want)
		}
		s.Must(s.EndJob(claimed[0], s.RunJob(claimed[0])))
	}
}
