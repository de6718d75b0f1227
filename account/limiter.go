package account

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"nodest/fault"
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
	until    time.Time // the next attempt is refused before this
	last     time.Time
}

// limiter counts sign-in attempts in memory, each before it is checked, so that concurrent
// attempts count too. A restart forgets them.
type limiter struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[tryKey]*tries
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, by: map[tryKey]*tries{}}
}

// try counts an attempt as failed, or refuses it with fault.RateLimited. The caller calls
// succeeded or undo if it did not fail.
func (l *limiter) try(name, from string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	keys := keysOf(name, from)
	for _, key := range keys {
		if t := l.by[key]; t != nil && now.Before(t.until) {
			return fault.New(fault.RateLimited, "too many failed sign-ins; try again later").After(t.until.Sub(now))
		}
	}
	l.makeRoom(now)
	for _, key := range keys {
		t := l.by[key]
		if t == nil || now.Sub(t.last) > longestWait {
			t = &tries{}
			l.by[key] = t
		}
		t.failures++
		t.last = now
		free, longest := key.limits()
		if over := t.failures - free; over >= 0 {
			t.until = now.Add(min(longest, firstWait<<min(over, 20)))
		}
	}
	return nil
}

// undo takes back an attempt that was not decided, such as when the database was down.
func (l *limiter) undo(name, from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keysOf(name, from) {
		if t := l.by[key]; t != nil {
			t.failures = max(0, t.failures-1) // it may have been forgotten in between
			t.until = time.Time{}
		}
	}
}

// succeeded forgets the failures of a name at an address.
func (l *limiter) succeeded(name, from string) {
	l.undo(name, from)
	if name != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.by, keysOf(name, from)[0])
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
