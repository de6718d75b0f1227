package account

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"nodest/fault"
)

// Limits on guessing. The tries of one name from one address are counted together, so that
// a stranger who guesses does not lock out the owner of the name. An address may try many
// more, of all names and of links and tokens: many people may share it.
const (
	freeTries     = 5 // of one name from one address; each further one waits twice as long
	freeOfAddress = 100
	firstWait     = 2 * time.Second
	longestWait   = 15 * time.Minute
	addressWait   = 30 * time.Second // the longest for an address
	keepTries     = 10_000           // names and addresses remembered at once
)

// tryKey is what tries are counted by: a name from an address, an address alone (no name),
// or, for a change of the password, an account alone (no address).
type tryKey struct{ name, from string }

type tries struct {
	failures int
	until    time.Time // no try before
	last     time.Time
}

// limiter counts tries to sign in, in memory: each before it is looked at, so that tries
// at once count too. A restart forgets them: that costs an attacker more than it gives.
type limiter struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[tryKey]*tries
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, by: map[tryKey]*tries{}}
}

// try counts a try as failed, or refuses it with fault.RateLimited. Whoever finds out that
// it has not failed says so with succeeded or undo.
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

// undo takes back a try that had no outcome.
func (l *limiter) undo(name, from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keysOf(name, from) {
		if t := l.by[key]; t != nil {
			t.failures--
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

// limits returns how many tries are free, and the longest wait for a further one.
func (k tryKey) limits() (free int, longest time.Duration) {
	if k.name == "" {
		return freeOfAddress, addressWait
	}
	return freeTries, longestWait
}

// keysOf lists what a try is counted by. A sign-in by token or link has no name; a change
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

// Network is what stands for one client: an IPv4 address, or the /64 of an IPv6 address,
// because a client may choose any address of it.
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

// How many passwords are hashed at once, which takes 19 MiB and a core each, and how many
// more may wait, for some tenths of a second.
const (
	hashesAtOnce  = 2
	hashesWaiting = 16
)

// hashing is the queue of passwords that are to be hashed.
type hashing struct {
	places  chan struct{} // held while waiting and while hashing
	running chan struct{} // held while hashing
}

func newHashing() *hashing {
	return &hashing{make(chan struct{}, hashesAtOnce+hashesWaiting), make(chan struct{}, hashesAtOnce)}
}

// do runs f when it is its turn; fault.RateLimited if too many wait already.
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
