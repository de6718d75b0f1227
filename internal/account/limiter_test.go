package account

import (
	"fmt"
	"testing"
	"time"

	"nodest/internal/fault"
)

// Whoever has an account cannot use it to guess the passwords of others without waiting.
func TestASuccessLeavesTheWaitOfItsAddress(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLimiter(func() time.Time { return now })
	begin := func(name string) func(outcome) {
		t.Helper()
		done, err := l.try(name, "6.6.6.6")
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	refused := func() {
		t.Helper()
		_, err := l.try("ann", "6.6.6.6")
		if got := fault.Public(err).Code; got != fault.RateLimited {
			t.Fatalf("fault.Public(err).Code is %q, want %q", got, fault.RateLimited)
		}
		if got := fault.Public(err).RetryAfter; got <= 0 {
			t.Fatalf("fault.Public(err).RetryAfter is %v, want more than 0", got)
		}
	}
	for i := range freeOfAddress - 2 {
		begin(fmt.Sprint("victim", i))(failed)
	}
	own := begin("own")
	begin("ann")(failed)
	own(succeeded)
	begin("ann")(failed)
	refused() // 100 have failed
	now = now.Add(firstWait)
	own = begin("own")
	refused() // one at a time
	own(succeeded)
	begin("ann")(failed)
	refused()
	now = now.Add(firstWait)
	refused() // the wait doubles
	now = now.Add(firstWait)
	begin("own")(undecided)
	begin("own")(succeeded)
	begin("ann") // neither counts
}

func TestWhoSignsInIsNotKept(t *testing.T) {
	t.Parallel()
	l := newLimiter(time.Now)
	for i := range 100 {
		done, err := l.try(fmt.Sprint("user", i), fmt.Sprint("10.0.0.", i))
		if err != nil {
			t.Fatal(err)
		}
		done(succeeded)
	}
	if len(l.by) != 0 {
		t.Fatalf("l.by is %+v, want none", l.by)
	}
}

// The people of a busy address do not wait for mistakes of long ago.
func TestFailuresAreForgottenWhileOthersSignIn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLimiter(func() time.Time { return now })
	for i := range freeOfAddress + 1 {
		for _, how := range []outcome{failed, succeeded} {
			done, err := l.try(fmt.Sprint("user", i), "10.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			done(how)
			now = now.Add(longestWait / 2)
		}
		now = now.Add(time.Second)
	}
	_, err := l.try("ann", "10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if got := (l.by[tryKey{"", "10.0.0.1"}].failures); got >= 2 {
		t.Fatalf("got %d, want less than %d", got, 2)
	}
}
