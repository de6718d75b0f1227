package account

import (
	"sync"
	"time"

	"nodest/fault"
)

// Limits on guessing passwords: after freeTries failures of one name or one
// address each further try waits twice as long, up to longestWait.
const (
	freeTries   = 5
	firstWait   = 2 * time.Second
	longestWait = 15 * time.Minute
	keepTries   = 10_000 // names and addresses remembered at once
)

type tries struct {
	failures int
	until    time.Time // no try before
	last     time.Time
}

// limiter counts failed sign-ins in memory. A restart forgets them: that costs
// an attacker more than it gives.
type limiter struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[string]*tries
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, by: map[string]*tries{}}
}

func (l *limiter) allow(name, from string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, key := range keysOf(name, from) {
		if t := l.by[key]; t != nil && now.Before(t.until) {
			return fault.New(fault.RateLimited, "too many failed sign-ins; try again later").After(t.until.Sub(now))
		}
	}
	return nil
}

func (l *limiter) failed(name, from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.makeRoom(now)
	for _, key := range keysOf(name, from) {
		t := l.by[key]
		if t == nil || now.Sub(t.last) > longestWait {
			t = &tries{}
			l.by[key] = t
		}
		t.failures++
		t.last = now
		if over := t.failures - freeTries; over >= 0 {
			t.until = now.Add(min(longestWait, firstWait<<min(over, 20)))
		}
	}
}

// keysOf lists what failures are counted by. A sign-in by token or link has no
// name; a change of a password has no address.
func keysOf(name, from string) []string {
	var keys []string
	if name != "" {
		keys = append(keys, "name/"+name)
	}
	if from != "" {
		keys = append(keys, "from/"+from)
	}
	return keys
}

func (l *limiter) succeeded(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, "name/"+name)
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
