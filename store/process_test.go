package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// neighbours are the stores of two processes on one PostgreSQL.
type neighbours struct {
	*testing.T
	here, there *store.DB
	user, url   string
}

func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	url := storetest.PostgresURL(t)
	n := &neighbours{T: t, url: url, here: storetest.OpenWith(t, store.Options{URL: url}), there: storetest.OpenWith(t, store.Options{URL: url})}
	n.user = storetest.User(t, n.here)
	return n
}

// work gives a process a reply and a job with leases of an hour, and returns the id of the
// job.
func (n *neighbours) work(db *store.DB) (job string) {
	n.Helper()
	n.must(db.Update(context.Background(), n.user, func(tx nodest.Tx) error {
		c := &chat.Conversation{ID: id(), CharacterID: id(), Title: "tea", Settings: []byte(`{}`)}
		if err := tx.Chats.InsertConversation(c); err != nil {
			return err
		}
		if err := tx.Jobs.Enqueue(jobs.Spec{Kind: "a.b", Subject: db.Process()}); err != nil {
			return err
		}
		return tx.InsertGeneration(generation(c.ID, db.Process(), tx.Now().Add(time.Hour)))
	}))
	claimed, err := db.ClaimJobs(context.Background(), db.Process(), time.Hour, []jobs.Want{{Kind: "a.b", Free: 1, PerUser: 1}})
	n.must(err)
	if len(claimed) != 1 {
		n.Fatalf("%d jobs were claimed", len(claimed))
	}
	return claimed[0].ID
}

func (n *neighbours) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// abandoned counts the replies and says whether there are jobs whose leases have expired,
// as a process sees them.
func (n *neighbours) abandoned(db *store.DB) (replies int, inQueue bool) {
	n.Helper()
	items, err := db.Abandoned(context.Background(), "", 10)
	n.must(err)
	view, err := db.LookAtJobs(context.Background(), "nobody", []string{"a.b"})
	n.must(err)
	return len(items), view.Over
}

func (n *neighbours) wantAbandoned(db *store.DB, replies int, inQueue bool) {
	n.Helper()
	if r, q := n.abandoned(db); r != replies || q != inQueue {
		n.Fatalf("%d replies and (%t) jobs are abandoned, want %d and %t", r, q, replies, inQueue)
	}
}

// expire lets a process look for others that have died, and then, after the time that they have
// to take their locks again, once more.
func (n *neighbours) expire(db *store.DB) (some bool) {
	n.Helper()
	some, err := db.ExpireLost(context.Background())
	n.must(err)
	if some {
		n.Fatal("the first look has ended leases")
	}
	store.WaitForLost(db)
	some, err = db.ExpireLost(context.Background())
	n.must(err)
	return some
}

func TestTheLeasesOfADeadProcessEndAndThoseOfOthersDoNot(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	n.work(n.here)
	n.work(n.there)
	if n.expire(n.here) || n.expire(n.there) {
		t.Fatal("leases of living processes were ended")
	}
	n.must(n.there.Close()) // it stored no end of its work, as after a kill
	n.wantAbandoned(n.here, 0, false)
	if !n.expire(n.here) {
		t.Fatal("the leases of the dead process were not ended")
	}
	n.wantAbandoned(n.here, 1, true)
	if n.expire(n.here) {
		t.Fatal("they were ended twice")
	}
}

func TestAProcessThatLosesItsConnectionKeepsItsLeases(t *testing.T) {
	t.Parallel()
	n := newNeighbours(t)
	n.work(n.there)
	n.must(store.CutPresence(n.here, n.there.Process()))
	if some, err := n.here.ExpireLost(context.Background()); err != nil || some {
		t.Fatal("leases were ended at once", err)
	}
	deadline := time.After(time.Minute)
	for { // it takes its lock again by itself
		held, err := store.Present(n.here, n.there.Process())
		n.must(err)
		if held {
			break
		}
		select {
		case <-deadline:
			t.Fatal("the process did not take its lock again")
		case <-time.After(10 * time.Millisecond):
		}
	}
	store.WaitForLost(n.here)
	some, err := n.here.ExpireLost(context.Background())
	n.must(err)
	if some {
		t.Fatal("the leases of a living process were ended")
	}
	n.wantAbandoned(n.here, 0, false)
}

