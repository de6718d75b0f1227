package framework

import (
	"sync"
	"time"
)

// patience bounds what the scripts of one set may cost together, whoever runs
// them and over however many texts: the limit of one script says nothing about
// thousands of them, nor about a chat in which each message meets the same
// hostile one. It is safe for concurrent use.
type patience struct {
	limit time.Duration // of one script for one text

	mu      sync.Mutex
	used    time.Duration // by slow runs, less what has been forgiven since
	at      time.Time     // when used was counted
	resting map[*pattern]time.Time
}

// In multiples of the limit of a script. With ScriptLimit a set may spend five
// seconds a minute on slow runs.
const (
	slowRun    = 0.1 // shorter runs cost nothing
	setMay     = 20
	setRecover = 240 // until setMay is forgiven
	restFor    = 240 // of a script that ran out of its time
)

// allows reports whether a script may run now.
func (p *patience) allows(sc *pattern) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used == 0 && p.resting == nil {
		return true // nothing was ever slow
	}
	now := time.Now()
	if until, rests := p.resting[sc]; rests {
		if now.Before(until) {
			return false
		}
		delete(p.resting, sc)
	}
	p.used = max(0, p.used-now.Sub(p.at)*setMay/setRecover)
	p.at = now
	return p.used < setMay*p.limit
}

// note counts a run of a script; failed says that it ran out of its time.
func (p *patience) note(sc *pattern, took time.Duration, failed bool) {
	if !failed && took < time.Duration(slowRun*float64(p.limit)) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.used == 0 {
		p.at = now
	}
	p.used += took
	if failed {
		if p.resting == nil {
			p.resting = map[*pattern]time.Time{}
		}
		p.resting[sc] = now.Add(restFor * sc.re.MatchTimeout)
	}
}
