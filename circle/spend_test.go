package circle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestsWithOneKeyStartOneAfterAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ps paces
		var mu sync.Mutex
		var group sync.WaitGroup
		starts := map[string][]time.Time{}
		for range 3 {
			for _, key := range []string{"a", "b", ""} {
				group.Go(func() {
					err := ps.wait(t.Context(), key, 2*time.Second)
					mu.Lock()
					starts[key] = append(starts[key], time.Now())
					mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					<-time.After(time.Minute) // a request that takes long
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
		if err := ps.wait(t.Context(), "c", 0); err != nil || len(ps.keys) != 0 {
			t.Errorf("%d keys are kept, %v", len(ps.keys), err)
		}
	})
}

func TestWhoeverWaitsForAKeyCanGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ps paces
		if err := ps.wait(t.Context(), "a", time.Hour); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ps.wait(ctx, "a", time.Hour); err == nil {
			t.Error("it did not wait")
		}
	})
}
