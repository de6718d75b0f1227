package circle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestsWithOneKeyAreSentOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ps paces
		var mu sync.Mutex
		var group sync.WaitGroup
		starts := map[string][]time.Time{}
		for range 3 {
			for _, key := range []string{"a", "b", ""} {
				group.Go(func() {
					err := ps.with(t.Context(), key, 2*time.Second, func() error {
						mu.Lock()
						defer mu.Unlock()
						starts[key] = append(starts[key], time.Now())
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		group.Wait()
		for key, at := range starts {
			want := 4 * time.Second
			if key == "" {
				want = 0
			}
			if took := at[2].Sub(at[0]); took != want {
				t.Errorf("key %q: %v", key, took)
			}
		}
		<-time.After(time.Minute) // virtual
		if err := ps.with(t.Context(), "c", 0, func() error { return nil }); err != nil || len(ps.keys) != 0 {
			t.Errorf("%d keys are kept, %v", len(ps.keys), err)
		}
	})
}

func TestWhoeverWaitsForAKeyCanGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ps paces
		none := func() error { return nil }
		if err := ps.with(t.Context(), "a", time.Hour, none); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ps.with(ctx, "a", time.Hour, none); err == nil {
			t.Error("it did not wait")
		}
	})
}
