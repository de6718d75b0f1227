package jsregex

import (
	"errors"
	"time"
)

// ErrSpent is the error of a run for which no time is left.
var ErrSpent = errors.New("the time for all patterns together is spent")

// Allowance is the time that the runs of many patterns may take together, such as those for one
// prompt. It is not safe for concurrent use.
type Allowance struct{ left time.Duration }

// NewAllowance returns an allowance of a time.
func NewAllowance(all time.Duration) *Allowance { return &Allowance{left: all} }

// Spent reports that no time is left.
func (a *Allowance) Spent() bool { return a.left <= 0 }

// Try calls run, which runs the pattern once, and counts its time. A run that ends with ErrTime is
// tried once more, so that a machine that is busy for a moment turns no pattern off. When it
// fails again, the pattern is off: from then on, Try returns ErrTime for it at once.
// Without time it returns ErrSpent.
func (a *Allowance) Try(p *Pattern, run func() error) error {
	switch {
	case p.off.Load():
		return ErrTime
	case a.Spent():
		return ErrSpent
	}
	started := time.Now()
	err := run()
	if errors.Is(err, ErrTime) {
		err = run()
	}
	a.left -= time.Since(started)
	if errors.Is(err, ErrTime) {
		p.off.Store(true)
	}
	return err
}

// Off reports that Try no longer runs the pattern.
func (p *Pattern) Off() bool { return p.off.Load() }
