package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// A restart of PostgreSQL, or a connection that is cut, is not the caller's business if it is
// over soon: a transaction that has not begun waits for patience, one that is certainly undone
// runs again, and one whose commit was not answered asks whether it is stored.
const (
	patience  = 5 * time.Second
	cutRuns   = 3 // runs of a transaction that loses its connection each time
	cutPause  = 50 * time.Millisecond
	mostPause = 400 * time.Millisecond
)

// errUndone is returned by a transaction that lost its connection and has stored nothing.
type errUndone struct{ error }

func (e errUndone) Unwrap() error { return e.error }

// isLost reports whether PostgreSQL has gone away, or is not back yet. Too many connections, a
// wrong password and a full disk are something else.
func isLost(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "57P01", "57P02", pgStarting: // it stops, it has crashed, it starts
			return true
		}
		return pg.Code[:min(2, len(pg.Code))] == "08"
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && isCut(err)
}

// beginning is what PostgreSQL tells of a transaction that has begun.
type beginning struct {
	now         time.Time
	transaction string // its number; "" = it only reads
}

// begin begins a transaction on a connection of its own. Nothing has been done yet if that
// fails, so it tries for patience.
func (p *Postgres) begin(ctx context.Context, readOnly bool) (conn *sql.Conn, b beginning, err error) {
	err = patiently(ctx, func() error {
		if conn, err = p.db.Conn(ctx); err != nil {
			return err
		}
		if b, err = beginOn(ctx, conn, readOnly); err != nil {
			rollback(ctx, conn)
			_ = conn.Close()
		}
		return err
	})
	return conn, b, err
}

// patiently calls try again, with pauses, while PostgreSQL is away; for patience at most.
func patiently(ctx context.Context, try func() error) error {
	pause, until := cutPause, time.Now().Add(patience)
	for {
		err := try()
		if err == nil || !isLost(err) || time.Now().Add(pause).After(until) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
		pause = min(2*pause, mostPause)
	}
}

// beginOn begins a transaction and asks for its time, and the number of one that writes, in one
// round trip.
func beginOn(ctx context.Context, conn *sql.Conn, readOnly bool) (b beginning, err error) {
	query := "BEGIN; SELECT " + postgresClock + ", txid_current()"
	if readOnly {
		query = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT " + postgresClock
	}
	err = conn.Raw(func(raw any) error {
		results, err := raw.(*stdlib.Conn).Conn().PgConn().Exec(ctx, query).ReadAll()
		if err != nil {
			return err
		}
		row := results[1].Rows[0]
		ms, err := strconv.ParseInt(string(row[0]), 10, 64)
		b.now = Moment(ms)
		if len(row) > 1 {
			b.transaction = string(row[1])
		}
		return err
	})
	return b, err
}

// errRunning says that PostgreSQL has not noticed yet that the connection of a transaction is gone.
var errRunning = errors.Join(errors.New("the transaction has not ended"), sql.ErrConnDone)

// outcome asks on another connection whether a transaction is stored whose COMMIT failed with
// cause. It returns nil if it is, errUndone if it is not, and cause if PostgreSQL does not tell
// within patience.
func (p *Postgres) outcome(ctx context.Context, transaction string, cause error) (committed bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
	defer cancel()
	var status sql.NullString
	failed := patiently(ctx, func() error {
		err := p.db.QueryRowContext(ctx, "SELECT txid_status(CAST($1 AS bigint))", transaction).Scan(&status)
		if err == nil && status.String == "in progress" {
			err = errRunning
		}
		return err
	})
	switch {
	case failed != nil || !status.Valid:
		return false, cause
	case status.String == "committed":
		return true, nil
	}
	return false, errUndone{cause}
}
