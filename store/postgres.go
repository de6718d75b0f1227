package store

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

// A transaction that lost a race runs again, after a pause that doubles from
// retryPause and has full jitter.
const (
	maxAttempts = 12
	retryPause  = 2 * time.Millisecond
	maxPause    = 200 * time.Millisecond
)

// postgres is the backend that several processes share.
type postgres struct {
	db        *bun.DB
	now       func() int64
	deadlocks atomic.Int64 // found by the database; the lock order should leave none
}

func openPostgres(ctx context.Context, o Options) (*postgres, error) {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("store: the database URL cannot be read") // the cause may hold the password
	}
	// bun writes the arguments into the statement, so that no two are alike:
	// preparing them would cost a round trip and help nobody.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(max(o.Readers, 2)) // migrations take two
	db.SetMaxIdleConns(o.Readers)
	if err := migratePostgres(ctx, db, o); err != nil {
		_ = db.Close()
		return nil, err
	}
	return &postgres{db: bun.NewDB(db, pgdialect.New()), now: o.millis}, nil
}

// migratePostgres lets one process migrate at a time. The lock is of this
// database and schema, and ends with its connection.
func migratePostgres(ctx context.Context, db *sql.DB, o Options) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("store: connect to PostgreSQL: %w", err)
	}
	defer conn.Close() //nolint:errcheck // gives it back to the pool
	const key = "hashtextextended('nodest migrations ' || current_schema(), 0)"
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock("+key+")"); err != nil {
		return fmt.Errorf("store: wait for the migrations of another process: %w", err)
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock("+key+")")
	}()
	return migrate(ctx, db, postgresSchema, o.Log)
}

// write runs fn in a transaction and, where it lost a race against another one,
// again.
func (p *postgres) write(ctx context.Context, fn func(*session) error) error {
	pause := retryPause
	for attempt := 1; ; attempt++ {
		err := p.once(ctx, nil, fn)
		if isDeadlock(err) {
			p.deadlocks.Add(1)
		}
		if err == nil || attempt >= attempts(err) {
			return err
		}
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, maxPause)
	}
}

func (p *postgres) read(ctx context.Context, fn func(*session) error) error {
	return p.once(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, fn)
}

func (p *postgres) once(ctx context.Context, o *sql.TxOptions, fn func(*session) error) error {
	tx, err := p.db.BeginTx(ctx, o)
	if err != nil {
		return translate(err)
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after a commit
	s := &session{caller: ctx, ctx: ctx, db: tx, postgres: true, now: p.now()}
	if err := guard(s, fn); err != nil {
		if attempts(s.err) > 1 { // whatever fn made of it
			return s.err
		}
		return err
	}
	return translate(tx.Commit())
}

func (p *postgres) ping(ctx context.Context) error { return p.db.PingContext(ctx) }

func (p *postgres) close() error { return p.db.Close() }
