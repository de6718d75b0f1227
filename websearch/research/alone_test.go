package research_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/websearch/research"
)

// Runs that are begun at the same time keep the limits: one in a chat, and 20 of a user.
func TestRunsThatBeginTogetherKeepTheirLimits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		db := open(t, store.Options{})
		w := newWorld(t, db, newWeb(t, db))
		s := w.service(db.Research())
		order := func() research.Order { return research.Order{Question: new("Why?")} }
		together := func(n int, begin func() error) (begun int64) {
			var count atomic.Int64
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					if err := begin(); err == nil {
						count.Add(1)
					} else if !fault.Is(err, fault.Conflict) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return count.Load()
		}
		alone := together(8, func() error {
			_, err := s.StartAlone(t.Context(), &op.Call{UserID: w.user}, w.chat, order())
			return err
		})
		more := together(30, func() error {
			_, err := s.Plan(t.Context(), &op.Call{UserID: w.user}, "", order(), true)
			return err
		})
		if alone != 1 || more != 19 {
			t.Errorf("%d of the chat, and %d more", alone, more)
		}
	})
}
