package fair_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fair"
)

// crowd has requests of owners that work for a second each, in virtual time, and notes who was let in.
type crowd struct {
	t     *testing.T
	g     *fair.Gate
	mu    sync.Mutex
	lines []string
	all   sync.WaitGroup
}

func (c *crowd) ask(owner string, n int64, small bool) {
	c.all.Go(func() {
		leave, err := c.g.Enter(context.Background(), owner, n, small)
		if err != nil {
			c.t.Error(err)
			return
		}
		c.mu.Lock()
		c.lines = append(c.lines, owner)
		c.mu.Unlock()
		time.Sleep(time.Second) // virtual
		leave()
		leave() // twice does no harm
	})
	synctest.Wait() // requests come in this order
}

func (c *crowd) wants(want ...string) {
	c.t.Helper()
	c.all.Wait()
	if !slices.Equal(c.lines, want) {
		c.t.Errorf("let in %v, want %v", c.lines, want)
	}
}

func TestOwnersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{t: t, g: fair.New(fair.Rules{Places: fair.Fixed(1)})}
		for range 4 {
			c.ask("a", 1, false)
		}
		c.ask("b", 1, false)
		c.ask("c", 1, false)
		c.ask("b", 1, false)
		c.wants("a", "b", "c", "a", "b", "a", "a")
	})
}

func TestAnOwnerAloneHasAllPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{t: t, g: fair.New(fair.Rules{Places: fair.Fixed(3)})}
		begun := time.Now()
		for range 6 {
			c.ask("a", 1, false)
		}
		c.all.Wait()
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("six requests in three places took %s", took)
		}
	})
}

func TestSparePlacesAreForSmallRequestsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{t: t, g: fair.New(fair.Rules{Places: fair.Fixed(2), Spare: 1})}
		for range 4 {
			c.ask("a", 1, true) // the owner of two places gets no third
		}
		c.ask("b", 1, false)
		c.ask("b", 1, true)
		c.mu.Lock()
		if got := fmt.Sprint(c.lines); got != "[a a b]" {
			t.Errorf("let in %s", got)
		}
		c.mu.Unlock()
		c.all.Wait()
	})
}

func TestAnOwnerHoldsAtMostSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{t: t, g: fair.New(fair.Rules{Places: fair.Fixed(8), Each: 2})}
		for range 3 {
			c.ask("a", 1, false)
		}
		c.ask("b", 5, false) // counts as two
		c.wants("a", "a", "b", "a")
	})
}

func TestWhatIsTooLargeWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{t: t, g: fair.New(fair.Rules{Places: fair.Fixed(4)})}
		c.ask("a", 3, false)
		c.ask("b", 9, false)
		c.ask("a", 1, false) // does not pass the one that waits, whose owner holds nothing
		c.wants("a", "b", "a")
	})
}

func TestWhoStopsWaitingLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fair.New(fair.Rules{Places: fair.Fixed(1)})
		leave, err := g.Enter(context.Background(), "a", 1, false)
		if err != nil {
			t.Fatal(err)
		}
		late := errors.New("late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		if _, err := g.Enter(ctx, "b", 1, false); !errors.Is(err, late) {
			t.Errorf("the error is %v", err)
		}
		leave()
		if leave, err = g.Enter(context.Background(), "c", 1, false); err != nil {
			t.Fatal(err)
		}
		leave()
	})
}
