package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pgStarting is the SQLSTATE of a PostgreSQL that is starting, stopping or
// recovering.
const pgStarting = "57P03"

const (
	waitPause = 500 * time.Millisecond // between two attempts to connect
	waitTell  = 5 * time.Second        // between two lines in the log
)

// WaitForPostgres returns when the PostgreSQL at the URL takes connections, for
// a server that is started together with its database. It waits only for a
// PostgreSQL that does not answer or is still starting, and for patience at
// most; what waiting does not cure, such as a wrong password, is returned at
// once.
func WaitForPostgres(ctx context.Context, url string, patience time.Duration, log *slog.Logger) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("store: the database URL cannot be read") // the cause may hold the password
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var told time.Time
	for {
		conn, err := pgx.ConnectConfig(limit, config)
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !mayStillStart(err) {
			return fmt.Errorf("store: connect to PostgreSQL: %w", err)
		}
		if time.Since(told) >= waitTell {
			told = time.Now()
			log.WarnContext(ctx, "PostgreSQL is not ready yet; waiting", "host", config.Host, "port", config.Port, "atMost", patience, "cause", lastLine(err))
		}
		select {
		case <-time.After(waitPause):
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("PostgreSQL at %s:%d did not respond within %s: %s", config.Host, config.Port, patience, lastLine(err))
		}
	}
}

// mayStillStart tells a PostgreSQL that is not there yet from one that refuses us.
func mayStillStart(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == pgStarting
	}
	var dial *net.OpError // refused, no route, no socket, no such host
	return errors.As(err, &dial) || errors.Is(err, context.DeadlineExceeded)
}

// lastLine is the innermost cause of an error.
func lastLine(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
