package storetest

import (
	"context"
	"errors"

	"nodest/internal/op"
)

// ErrKilled is what everything returns after the death of a Life.
var ErrKilled = errors.New("the process was killed")

// Life is that of a process. It ends before one of its steps: before a write, before a commit, or behind a commit whose
// answer nobody gets.
type Life struct {
	Ends  int // before this step, from 1; 0 = never
	steps int
	over  bool
}

// Over reports whether it has ended.
func (l *Life) Over() bool { return l.over }

// Steps is how many steps it has had.
func (l *Life) Steps() int { return l.steps }

// Step is the next step; ErrKilled if it is not taken any more.
func (l *Life) Step() error {
	if l.over {
		return ErrKilled
	}
	l.steps++
	if l.over = l.steps == l.Ends; l.over {
		return ErrKilled
	}
	return nil
}

// Mortal is the store of a process with a Life. A transaction in which it ends is rolled back, as that of a process that
// is killed.
type Mortal[X any] struct {
	op.Store[X]
	Life *Life
	// Writes makes each write of a transaction a step; nil = only the commits are steps.
	Writes func(tx X, l *Life) X
}

// Update is one transaction, unless the process dies.
func (m Mortal[X]) Update(ctx context.Context, userID string, fn func(tx X) error) error {
	if m.Life.over {
		return ErrKilled
	}
	err := m.Store.Update(ctx, userID, func(tx X) error {
		if m.Writes != nil {
			tx = m.Writes(tx, m.Life)
		}
		if err := fn(tx); err != nil {
			return err
		}
		return m.Life.Step()
	})
	if err != nil {
		return err
	}
	return m.Life.Step()
}
