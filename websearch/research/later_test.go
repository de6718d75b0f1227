package research_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/websearch/research"
)

// busyStore is a store that stores nothing behind some writes.
type busyStore struct {
	research.Store
	free int
}

func (s *busyStore) Update(ctx context.Context, userID string, fn func(research.Tx) error) error {
	if s.free--; s.free < 0 {
		return fault.New(fault.StorageBusy, "the database is busy")
	}
	return s.Store.Update(ctx, userID, fn)
}

// attempt runs the job that is due on a store, and ends it as a runner does for one that goes on later.
func (w *world) attempt(of research.Store) error {
	w.Helper()
	claimed, err := w.db.ClaimJobs(w.Context(), w.user, time.Hour, []jobs.Want{{Kind: research.JobRun, Free: 1, PerUser: 1}})
	w.must(err)
	if len(claimed) != 1 {
		w.Fatalf("%d jobs are due", len(claimed))
	}
	err = w.service(of).Kinds()[0].Run(w.Context(), claimed[0])
	if errors.Is(err, jobs.ErrLater) {
		w.must(w.db.EndJob(w.Context(), claimed[0], jobs.Outcome{State: jobs.Queued, Uncounted: true}))
	}
	return err
}

// A database that stores nothing for a while is no crash of a run: it goes on, however often that happens, and
// wherever; also where its failure cannot be stored.
func TestABusyDatabaseEndsNoRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		db := open(t, store.Options{})
		w := newWorld(t, db, newWeb(t, db))
		id := w.start(research.Order{})
		for _, free := range []int{0, 0, 1, 0, 1, 0, 1, 2, 3} {
			if err := w.attempt(&busyStore{db.Research(), free}); !errors.Is(err, jobs.ErrLater) || fault.Public(err).RetryAfter == 0 {
				t.Fatalf("behind %d writes: %v", free, err)
			}
		}
		w.must(w.work(db.Research()))
		if run := w.run(id); run.State != research.Done {
			t.Errorf("%+v", run)
		}
	})
}

// A panic ends the run at once, also one in a member of a team. The log says where it was, and nothing that the user
// or a page has said.
func TestAPanicEndsTheRunAndIsLogged(t *testing.T) {
	t.Parallel()
	db := storetest.OpenWith(t, store.Options{})
	of := newWeb(t, db)
	for name, order := range map[string]research.Order{"alone": {}, "a team": {Team: new(2)}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, db, of)
			var logged bytes.Buffer
			w.log = slog.New(slog.NewTextHandler(&logged, nil))
			w.model = func(p llm.Prompt) string {
				if w.calls > 2 {
					panic("no reply was expected to be like " + p.Messages[len(p.Messages)-1].Text)
				}
				return curious(p)
			}
			id := w.start(order)
			w.must(w.work(db.Research()))
			if run := w.run(id); run.State != research.Failed || run.Failure == nil || run.Failure.Code != fault.Internal {
				t.Errorf("%+v", run)
			}
			text := logged.String()
			if n := strings.Count(text, "level="); n != 1 || !strings.Contains(text, "panic") || !strings.Contains(text, "later_test.go") || !strings.Contains(text, id) {
				t.Errorf("%d lines are logged:\n%s", n, text)
			}
			for _, word := range []string{"Arven", "expected"} {
				if strings.Contains(text, word) {
					t.Errorf("the log says %q:\n%s", word, text)
				}
			}
		})
	}
}

// A run that is open and whose job is gone goes on when it is started again, and with the next maintenance. One that
// has its job goes on as it does, and one of a chat that was deleted does not.
func TestARunWithoutAJobGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		db := open(t, store.Options{})
		of := newWeb(t, db)
		for name, mend := range map[string]func(w *world, id string){
			"started again": func(w *world, id string) {
				_, err := w.service(db.Research()).Begin(t.Context(), &op.Call{UserID: w.user}, id)
				w.must(err)
			},
			"maintenance": func(w *world, _ string) { w.maintain() },
		} {
			w := newWorld(t, db, of)
			id := w.start(research.Order{})
			lost := func(tx research.Tx) error { return tx.Jobs.CancelJobs(id) }
			w.must(db.Research().Update(t.Context(), w.user, lost))
			mend(w, id)
			mend(w, id) // there is one job all the same
			w.must(w.work(db.Research()))
			if run := w.run(id); run.State != research.Done {
				t.Errorf("%s: %+v", name, run)
			}
			w.maintain()
			gone := w.start(research.Order{})
			w.must(db.Research().Update(t.Context(), w.user, func(tx research.Tx) error {
				return errors.Join(tx.Chats.DeleteConversation(w.chat), tx.Jobs.CancelJobs(gone))
			}))
			w.maintain()
			claimed, err := db.ClaimJobs(t.Context(), w.user, time.Hour, []jobs.Want{{Kind: research.JobRun, Free: 1, PerUser: 1}})
			if w.must(err); len(claimed) > 0 {
				t.Errorf("%s: a job is left, about %s", name, claimed[0].Subject)
			}
		}
	})
}

// maintain lets the job of maintenance run.
func (w *world) maintain() {
	w.Helper()
	w.must(w.db.Enqueue(w.Context(), store.Upkeep))
	claimed, err := w.db.ClaimJobs(w.Context(), w.user, time.Hour, []jobs.Want{{Kind: store.Upkeep.Kind, Free: 1, PerUser: 1}})
	if w.must(err); len(claimed) != 1 {
		w.Fatalf("%d jobs of maintenance are due", len(claimed))
	}
	w.must(w.db.Maintenance().Run(w.Context(), claimed[0]))
	w.must(w.db.EndJob(w.Context(), claimed[0], jobs.Outcome{State: jobs.Done}))
}
