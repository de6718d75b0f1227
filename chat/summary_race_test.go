package chat_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store"
	"nodest/store/storetest"
)

// If two processes write the summary of a chat at the same time, for the user and for
// a reply, one summary is stored.
func TestConcurrentSummaryJobsStoreOneSummary(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (one, other func(store.Options) *store.DB){
		"SQLite": func(t *testing.T) (one, other func(store.Options) *store.DB) { // two engines in one process
			var db *store.DB
			return func(o store.Options) *store.DB {
				db = storetest.OpenWith(t, o)
				return db
			}, func(store.Options) *store.DB { return db }
		},
		"PostgreSQL": func(t *testing.T) (one, other func(store.Options) *store.DB) {
			url := storetest.PostgresURL(t)
			both := func(o store.Options) *store.DB {
				o.URL = url
				return storetest.OpenWith(t, o)
			}
			return both, both
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := open(t)
			s := nodesttest.NewSummariesOn(t, "", one)
			second := *s.Fixture
			second.DB = other(store.Options{Now: s.Clock.Now, Log: nodesttest.DiscardLog, Committed: s.Events.Committed})
			s.Options.Alone, second.Options.Alone = false, false
			s.Engine, second.Engine = s.AnotherEngine(), second.AnotherEngine()
			for range 3 { // generations
				s.InsertExchanges(16)
				checkWrittenOnce(s, &second)
			}
		})
	}
}

func checkWrittenOnce(s *nodesttest.Summaries, second *nodesttest.Fixture) {
	s.T.Helper()
	before, calls := len(s.AllSummaries()), len(s.Summariser.Prompts)
	job := claimSharedJob(s, second)

	const writers = 3
	var there sync.WaitGroup // all have written before any stores
	there.Add(writers)
	s.Summariser.Gate = func() { there.Done(); there.Wait() }
	var views [2]*chat.SummaryView
	var errs [writers]error
	var group sync.WaitGroup
	for i, e := range []*nodesttest.Engine{s.Engine, second.Engine} {
		call := s.Call()
		group.Go(func() {
			views[i], errs[i] = e.Chats.Summarise(s.T.Context(), call, s.Conversation.ID, chat.SummaryRange{})
		})
	}
	group.Go(func() { errs[2] = second.Chats.Kinds()[0].Run(s.T.Context(), job) })
	group.Wait()
	s.Summariser.Gate = nil
	for _, err := range errs {
		s.Must(err)
	}
	s.Must(s.EndJob(job, nil))
	if n := s.RunJobs(); n != 0 {
		s.T.Errorf("%d jobs follow", n)
	}
	a, views0 := s.ActiveSummary(), s.AllSummaries()
	if len(views0) != before+1 || a == nil || a.Generation != before+1 || views[0].ID != a.ID || views[1].ID != a.ID {
		s.T.Errorf("%d summaries, active %+v, answered %+v and %+v", len(views0), a, views[0], views[1])
	}
	if n := len(s.Summariser.Prompts) - calls; n != writers {
		s.T.Errorf("%d calls of the model, want %d", n, writers)
	}
}

// claimSharedJob enqueues the summary from both processes at once, has both claim
// jobs, and returns the only one.
func claimSharedJob(s *nodesttest.Summaries, second *nodesttest.Fixture) *jobs.Job {
	s.T.Helper()
	var group sync.WaitGroup
	var errs [2]error
	var claimed [2][]*jobs.Job
	both := func(do func(i int, db *store.DB) error) {
		for i, db := range []*store.DB{s.DB, second.DB} {
			group.Go(func() { errs[i] = do(i, db) })
		}
		group.Wait()
		s.Must(errs[0])
		s.Must(errs[1])
	}
	both(func(_ int, db *store.DB) error {
		return db.Update(s.T.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
			return tx.Jobs.Enqueue(jobs.Spec{Kind: chat.JobSummarise, Subject: s.Conversation.ID})
		})
	})
	both(func(i int, db *store.DB) (err error) {
		claimed[i], err = db.ClaimJobs(s.T.Context(), []string{"one", "two"}[i], time.Minute, []jobs.Want{{Kind: chat.JobSummarise, Free: 1, PerUser: 1}})
		return err
	})
	all := slices.Concat(claimed[0], claimed[1])
	if len(all) != 1 {
		s.T.Fatalf("%d jobs were claimed", len(all))
	}
	return all[0]
}
