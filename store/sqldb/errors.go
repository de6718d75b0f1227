package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"nodest/internal/fault"
)

// SQLSTATE codes of PostgreSQL that mean something to us.
const (
	pgUnique        = "23505"
	pgForeignKey    = "23503"
	pgSerialization = "40001"
	pgDeadlock      = "40P01"
	pgDiskFull      = "53100"
	pgConnections   = "53300" // too many
	pgLocked        = "55P03" // a lock was not available
	pgCancelled     = "57014" // a statement ran too long
	pgNoDatabase    = "3D000"
)

// Translate gives errors of both drivers, and the caller's expired deadline, the codes that
// callers know. Other errors, and those with a code, stay as they are.
func Translate(err error) error {
	var coded *fault.Error
	var lite sqlite3.Error
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &lite):
		return translateSQLite(lite)
	case errors.As(err, &pg):
		return translatePostgres(pg)
	case errors.Is(err, context.DeadlineExceeded):
		return busy(err)
	case isCut(err):
		return unavailable(err)
	}
	return err
}

// isCut reports whether the connection to PostgreSQL failed or was lost.
func isCut(err error) bool {
	var failed *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &failed) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

func translateSQLite(err sqlite3.Error) error {
	switch {
	case err.Code == sqlite3.ErrFull,
		err.SystemErrno == syscall.ENOSPC, err.SystemErrno == syscall.EDQUOT:
		return full(err)
	case err.ExtendedCode == sqlite3.ErrConstraintUnique, err.ExtendedCode == sqlite3.ErrConstraintPrimaryKey:
		return exists(err)
	case err.ExtendedCode == sqlite3.ErrConstraintForeignKey:
		return missing(err)
	case err.Code == sqlite3.ErrBusy, err.Code == sqlite3.ErrLocked:
		return busy(err)
	case err.Code == sqlite3.ErrIoErr:
		return unavailable(err)
	}
	return err
}

// ExplainSQLite tells an operator what to do about an error that concerns the
// database file as a whole. Other errors stay as they are.
func ExplainSQLite(dir string, err error) error {
	var lite sqlite3.Error
	if !errors.As(err, &lite) || fault.Public(err).Code != fault.Internal {
		return err
	}
	path := filepath.Join(dir, File)
	switch lite.Code {
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		return DamagedFile(path, lite)
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrPermission}
	case sqlite3.ErrCantOpen:
		if lite.SystemErrno != 0 {
			return &fs.PathError{Op: "open", Path: path, Err: lite.SystemErrno}
		}
		return fmt.Errorf("cannot open the database %s: %w", path, lite)
	}
	return err
}

// DamagedFile tells an operator what to do about a damaged database.
func DamagedFile(path string, cause error) error {
	return fmt.Errorf("the database %s is damaged (%w). Stop the server and restore a backup with nodest restore --force FILE; the damaged database is moved aside", path, cause)
}

func translatePostgres(err *pgconn.PgError) error {
	switch class := err.Code[:min(2, len(err.Code))]; {
	case err.Code == pgDiskFull:
		return full(err)
	case err.Code == pgUnique:
		return exists(err)
	case err.Code == pgForeignKey:
		return missing(err)
	case err.Code == pgSerialization, err.Code == pgDeadlock, err.Code == pgLocked, err.Code == pgCancelled:
		return busy(err)
	case class == "08", class == "57", class == "58", // connections, operators, the system
		err.Code == pgConnections, err.Code == pgNoDatabase:
		return unavailable(err)
	}
	return err
}

func busy(err error) error {
	return fault.Wrap(err, fault.StorageBusy, "the database is busy; send the request again").After(time.Second)
}

func unavailable(err error) error {
	return fault.Wrap(err, fault.StorageDown, "the database does not answer; send the request again").After(time.Second)
}

func full(err error) error {
	return fault.Wrap(err, fault.StorageFull, "the disk is full")
}

func exists(err error) error {
	return fault.Wrap(err, fault.Conflict, "it already exists")
}

func missing(err error) error {
	return fault.Wrap(err, fault.NotFound, "the object it belongs to does not exist")
}

// errRace is returned by a closure that found that another transaction came first, and
// that would have another result if it ran again.
type errRace struct{ error }

func (e errRace) Unwrap() error { return e.error }

// attempts says how often a transaction that ends with err is run at most, the
// first time included; 1 where running it again cannot help.
func attempts(err error) int {
	var race errRace
	var undone errUndone
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &race):
		return maxAttempts
	case errors.As(err, &undone):
		return cutRuns
	case !errors.As(err, &pg):
		return 1
	case pg.Code == pgSerialization, pg.Code == pgDeadlock:
		return maxAttempts
	case pg.Code == pgUnique:
		return 2 // a race was won by a transaction that the second run sees
	}
	return 1
}

func isDeadlock(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == pgDeadlock
}
