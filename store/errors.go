package store

import (
	"errors"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"

	"nodest/fault"
)

// SQLSTATE codes of PostgreSQL that mean something to us.
const (
	pgUnique        = "23505"
	pgForeignKey    = "23503"
	pgSerialization = "40001"
	pgDeadlock      = "40P01"
	pgDiskFull      = "53100"
)

// translate gives the errors of both drivers the codes that callers know. An
// error that says nothing to a caller stays as it is.
func translate(err error) error {
	var lite sqlite3.Error
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &lite):
		return translateSQLite(lite)
	case errors.As(err, &pg):
		return translatePostgres(pg)
	}
	return err
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
	}
	return err
}

func translatePostgres(err *pgconn.PgError) error {
	switch err.Code {
	case pgDiskFull:
		return full(err)
	case pgUnique:
		return exists(err)
	case pgForeignKey:
		return missing(err)
	}
	return err
}

func full(err error) error {
	return fault.Wrap(err, fault.StorageFull, "the storage is full")
}

func exists(err error) error {
	return fault.Wrap(err, fault.Conflict, "it exists already")
}

func missing(err error) error {
	return fault.Wrap(err, fault.NotFound, "what it belongs to does not exist")
}

// errRace is returned by a closure that saw that another transaction came first
// and that would do something else if it ran again.
type errRace struct{ error }

func (e errRace) Unwrap() error { return e.error }

// lostRace says whether running the transaction again can help.
func lostRace(err error) bool {
	var race errRace
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &race):
		return true
	case errors.As(err, &pg):
		return pg.Code == pgSerialization || pg.Code == pgDeadlock || pg.Code == pgUnique
	}
	return false
}

func isDeadlock(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == pgDeadlock
}