// leaseBesideWrongClock is far longer than a test takes, and far shorter than a clock is wrong.
const leaseBesideWrongClock = 10 * time.Minute

// TestTheClocksOfProcessesDecideNothing runs a process whose clock is wrong by an hour beside
// one with the right time, with leases of ten minutes and jobs that are due in five.
func TestTheClocksOfProcessesDecideNothing(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(wrong.String(), func(t *testing.T) {
			ctx := context.Background()
			url := storetest.PostgresURL(t)
			right := storetest.OpenWith(t, store.Options{URL: url})
			user := storetest.User(t, right)
			replies := []string{leased(t, right, user, "right")}
			clock := time.Now().Add(wrong)
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(clock)) // a bubble begins in the year 2000
				db := storetest.OpenWith(t, store.Options{URL: url, Log: quiet})
				wantHeld(t, db, "right")
				replies = append(replies, leased(t, db, user, "wrong"))
				wantHeld(t, db, "right", "wrong")
				if off := time.Until(db.Now()) + wrong; off.Abs() > 2*time.Minute {
					t.Errorf("the clock of the database is off by %v", off)
				}
			})
			wantHeld(t, right, "right", "wrong")
			if err := right.View(ctx, user, func(tx nodest.Tx) error {
				for _, id := range replies {
					g, err := tx.Generation(id)
					if err != nil {
						return err
					}
					if left := g.LeaseUntil.Sub(tx.Now()); left < leaseBesideWrongClock-2*time.Minute || left > leaseBesideWrongClock {
						t.Errorf("the lease lasts another %v", left)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// leased stores a reply and a running job of an owner, with leases of ten minutes, renews
// the one of the reply, and enqueues a job that is due in five.
func leased(t *testing.T, db *store.DB, user, owner string) (reply string) {
	t.Helper()
	ctx := context.Background()
	var g *chat.Generation
	err := db.Update(ctx, user, func(tx nodest.Tx) error {
		c := &chat.Conversation{ID: id(), CharacterID: id(), Title: "tea", Settings: []byte(`{}`)}
		if err := tx.Chats.InsertConversation(c); err != nil {
			return err
		}
		g = generation(c.ID, owner, tx.Now().Add(leaseBesideWrongClock))
		if err := tx.InsertGeneration(g); err != nil {
			return err
		}
		return tx.Jobs.Enqueue(jobs.Spec{Kind: "a." + owner}, jobs.Spec{Kind: "a.later", Subject: owner, NotBefore: tx.Now().Add(leaseBesideWrongClock / 2)})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Checkpoint(ctx, g, leaseBesideWrongClock); err != nil {
		t.Fatal(err)
	}
	claimed, err := db.ClaimJobs(ctx, owner, leaseBesideWrongClock, []jobs.Want{{Kind: "a." + owner, Free: 1, PerUser: 1}, {Kind: "a.later", Free: 1, PerUser: 1}})
	if err != nil || len(claimed) != 1 {
		t.Fatal(len(claimed), err)
	}
	return g.ID
}

// wantHeld fails the test unless all leases are valid for a process, and no job is due.
func wantHeld(t *testing.T, db *store.DB, owners ...string) {
	t.Helper()
	ctx := context.Background()
	items, err := db.Abandoned(ctx, "", 10)
	if err != nil || len(items) > 0 {
		t.Errorf("%d replies are abandoned: %v", len(items), err)
	}
	if err := db.RecoverJobs(ctx, map[string]int{"a.right": 5, "a.wrong": 5}, ""); err != nil {
		t.Fatal(err)
	}
	for _, owner := range owners {
		view, err := db.LookAtJobs(ctx, owner, []string{"a.right", "a.wrong", "a.later"})
		if err != nil {
			t.Fatal(err)
		}
		if view.Over || len(view.Due) > 0 || view.Next > leaseBesideWrongClock/2 || len(view.Held) != 1 {
			t.Errorf("%s: %+v", owner, view)
		}
	}
}
