package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"nodest/internal/fault"
)

// A transaction that lost a race runs again, after a pause that doubles from
// retryPause and has full jitter.
const (
	maxAttempts = 12
	retryPause  = 2 * time.Millisecond
	maxPause    = 200 * time.Millisecond
)

// postgresClock is the time at which a transaction began, in milliseconds.
const postgresClock = "CAST(FLOOR(EXTRACT(EPOCH FROM now()) * 1000) AS BIGINT)"

// Postgres is the backend that several processes share.
type Postgres struct {
	db        *sql.DB
	presence  *presence
	now       func() time.Time // nil = the database's clock
	read      atomic.Pointer[reading]
	deadlocks atomic.Int64 // found by the database; the lock order should leave none
}

// OpenPostgres opens the database at a URL.
func OpenPostgres(ctx context.Context, url string, o Options) (*Postgres, error) {
	config, err := PostgresConfig(url)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(max(o.Readers, 2)) // migrations take two
	db.SetMaxIdleConns(o.Readers)
	p := &Postgres{db: db, now: o.Now}
	if p.presence, err = openPresence(ctx, config, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err = migratePostgres(ctx, db, o); err == nil {
		err = p.Read(ctx, func(*Session) error { return nil }) // the first reading of the clock
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// reading is what the database's clock said, and when.
type reading struct{ now, at time.Time }

// Now implements Backend: what the database's clock said at the start of the latest
// transaction, and the time that has passed since.
func (p *Postgres) Now() time.Time {
	if p.now != nil {
		return p.now()
	}
	r := p.read.Load()
	return r.now.Add(time.Since(r.at))
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
	lock, busy := "pg_try_advisory_lock", "a server runs on this database. Stop it, then restore"
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

// Write runs fn in a transaction, and again if that lost a race against another one, or its
// connection before the commit.
func (p *Postgres) Write(ctx context.Context, fn func(*Session) error) error {
	pause := retryPause
	for attempt := 1; ; attempt++ {
		err := Translate(p.once(ctx, false, fn))
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
	return Translate(p.once(ctx, true, fn))
}

// Glance implements Backend.
func (p *Postgres) Glance(ctx context.Context, fn func(*Session) error) error {
	s := &Session{Postgres: true, caller: ctx, ctx: ctx, db: p.db, readOnly: true}
	if p.now != nil {
		s.now = p.now()
	}
	return guard(s, fn)
}

func (p *Postgres) once(ctx context.Context, readOnly bool, fn func(*Session) error) (err error) {
	conn, b, err := p.begin(ctx, readOnly)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives it back to the pool
	s := &Session{Postgres: true, caller: ctx, ctx: ctx, db: conn, readOnly: readOnly, now: b.now}
	committed := false
	defer func() {
		if !committed {
			rollback(ctx, conn)
		}
	}()
	p.read.Store(&reading{s.now, time.Now()})
	if p.now != nil {
		s.now = p.now()
	}
	if err := guard(s, fn); err != nil {
		if attempts(s.err) > 1 { // whatever fn made of it
			return s.err
		}
		if s.cut && !readOnly && ctx.Err() == nil {
			return errUndone{s.err}
		}
		return err
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	if committed = err == nil; committed || readOnly || !isLost(err) {
		return err
	}
	committed, err = p.outcome(ctx, b.transaction, err)
	return err
}

// rollback ends a transaction without its effect. A connection on which that fails is closed,
// because the transaction would go on.
func rollback(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}

// Ping implements Backend.
func (p *Postgres) Ping(ctx context.Context) error { return Translate(p.db.PingContext(ctx)) }

// Settle does nothing: PostgreSQL removes what is left of deleted rows when it vacuums.
func (p *Postgres) Settle(context.Context) error { return nil }

// Deadlocks counts those that the database found in transactions of this backend.
func (p *Postgres) Deadlocks() int64 { return p.deadlocks.Load() }

// Close implements Backend.
func (p *Postgres) Close() error {
	return errors.Join(p.presence.close(), p.db.Close())
}
