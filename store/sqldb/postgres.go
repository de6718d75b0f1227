package sqldb

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

	"nodest/fault"
)

// A transaction that lost a race runs again, after a pause that doubles from
// retryPause and has full jitter.
const (
	maxAttempts = 12
	retryPause  = 2 * time.Millisecond
	maxPause    = 200 * time.Millisecond
)

// Postgres is the backend that several processes share.
type Postgres struct {
	db        *sql.DB
	lock      *sql.Conn // held while the database is open
	now       func() time.Time
	deadlocks atomic.Int64 // found by the database; the lock order should leave none
}

// OpenPostgres opens the database at a URL.
func OpenPostgres(ctx context.Context, url string, o Options) (*Postgres, error) {
	config, err := PostgresConfig(url)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(max(o.Readers, 2) + 1) // migrations take two, the lock one
	db.SetMaxIdleConns(o.Readers)
	lock, err := LockSchema(ctx, db, true)
	if err == nil {
		if err = migratePostgres(ctx, db, o); err != nil {
			UnlockSchema(lock)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Postgres{db: db, lock: lock, now: o.Now}, nil
}

// PostgresConfig reads a URL.
func PostgresConfig(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL cannot be read") // the cause may hold the password
	}
	// Statements are not prepared: each takes one round trip with its arguments, is planned
	// for these, and works behind PgBouncer.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return config, nil
}

// LockSchema keeps a restore apart from processes that use the database: they share the
// lock, a restore holds it exclusively. It ends with the connection.
func LockSchema(ctx context.Context, db *sql.DB, shared bool) (*sql.Conn, error) {
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

// UnlockSchema releases the lock before it closes the connection: PostgreSQL notices the
// end of a connection a little later, and until then the database would seem in use.
func UnlockSchema(conn *sql.Conn) {
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
	return o.Migrate(ctx, db)
}

// Write runs fn in a transaction, and again if that lost a race against another one.
func (p *Postgres) Write(ctx context.Context, fn func(*Session) error) error {
	pause := retryPause
	for attempt := 1; ; attempt++ {
		err := Translate(p.once(ctx, nil, fn))
		if isDeadlock(err) {
			p.deadlocks.Add(1)
		}
		if err == nil || attempt >= attempts(err) {
			return err
		}
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
			return Translate(ctx.Err())
		}
		pause = min(2*pause, maxPause)
	}
}

// Read implements Backend.
func (p *Postgres) Read(ctx context.Context, fn func(*Session) error) error {
	return Translate(p.once(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, fn))
}

func (p *Postgres) once(ctx context.Context, o *sql.TxOptions, fn func(*Session) error) error {
	tx, err := p.db.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after a commit
	s := &Session{Postgres: true, caller: ctx, ctx: ctx, db: tx, now: p.now(), readOnly: o != nil}
	if err := guard(s, fn); err != nil {
		if attempts(s.err) > 1 { // whatever fn made of it
			return s.err
		}
		return err
	}
	return tx.Commit()
}

// Ping implements Backend.
func (p *Postgres) Ping(ctx context.Context) error { return Translate(p.db.PingContext(ctx)) }

// Settle does nothing: PostgreSQL removes what is left of deleted rows when it vacuums.
func (p *Postgres) Settle(context.Context) error { return nil }

// Deadlocks counts those that the database found in transactions of this backend.
func (p *Postgres) Deadlocks() int64 { return p.deadlocks.Load() }

// Close implements Backend.
func (p *Postgres) Close() error {
	UnlockSchema(p.lock)
	return p.db.Close()
}
