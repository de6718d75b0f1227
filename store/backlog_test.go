package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func TestBacklogSaysWhatWaitsAndForHowLong(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := t.Context()
		later := time.Now().Add(1000 * time.Hour)
		if err := e.db.Enqueue(ctx, jobs.Spec{Kind: "a.b", UserID: e.user, Subject: "1"}, jobs.Spec{Kind: "a.b", UserID: e.user, Subject: "2"}, jobs.Spec{Kind: "a.c"},
			jobs.Spec{Kind: "a.d"}, jobs.Spec{Kind: "a.e", NotBefore: later}); err != nil {
			e.Fatal(err)
		}
		e.end(e.claim("p", "a.c", 1)[0], jobs.Outcome{State: jobs.Failed})
		e.claim("p", "a.d", 1)
		id := e.conversation()
		e.update(func(tx nodest.Tx) error {
			for status, age := range map[string]time.Duration{chat.GenStreaming: time.Minute, chat.GenQueued: time.Hour, chat.GenDone: 2 * time.Hour} {
				g := &chat.Generation{ID: op.NewID(), ConversationID: id, Status: status, Lease: chat.Lease{LeaseUntil: time.Now()}, Moments: chat.Moments{CreatedAt: tx.Now().Add(-age)}}
				if err := tx.InsertGeneration(g); err != nil {
					return err
				}
			}
			return nil
		})
		b, err := e.db.Backlog(ctx)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("due", b.Due["a.b"].Count, int64(2))
		e.equal("not due", b.Due["a.e"].Count, int64(0))
		e.equal("running", b.RunningJobs["a.d"], int64(1))
		if b.FailedJobs < 1 || b.Due["a.b"].Oldest < 0 {
			e.Errorf("%+v", b)
		}
		if q := b.Generations[chat.GenQueued]; q.Count < 1 || q.Oldest < time.Hour {
			e.Errorf("queued: %+v", q)
		}
		if q := b.Generations[chat.GenStreaming]; q.Count < 1 || q.Oldest < time.Minute {
			e.Errorf("streaming: %+v", q)
		}
		if _, found := b.Generations[chat.GenDone]; found {
			e.Error("a reply that has ended waits")
		}
	})
}

// A scrape must cost the same with a million jobs that are done.
func TestBacklogReadsOnlyWhatIsOpen(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	plan, err := store.Plan(db, store.BacklogQuery("0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range plan {
		if strings.HasPrefix(line, "SCAN") || strings.HasPrefix(line, "SEARCH") {
			if !slices.ContainsFunc([]string{"generations_open", "jobs_next", "jobs_turn", "jobs_lease", "jobs_failed", "jobs_one_open"}, func(index string) bool { return strings.Contains(line, index) }) {
				t.Errorf("%s", line)
			}
		}
	}
	t.Log(strings.Join(plan, "\n"))
}
