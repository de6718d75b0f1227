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

// Spent reports that less time is left than a run of the pattern may take.
func (a *Allowance) Spent(p *Pattern) bool { return a.left < p.re.MatchTimeout }

// Try calls run, which runs the pattern once, and counts its time. A run that ends with ErrTime is
// tried once more, so that a machine that is busy for a moment turns no pattern off. When it
// fails again, the pattern is off: from then on, Try returns ErrTime for it at once.
// Where the allowance is spent it returns ErrSpent, so that all runs together stay within it.
func (a *Allowance) Try(p *Pattern, run func() error) error {
	switch {
	case p.off.Load():
		return ErrTime
	case a.Spent(p):
		return ErrSpent
	}
	err := a.timed(run)
	if !errors.Is(err, ErrTime) {
		return err
	}
	if a.Spent(p) {
		return ErrSpent
	}
	if err = a.timed(run); errors.Is(err, ErrTime) {
		p.off.Store(true)
	}
	return err
}

// timed counts the time of a run.
func (a *Allowance) timed(run func() error) error {
	started := time.Now()
	defer func() { a.left -= time.Since(started) }()
	return run()
}

// Off reports that Try no longer runs the pattern.
func (p *Pattern) Off() bool { return p.off.Load() }
