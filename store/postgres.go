package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"nodest/fault"
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
	lock      *sql.Conn // held while the database is open
	now       func() int64
	deadlocks atomic.Int64 // found by the database; the lock order should leave none
}

func openPostgres(ctx context.Context, o Options) (*postgres, error) {
	config, err := postgresConfig(o.URL)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(max(o.Readers, 2) + 1) // migrations take two, the lock one
	db.SetMaxIdleConns(o.Readers)
	lock, err := lockSchema(ctx, db, true)
	if err == nil {
		if err = migratePostgres(ctx, db, o); err != nil {
			unlockSchema(lock)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &postgres{db: bun.NewDB(db, pgdialect.New()), lock: lock, now: o.millis}, nil
}

func postgresConfig(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL cannot be read") // the cause may hold the password
	}
	// bun writes the arguments into the statement, so that no two are alike:
	// preparing them would cost a round trip and help nobody.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return config, nil
}

// lockSchema keeps a restore and processes that use the database apart: they
// share the lock, a restore has it alone. It ends with the connection.
func lockSchema(ctx context.Context, db *sql.DB, shared bool) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, connectError(err)
	}
	lock, busy := "pg_try_advisory_lock", "the database is in use by another nodest process; stop it first"
	if shared {
		lock, busy = lock+"_shared", "a restore into this database is running"
	}
	var ok bool
	if err := conn.QueryRowContext(ctx, "SELECT "+lock+"(hashtextextended('nodest restore ' || COALESCE(current_schema(), ''), 0))").Scan(&ok); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock the database: %w", err), conn.Close())
	}
	if !ok {
		return nil, errors.Join(fault.New(fault.Conflict, "%s", busy), conn.Close())
	}
	return conn, nil
}

// unlockSchema gives the lock back before the connection is closed: PostgreSQL
// notices the end of a connection a little later, and who comes next would find
// the database in use.
func unlockSchema(conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = conn.ExecContext(ctx, "SELECT pg_advisory_unlock_all()") // a connection that is gone has no lock
	_ = conn.Close()
}

// migratePostgres lets one process migrate at a time. The lock is of this
// database and schema, and ends with its connection.
func migratePostgres(ctx context.Context, db *sql.DB, o Options) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return connectError(err)
	}
	defer conn.Close() //nolint:errcheck // gives it back to the pool
	const key = "hashtextextended('nodest migrations ' || current_schema(), 0)"
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock("+key+")"); err != nil {
		return fmt.Errorf("cannot wait for the migrations of another process: %w", err)
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

func (p *postgres) close() error {
	unlockSchema(p.lock)
	return p.db.Close()
}

// analyze has PostgreSQL gather statistics of a table of which it has none yet. It is
// called after many rows were added to a new table and before others follow that refer
// to them: with the plan for an empty table each check of a reference reads all rows of
// the user. Later autovacuum does this.
func (s *session) analyze(table string) error {
	if !s.postgres {
		return nil
	}
	var never bool
	_, err := s.scan(s.raw("SELECT reltuples < 0 FROM pg_class WHERE oid = CAST(? AS regclass)", text(table)), &never)
	if err != nil || !never {
		return err
	}
	_, err = s.exec(s.raw("ANALYZE " + table))
	return err
}
