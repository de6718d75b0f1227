package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// presence is a connection that holds a lock in the name of this process for as long as the
// process lives. When a process dies, PostgreSQL closes its connection and releases the
// lock, which tells the others. A lost connection is replaced at once. It is not from the pool,
// so that this never waits for one.
type presence struct {
	db      *sql.DB // for this connection only
	process string
	log     *slog.Logger
	renew   chan struct{} // asks for the lock to be taken again
	channel string        // notifications between processes go through it
	heard   atomic.Pointer[func(kind string, anew bool)]
	end     context.CancelFunc
	ended   chan struct{}
}

// presencePause is how long a process waits before it tries again to take its lock.
const presencePause = 200 * time.Millisecond

// presenceKey is the key of the lock of a process; process is an expression.
func presenceKey(process string) string {
	return "hashtextextended('nodest process ' || " + process + ", 0)"
}

// Gone is a condition on PostgreSQL: the process that an expression names holds no lock, so it
// has died, or it has just lost its connection.
func Gone(process string) string {
	return "NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1" +
		" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())" +
		" AND (CAST(classid AS BIGINT) << 32 | CAST(objid AS BIGINT)) = " + presenceKey(process) + ")"
}

// lock connects and takes the locks of this process.
func (p *presence) lock(ctx context.Context) (*sql.Conn, error) {
	conn, err := LockSchema(ctx, p.db, true)
	if err != nil {
		return nil, err
	}
	// A shared lock can be taken even while PostgreSQL still holds it for the connection that
	// was cut.
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock_shared("+presenceKey("$1::TEXT")+")", p.process); err != nil {
		UnlockSchema(conn)
		return nil, fmt.Errorf("cannot lock the name of the process: %w", err)
	}
	if err := p.listen(ctx, conn); err != nil {
		UnlockSchema(conn)
		return nil, fmt.Errorf("cannot listen to other processes: %w", err)
	}
	return conn, nil
}

// listen has this connection hear what Notify sends. The channel is of this schema alone.
func (p *presence) listen(ctx context.Context, conn *sql.Conn) error {
	if err := conn.QueryRowContext(ctx, "SELECT "+relayChannel).Scan(&p.channel); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "LISTEN "+p.channel)
	return err
}

// relayChannel is the channel of notifications as an expression; it has no character that needs quotes.
const relayChannel = "'nodest_relay_' || md5(COALESCE(current_schema(), ''))"

// Listen has fn told of each notification of another process, and with anew that some may have been missed. fn does
// not block; nil ends it.
func (p *Postgres) Listen(fn func(kind string, anew bool)) {
	if fn == nil {
		p.presence.heard.Store(nil)
		return
	}
	p.presence.heard.Store(&fn)
}

// Notify tells the other processes, when the transaction ends, that there is something new of a kind, a letter.
func (p *Postgres) Notify(s *Session, kind string) error {
	return s.Run("SELECT pg_notify("+relayChannel+", ?)", kind+p.presence.process)
}

// tell passes a notification on.
func (p *presence) tell(kind string, anew bool) {
	if fn := p.heard.Load(); fn != nil {
		(*fn)(kind, anew)
	}
}

// openPresence takes the locks of this process and keeps them until close.
func openPresence(ctx context.Context, config *pgx.ConnConfig, o Options) (*presence, error) {
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(1)
	staying, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &presence{db: db, process: o.Process, log: o.Log, renew: make(chan struct{}, 1), end: end, ended: make(chan struct{})}
	conn, err := p.lock(ctx)
	if err != nil {
		end()
		return nil, errors.Join(err, db.Close())
	}
	go p.keep(staying, conn)
	return p, nil
}

func (p *presence) keep(ctx context.Context, conn *sql.Conn) {
	defer close(p.ended)
	for {
		if conn != nil {
			p.hold(ctx, conn)
			UnlockSchema(conn)
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if conn, err = p.lock(ctx); err == nil {
			p.tell("", true)
			continue
		}
		p.log.WarnContext(ctx, "lock of this process not taken", "err", err)
		select {
		case <-time.After(presencePause):
		case <-ctx.Done():
		}
	}
}

// hold returns when the connection has ended, the lock is to be taken again, or ctx ends.
func (p *presence) hold(ctx context.Context, conn *sql.Conn) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-p.renew:
			end()
		case <-ctx.Done():
		}
	}()
	_ = conn.Raw(func(raw any) error {
		own := raw.(*stdlib.Conn).Conn()
		for {
			n, err := own.WaitForNotification(ctx)
			if err != nil {
				return err
			}
			if kind := n.Payload[:min(1, len(n.Payload))]; n.Payload != kind+p.process {
				p.tell(kind, false)
			}
		}
	})
}

func (p *presence) close() error {
	p.end()
	<-p.ended
	return p.db.Close()
}

// Renew takes the lock of this process again, because it was found to be missing. It does not
// wait.
func (p *Postgres) Renew() {
	select {
	case p.presence.renew <- struct{}{}:
	default: // asked for already
	}
}
