package store_test

import (
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store/storetest"
)

func TestFiguresCountAllUsers(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := t.Context()
		before, err := e.db.Figures(ctx)
		if err != nil {
			e.Fatal(err)
		}
		other := storetest.User(e.T, e.db)
		if err := e.db.Enqueue(ctx, jobs.Spec{Kind: "a.b", UserID: other, Subject: "s"}, jobs.Spec{Kind: "a.b"}, jobs.Spec{Kind: "a.c", UserID: e.user}); err != nil {
			e.Fatal(err)
		}
		e.end(e.claim("p", "a.c", 1)[0], jobs.Outcome{State: jobs.Failed})
		id := e.conversation()
		e.update(func(tx nodest.Tx) error {
			for _, status := range []string{chat.GenStreaming, chat.GenDone} {
				g := &chat.Generation{ID: op.NewID(), ConversationID: id, Status: status, Lease: chat.Lease{LeaseUntil: time.Now()}, Moments: chat.Moments{CreatedAt: tx.Now()}}
				if err := tx.InsertGeneration(g); err != nil {
					return err
				}
			}
			return nil
		})
		f, err := e.db.Figures(ctx)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("users", f.Users-before.Users, int64(1))
		e.equal("queued jobs", f.QueuedJobs-before.QueuedJobs, int64(2))
		e.equal("failed jobs", f.FailedJobs-before.FailedJobs, int64(1))
		e.equal("generations", f.Generations-before.Generations, int64(1))
		if f.DatabaseBytes < 4096 {
			e.Errorf("figures: %+v", f)
		}
		if f.DataBytes > 0 && (f.DataBytes < 4096 || f.DiskFreeBytes <= 0) { // there is a data folder
			e.Errorf("figures: %+v", f)
		}
	})
}
