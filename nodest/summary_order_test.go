package nodest_test

import (
	"testing"

	"nodest/chat"
	"nodest/jobs"
)

// A summary requested while another one is being written is made after it; neither a
// reply that ends meanwhile nor a failed attempt replaces the request.
func TestASummaryRequestDuringAJobRunsAfterwards(t *testing.T) {
	t.Parallel()
	s := newSummaryFixture(t, "")
	s.insertExchanges(20)
	s.sendExchanges(1) // the summary is due
	claimed := s.claimJobs()
	if len(claimed) != 1 {
		t.Fatalf("%d jobs are due", len(claimed))
	}
	s.must(s.Chats.SummariseLater(t.Context(), s.call(), s.chat.ID, chat.SummaryRange{}))
	s.sendExchanges(1)
	s.must(s.db.EndJob(t.Context(), claimed[0], jobs.Outcome{State: jobs.Queued}))
	for _, want := range []string{"{}", `{"forced":{}}`} {
		if claimed = s.claimJobs(); len(claimed) != 1 {
			t.Fatalf("%d jobs are due", len(claimed))
		}
		if got := string(claimed[0].Payload); got != want {
			t.Errorf("the job is to do %s, want %s", got, want)
		}
		s.must(s.endJob(claimed[0], s.runJob(claimed[0])))
	}
}
