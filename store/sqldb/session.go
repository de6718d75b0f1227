package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"nodest/internal/fault"
)

// Backend runs closures in transactions of one of the two databases.
type Backend interface {
	// Write commits what fn did, or nothing of it. fn may run more than once.
	Write(ctx context.Context, fn func(*Session) error) error
	// Read runs fn on a consistent snapshot.
	Read(ctx context.Context, fn func(*Session) error) error
	// Glance is Read for a single statement, which PostgreSQL runs without a transaction
	// around it. The statement uses Clock where it needs the time, because Now is not set.
	Glance(ctx context.Context, fn func(*Session) error) error
	// Now is the time by the clock of transactions. Decisions about leases use the time of
	// their transaction instead.
	Now() time.Time
	Ping(ctx context.Context) error
	// Settle removes deleted data from the disk, as far as the backend controls that.
	Settle(ctx context.Context) error
	Close() error
}

// Session is an open transaction. After a statement has failed it runs no others, because
// PostgreSQL refuses them, and SQLite may have rolled back already, so that they would be
// committed alone.
type Session struct {
	Postgres bool

	// Inserted is told the columns of rows that Insert has stored in a table, and their values,
	// row by row; nil = nobody wants to know.
	Inserted func(table string, columns []string, values []any)

	// Writing is told each statement that may write, before it runs; nil = nobody wants to know.
	Writing func(query string)

	caller   context.Context // whose end stops the transaction between two statements
	ctx      context.Context // for statements
	db       Queryer
	now      time.Time
	readOnly bool
	wrote    bool          // or may have written
	ran      *atomic.Int64 // counts statements; nil = nobody wants to know
	err      error
	cut      bool // err is the loss of the connection to PostgreSQL
	over     bool // the closure has returned
}

// Queryer is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type Queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Reading returns a session of a transaction that only reads.
func Reading(ctx context.Context, tx *sql.Tx, postgres bool) *Session {
	return &Session{Postgres: postgres, caller: ctx, ctx: ctx, db: tx, now: time.Now(), readOnly: true}
}

// Now is the time at which the transaction began, in whole milliseconds. On PostgreSQL it
// is the database's clock, so that processes whose own clocks differ agree about what
// has expired.
func (s *Session) Now() time.Time { return s.now }

// Caller is the context of whoever began the transaction.
func (s *Session) Caller() context.Context { return s.caller }

// Clock is Now as an expression in a statement, with its arguments.
func (s *Session) Clock() (string, []any) {
	if s.now.IsZero() {
		return postgresClock, nil
	}
	return "?", []any{s.now} // so that the text stays the same, and parsed
}

// Ready returns the error after which the transaction cannot be used, if there is one.
func (s *Session) Ready() error {
	switch {
	case s.err != nil:
		return s.err
	case s.over: // a session that was kept too long
		return errors.New("sqldb: the transaction has ended")
	}
	return s.caller.Err()
}

// Writable is Ready for what changes something.
func (s *Session) Writable() error {
	if s.readOnly {
		return errors.New("sqldb: a read-only transaction cannot write")
	}
	return s.Ready()
}

// Unless returns s or, with an error, a session on which every statement returns it. So a
// statement is written together with what must hold for it.
func (s *Session) Unless(err error) *Session {
	if err == nil {
		return s
	}
	return &Session{caller: s.caller, err: err}
}

func (s *Session) fail(err error) error {
	s.err, s.cut = Translate(err), s.Postgres && isLost(err)
	return s.err
}

// Exec runs a statement and returns the number of rows that it changed.
func (s *Session) Exec(query string, args ...any) (int64, error) {
	query, args, err := s.bind(query, args)
	if err != nil {
		return 0, err
	}
	return s.exec(query, args)
}

// ExecWithin is Exec of a statement that may wait for another transaction on PostgreSQL. If
// that takes longer than d, the statement fails with late, and so does the transaction.
func (s *Session) ExecWithin(d time.Duration, late error, query string, args ...any) (int64, error) {
	if !s.Postgres {
		return s.Exec(query, args...)
	}
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	bounded := *s
	bounded.ctx = ctx
	n, err := bounded.Exec(query, args...)
	s.err, s.cut = bounded.err, bounded.cut
	if err != nil && ctx.Err() != nil && s.ctx.Err() == nil {
		s.err, err = late, late
	}
	return n, err
}

// Run is Exec for those who do not need the number.
func (s *Session) Run(query string, args ...any) error {
	_, err := s.Exec(query, args...)
	return err
}

// ExecOne is Exec that returns fault.NotFound, "no such " and what, where it changed
// no row.
func (s *Session) ExecOne(what, query string, args ...any) error {
	n, err := s.Exec(query, args...)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "no such %s", what)
	}
	return err
}

