package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/uptrace/bun"

	"nodest/fault"
)

// backend runs closures in transactions of one of the two databases.
type backend interface {
	// write commits what fn did, or nothing of it. fn may run more than once.
	write(ctx context.Context, fn func(*session) error) error
	// read runs fn on a consistent snapshot.
	read(ctx context.Context, fn func(*session) error) error
	ping(ctx context.Context) error
	close() error
}

// session is a transaction on its way. All statements go through exec and scan:
// after the first one that failed there are no more, because PostgreSQL refuses
// them and SQLite may have rolled back already, so that they would stand alone.
type session struct {
	caller   context.Context // whose end stops the transaction between two statements
	ctx      context.Context // for statements
	db       bun.IDB
	binds    bun.IConn // that arguments are bound on; nil = they are written into the text
	postgres bool
	now      int64 // milliseconds
	err      error
	over     bool // the closure has returned
}

type execer interface {
	Exec(ctx context.Context, dest ...any) (sql.Result, error)
}

type scanner interface {
	Scan(ctx context.Context, dest ...any) error
}

// exec runs a statement and returns the number of rows that it changed.
func (s *session) exec(q execer) (int64, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	result, err := q.Exec(s.ctx)
	if err != nil {
		return 0, s.fail(err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, s.fail(err)
	}
	return n, nil
}

// scan runs a query; found is false when one row was wanted and there is none.
func (s *session) scan(q scanner, dest ...any) (found bool, err error) {
	if err := s.ready(); err != nil {
		return false, err
	}
	err = q.Scan(s.ctx, dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, s.fail(err)
	}
	return true, nil
}

func (s *session) ready() error {
	switch {
	case s.err != nil:
		return s.err
	case s.over: // a tx that was kept too long
		return errors.New("store: the transaction has ended")
	}
	return s.caller.Err()
}

func (s *session) fail(err error) error {
	s.err = translate(err)
	return s.err
}

// forUpdate ends a SELECT whose rows must not change until the transaction ends.
// SQLite needs no word for it: there is one writer.
func (s *session) forUpdate() string {
	if s.postgres {
		return " FOR UPDATE"
	}
	return ""
}

// guard runs fn and turns a panic into an error, so that one closure cannot end
// the process or the transactions of others.
func guard(s *session, fn func(*session) error) (err error) {
	defer func() {
		s.over = true
		if p := recover(); p != nil {
			err = fmt.Errorf("store: panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	if err := s.caller.Err(); err != nil {
		return err
	}
	if err := fn(s); err != nil {
		return err
	}
	return s.err
}

var (
	errClosed = fault.New(fault.ShuttingDown, "the database is closed")
	// errGone: the goroutine of a closure ended within it (runtime.Goexit).
	errGone = errors.New("store: a transaction was left without an end")
)
