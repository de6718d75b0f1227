package account

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"nodest/internal/fault"
)

// Limits on guessing. Attempts are counted per name and address, so that a stranger who
// guesses from elsewhere does not lock out the owner of the name. An address gets many more
// attempts over all names, links and tokens, because many people may share it.
const (
	freeTries     = 5 // for one name from one address; the wait before each further one doubles
	freeOfAddress = 100
	firstWait     = 2 * time.Second
	longestWait   = 15 * time.Minute
	addressWait   = 30 * time.Second // the longest for an address
	keepTries     = 10_000           // names and addresses remembered at once
)

// tryKey is what attempts are counted by: a name from an address, an address alone (no name),
// or, when a password is changed, an account alone (no address).
type tryKey struct{ name, from string }

type tries struct {
	failures int
	pending  int       // attempts that are being checked
	until    time.Time // the next attempt is refused before this
	last     time.Time // the time of the last failure, or of the first attempt
}

// limiter counts sign-in attempts in memory, each from before it is checked, so that
// concurrent attempts count too. A restart forgets them.
type limiter struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[tryKey]*tries
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, by: map[tryKey]*tries{}}
}

// outcome is how an attempt ended.
type outcome int

const (
	undecided outcome = iota // such as when the database was down
	succeeded
	failed
)

// try begins an attempt, or refuses it with fault.RateLimited. The caller calls done when it
// has ended. Until then it counts as failed; beyond the attempts that need no wait there is
// one at a time. An attempt that did not fail changes nothing for others from the address.
func (l *limiter) try(name, from string) (done func(outcome), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	keys := keysOf(name, from)
	for _, key := range keys {
		if wait := l.by[key].wait(key, now); wait > 0 {
			what := "failed sign-ins"
			if key.from == "" {
				what = "wrong passwords"
			}
			return nil, fault.New(fault.RateLimited, "too many %s; try again later", what).After(wait)
		}
	}
	l.makeRoom(now)
	counted := make([]*tries, len(keys))
	for i, key := range keys {
		t := l.by[key]
		if t == nil || now.Sub(t.last) > longestWait {
			t = &tries{last: now}
			l.by[key] = t
		}
		t.pending++
		counted[i] = t
	}
	return func(how outcome) { l.done(keys, counted, how) }, nil
}

// done counts the outcome of an attempt. A success forgets the failures of the name at the
// address.
func (l *limiter) done(keys []tryKey, counted []*tries, how outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, t := range counted {
		t.pending--
		switch {
		case how == failed:
			t.fail(keys[i], l.now())
		case how == succeeded && keys[i].name != "":
			t.failures, t.until = 0, time.Time{}
		}
		if t.failures+t.pending == 0 && l.by[keys[i]] == t {
			delete(l.by, keys[i])
		}
	}
}

// wait is how long the next attempt is refused; t may be nil.
func (t *tries) wait(key tryKey, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	if free, _ := key.limits(); t.pending > 0 && t.failures+t.pending >= free {
		return max(firstWait, t.until.Sub(now))
	}
	return t.until.Sub(now)
}

func (t *tries) fail(key tryKey, now time.Time) {
	t.failures++
	t.last = now
	free, longest := key.limits()
	if over := t.failures - free; over >= 0 {
		t.until = now.Add(min(longest, firstWait<<min(over, 20)))
	}
}

// limits returns how many attempts need no wait, and the longest wait before a further one.
func (k tryKey) limits() (free int, longest time.Duration) {
	if k.name == "" {
		return freeOfAddress, addressWait
	}
	return freeTries, longestWait
}

// keysOf lists what an attempt is counted by. A sign-in by token or link has no name; a change
// of a password has no address. Names have any length, so they are kept as hashes.
func keysOf(name, from string) []tryKey {
	from = Network(from)
	var keys []tryKey
	if name != "" {
		keys = append(keys, tryKey{string(digest(name)), from})
	}
	if from != "" {
		keys = append(keys, tryKey{"", from})
	}
	return keys
}

// Network identifies one client: by its IPv4 address, or by the /64 network of its IPv6
// address, because a client can use any address in that network.
func Network(from string) string {
	addr, err := netip.ParseAddr(from)
	if err != nil {
		return from
	}
	if addr = addr.Unmap().WithZone(""); addr.Is6() {
		return netip.PrefixFrom(addr, 64).Masked().String()
	}
	return addr.String()
}

// makeRoom forgets what no longer counts, and everything if that is not enough:
// the memory stays bounded whoever attacks.
func (l *limiter) makeRoom(now time.Time) {
	if len(l.by) < keepTries {
		return
	}
	for key, t := range l.by {
		if now.Sub(t.last) > longestWait {
			delete(l.by, key)
		}
	}
	if len(l.by) >= keepTries {
		clear(l.by)
	}
}

// How many passwords are hashed at once, each of which takes 19 MiB and a core, and how many
// more may wait, for a few tenths of a second.
const (
	hashesAtOnce  = 2
	hashesWaiting = 16
)

// hashing is the queue of passwords to be hashed.
type hashing struct {
	places  chan struct{} // held while waiting and while hashing
	running chan struct{} // held while hashing
}

func newHashing() *hashing {
	return &hashing{make(chan struct{}, hashesAtOnce+hashesWaiting), make(chan struct{}, hashesAtOnce)}
}

// do waits for its turn and runs f. It returns fault.RateLimited if too many are waiting.
func (h *hashing) do(ctx context.Context, f func() error) error {
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		return fault.New(fault.RateLimited, "too many passwords are being checked; try again").After(time.Second)
	}
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return f()
}
