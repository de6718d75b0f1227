package sqldb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"nodest/internal/fault"
)

// pgStarting is the SQLSTATE of a PostgreSQL that is starting, stopping or
// recovering.
const pgStarting = "57P03"

const waitPause = 500 * time.Millisecond // between two attempts to connect

// WaitForPostgres returns when the PostgreSQL at the URL accepts connections, for a server
// that is started together with its database. It waits, for patience at most, only while
// PostgreSQL does not answer or is still starting; an error that waiting does not cure,
// such as a wrong password, is returned at once. Each new cause is logged.
func WaitForPostgres(ctx context.Context, url string, patience time.Duration, log *slog.Logger) error {
	config, err := PostgresConfig(url)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, _ := limit.Deadline()
	told := ""
	for {
		conn, err := pgx.ConnectConfig(limit, config)
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !mayStillStart(err) {
			return connectError(err)
		}
		cause := connectCause(err).Error()
		if time.Until(end) <= 0 && told != "" {
			cause = told // an attempt that was cut short says nothing of the server
		}
		if cause != told {
			told = cause
			log.WarnContext(ctx, "PostgreSQL is not ready yet; waiting", "host", config.Host, "port", config.Port, "atMost", patience, "cause", cause)
		}
		select {
		case <-time.After(waitPause):
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("PostgreSQL at %s:%d did not respond within %s: %s", config.Host, config.Port, patience, cause)
		}
	}
}

// mayStillStart tells a PostgreSQL that is not up yet from one that refuses us.
func mayStillStart(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == pgStarting
	}
	var dial *net.OpError // refused, no route, no socket, no such host
	return errors.As(err, &dial) || errors.Is(err, context.DeadlineExceeded)
}

// connectError says in one line which PostgreSQL refuses us, and why.
func connectError(err error) error {
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return fmt.Errorf("cannot connect to PostgreSQL: %w", err)
	}
	return fmt.Errorf("cannot connect to PostgreSQL at %s:%d: %w", failed.Config.Host, failed.Config.Port, connectCause(err))
}

// connectCause is why no connection was made.
func connectCause(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return errors.New(pg.Message)
	}
	return fault.DialCause(err)
}
