package account_test

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"nodest/internal/account"
	"nodest/internal/fault"
)

// at is an address of the network 10.0.0.0/8.
func at(n int) string { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}).String() }

// guesses signs in n times at once and returns how many passwords were looked at.
func (o *testService) guesses(t *testing.T, n int, name, from func(i int) string) (tried int64) {
	t.Helper()
	var looked atomic.Int64
	var wg sync.WaitGroup
	ctx := context.WithoutCancel(t.Context())
	for i := range n {
		wg.Go(func() {
			_, _, err := o.Login(ctx, name(i), "a wrong guess", from(i))
			if fault.Is(err, fault.Unauthenticated) {
				looked.Add(1)
			} else if f := fault.Public(err); f.Code != fault.RateLimited || f.RetryAfter <= 0 {
				t.Errorf("Login = %v", err)
			}
		})
	}
	wg.Wait()
	return looked.Load()
}

func always(s string) func(int) string { return func(int) string { return s } }

func TestGuessesAtOnceCountBeforeTheyAreTried(t *testing.T) {
	t.Parallel()
	o := newTestService(t)
	o.member(t, "ann")
	if got := o.guesses(t, 300, always("ann"), always("6.6.6.6")); got > int64(5) {
		t.Fatalf("got %d, want at most %d", got, int64(5))
	}
	o.clock.forward(time.Minute)
	names := func(i int) string { return fmt.Sprint("nobody", i) }
	if got := o.guesses(t, 300, names, always("6.6.6.6")); got > int64(100) {
		t.Fatalf("other names of the same address count together: got %d, want at most %d", got, int64(100))
	}
}

func TestAStrangerDoesNotLockTheOwnerOut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	o.member(t, "ann")
	for i := range 8 { // addresses
		if got := o.guesses(t, 10, always("Ann "), always(at(i))); got > int64(5) {
			t.Fatalf("got %d, want at most %d", got, int64(5))
		}
	}
	_, _, err := o.Login(ctx, "ann", "correct horse", "1.2.3.4")
	if err != nil {
		t.Fatalf("the name is not blocked at another address: %v", err)
	}
	_, _, err = o.Login(ctx, "ann", "correct horse", at(1))
	requireCode(t, err, fault.RateLimited)
	if got := fault.Public(err).RetryAfter; got <= 0 {
		t.Fatalf("fault.Public(err).RetryAfter is %v, want more than 0", got)
	}
	o.member(t, "bob")
	_, _, err = o.Login(ctx, "bob", "correct horse", at(1))
	if err != nil {
		t.Fatalf("nor is the whole address: %v", err)
	}
	o.clock.forward(3 * time.Second)
	_, _, err = o.Login(ctx, "ann", "correct horse", at(1))
	if err != nil {
		t.Fatalf("the wait is over: %v", err)
	}
}

func TestEachFurtherGuessWaitsLonger(t *testing.T) {
	t.Parallel()
	o := newTestService(t)
	o.member(t, "ann")
	if got := o.guesses(t, 6, always("ann"), always("6.6.6.6")); got > int64(5) {
		t.Fatalf("got %d, want at most %d", got, int64(5))
	}
	last := time.Duration(0)
	for range 6 {
		_, _, err := o.Login(t.Context(), "ann", "correct horse", "6.6.6.6")
		requireCode(t, err, fault.RateLimited)
		wait := fault.Public(err).RetryAfter
		if wait <= last {
			t.Fatalf("wait is %v, want more than %v", wait, last)
		}
		last = wait
		o.clock.forward(wait)
		_, _, err = o.Login(t.Context(), "ann", "a wrong guess", "6.6.6.6")
		requireCode(t, err, fault.Unauthenticated)
	}
}

// A client of IPv6 has a whole /64 to choose addresses from.
func TestAddressesOfANetworkCountTogether(t *testing.T) {
	t.Parallel()
	o := newTestService(t)
	o.member(t, "ann")
	from := func(i int) string { return fmt.Sprintf("2001:db8:7:7::%x", i+1) }
	if got := o.guesses(t, 50, always("ann"), from); got > int64(5) {
		t.Fatalf("got %d, want at most %d", got, int64(5))
	}
	mapped := func(i int) string { return []string{"1.2.3.4", "::ffff:1.2.3.4"}[i%2] }
	if got := o.guesses(t, 50, always("ann"), mapped); got > int64(5) {
		t.Fatalf("got %d, want at most %d", got, int64(5))
	}
}

func TestGuessingTokensAndLinksIsLimited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newTestService(t)
	good, _, err := o.CreateToken(ctx, identityOf(o.member(t, "ann")), "phone", 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 { // 50 attempts of each kind
		_, _, err := o.SignInWithToken(ctx, "nst_guess", "6.6.6.6")
		requireCode(t, err, fault.Unauthenticated)
		_, _, err = o.SignIn(ctx, "guess", "6.6.6.6")
		requireCode(t, err, fault.Unauthenticated)
	}
	_, _, err = o.SignInWithToken(ctx, good, "6.6.6.6")
	requireCode(t, err, fault.RateLimited)
	_, _, err = o.Login(ctx, "ann", "correct horse", "6.6.6.6")
	requireCode(t, err, fault.RateLimited) // failures of all ways to sign in count together
	for range 200 {
		_, _, err = o.SignInWithToken(ctx, good, "1.2.3.4")
		if err != nil {
			t.Fatalf("successes do not count, and other addresses are not blocked: %v", err)
		}
	}
}

// Many that sign in at once wait for each other for a moment, and not without an end.
func TestPasswordsAreHashedAFewAtATime(t *testing.T) {
	o := newTestService(t, func(opts *account.Options) { // some ms each
		opts.Password = &argon2id.Params{Memory: 4096, Iterations: 4, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tried := o.guesses(t, 300, func(i int) string { return fmt.Sprint("nobody", i) }, at)
	runtime.ReadMemStats(&after)
	if tried >= int64(300) {
		t.Fatalf("tried is %d, want less than %d", tried, int64(300))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got >= uint64(300*4<<20) {
		t.Fatalf("each that is hashed takes 4 MiB: after.TotalAlloc-before.TotalAlloc is %d, want less than %d", got, uint64(300*4<<20))
	}
}

func TestGuessesOfAnyLengthTakeLittleMemory(t *testing.T) {
	o := newTestService(t)
	long := strings.Repeat("x", 1<<20)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 20 {
		_, _, err := o.Login(t.Context(), long+fmt.Sprint(i), "a wrong guess", at(i))
		requireCode(t, err, fault.Unauthenticated)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got >= int64(4<<20) {
		t.Fatalf("got %d, want less than %d", got, int64(4<<20))
	}
	runtime.KeepAlive(o)
}