// Require returns fault.NotFound, "no such " and what, unless a query finds a row.
func (s *Session) Require(what, query string, args ...any) error {
	found, err := s.Has(query, args...)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "no such %s", what)
	}
	return err
}

// exec is Exec of a statement whose arguments are bound.
func (s *Session) exec(query string, args []any) (int64, error) {
	if err := s.Writable(); err != nil {
		return 0, err
	}
	s.note(query, true)
	result, err := s.db.ExecContext(s.ctx, query, args...)
	if err != nil {
		return 0, s.fail(err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, s.fail(err)
	}
	return n, nil
}

// query begins to read; the caller closes the rows.
func (s *Session) query(query string, args []any) (*sql.Rows, error) {
	query, args, err := s.bind(query, args)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(); err != nil {
		return nil, err
	}
	s.note(query, !strings.HasPrefix(query, "SELECT"))
	rows, err := s.db.QueryContext(s.ctx, query, args...)
	if err != nil {
		return nil, s.fail(err)
	}
	return rows, nil
}

// note counts a statement that is about to run.
func (s *Session) note(query string, writes bool) {
	if writes {
		s.wrote = true
		if s.Writing != nil {
			s.Writing(query)
		}
	}
	if s.ran != nil {
		s.ran.Add(1)
	}
}

// Has says whether a query finds a row.
func (s *Session) Has(query string, args ...any) (found bool, err error) {
	rows, err := s.query(query, args)
	if err != nil {
		return false, err
	}
	defer rows.Close() //nolint:errcheck // Err reports the error of Close too
	found = rows.Next()
	if err := rows.Err(); err != nil {
		return false, s.fail(err)
	}
	return found, nil
}

// Advance adds n to a number in the row that where selects, and returns it; found is false if there
// is no such row. On SQLite, a RETURNING would make a temporary table each time.
func (s *Session) Advance(table, column string, n int64, where string, args ...any) (value int64, found bool, err error) {
	update := "UPDATE " + table + " SET " + column + " = " + column + " + ? WHERE " + where
	all := append([]any{n}, args...)
	if s.Postgres {
		row, err := One[int64](s, update+" RETURNING "+column, all...)
		if row == nil {
			return 0, false, err
		}
		return *row, true, err
	}
	changed, err := s.Exec(update, all...)
	if err != nil || changed == 0 {
		return 0, false, err
	}
	value, err = Value[int64](s, "SELECT "+column+" FROM "+table+" WHERE "+where, args...)
	return value, true, err
}

// ForUpdate is the end of a SELECT whose rows must not change until the transaction ends.
// SQLite needs none: there is one writer.
func (s *Session) ForUpdate() string { return s.lock(" FOR UPDATE") }

// ForNoKeyUpdate is ForUpdate with a weaker lock: others may still insert rows that
// refer to the locked one.
func (s *Session) ForNoKeyUpdate() string { return s.lock(" FOR NO KEY UPDATE") }

// ForShare is ForUpdate with a lock that others may take as well.
func (s *Session) ForShare() string { return s.lock(" FOR SHARE") }

// SkipLocked is ForUpdate that leaves out rows that another transaction has locked.
func (s *Session) SkipLocked() string { return s.lock(" FOR UPDATE SKIP LOCKED") }

func (s *Session) lock(words string) string {
	if s.Postgres {
		return words
	}
	return ""
}

// Lose ends the transaction because another one came first; on PostgreSQL it begins
// again, whatever the closure makes of the error.
func (s *Session) Lose(err error) error {
	if s.Postgres {
		s.err = errRace{err}
		return s.err
	}
	return err
}

// Analyze has PostgreSQL gather statistics of a table of which it has none yet. It is
// called after many rows were added to a new table and before others follow that refer
// to them: with the plan for an empty table each check of a reference reads all rows of
// the user. Later autovacuum does this.
func (s *Session) Analyze(table string) error {
	if !s.Postgres {
		return nil
	}
	never, err := s.Has("SELECT 1 FROM pg_class WHERE oid = CAST(? AS regclass) AND reltuples < 0", table)
	if err == nil && never {
		_, err = s.Exec("ANALYZE " + table)
	}
	return err
}

// guard runs fn and turns a panic into an error, so that one closure cannot end
// the process or the transactions of others.
func guard(s *Session, fn func(*Session) error) (err error) {
	defer func() {
		s.over = true
		if p := recover(); p != nil {
			err = fmt.Errorf("sqldb: panic in a transaction: %v\n%s", p, debug.Stack())
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
	errGone = errors.New("sqldb: a transaction was left without an end")
)
