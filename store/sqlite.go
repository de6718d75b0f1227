package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// File is the name of the SQLite database in the data folder.
const File = "nodest.db"

// sqlite is the backend of one process alone: one writing connection, several
// that only read.
type sqlite struct {
	dir     string // the data folder
	lock    *folderLock
	writing *bun.DB
	conn    bun.Conn // of writing, for the life of the backend
	writer  *groupWriter
	reading *bun.DB
	now     func() int64
}

// sqliteDSN has every setting in it, so that every connection of a pool gets
// them. A commit waits for the disk (synchronous FULL).
func sqliteDSN(path string, readOnly bool) string {
	v := url.Values{
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"on"},
		"_busy_timeout": {"10000"},  // ms; another process can only be a tool
		"_cache_size":   {"-16000"}, // KiB
		// Statements that stay parsed, per connection; a turn has about 30.
		"_stmt_cache_size": {"64"},
	}
	if readOnly {
		v.Set("mode", "ro")
		v.Set("_query_only", "on")
		v.Del("_journal_mode") // it is the file's, and setting it writes
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: v.Encode()}).String()
}

func openSQLite(ctx context.Context, o Options) (_ *sqlite, err error) {
	if o.Dir == "" {
		return nil, errors.New("no data folder given")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data folder: %w", err)
	}
	s := &sqlite{dir: o.Dir, now: o.millis}
	defer func() {
		if err != nil {
			err = errors.Join(explainSQLite(o.Dir, err), s.close())
		}
	}()
	if s.lock, err = lockFolder(o.Dir); err != nil {
		return nil, err
	}
	if err := completeRestores(o.Dir); err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, File)
	writing, err := sql.Open("sqlite3", sqliteDSN(path, false))
	if err != nil {
		return nil, err
	}
	writing.SetMaxOpenConns(1)
	s.writing = bun.NewDB(writing, sqlitedialect.New())
	if err := migrate(ctx, writing, sqliteSchema, o.Log); err != nil {
		return nil, err
	}
	reading, err := sql.Open("sqlite3", sqliteDSN(path, true))
	if err != nil {
		return nil, err
	}
	reading.SetMaxOpenConns(o.Readers)
	reading.SetMaxIdleConns(o.Readers)
	s.reading = bun.NewDB(reading, sqlitedialect.New())
	if s.conn, err = s.writing.Conn(ctx); err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	s.writer = startGroupWriter(s.conn.Conn, s.conn, s.now)
	return s, nil
}

func (s *sqlite) write(ctx context.Context, fn func(*session) error) error {
	return explainSQLite(s.dir, s.writer.write(ctx, fn))
}

// read takes a reading connection; the snapshot is that of the first statement.
func (s *sqlite) read(ctx context.Context, fn func(*session) error) (err error) {
	defer func() { err = explainSQLite(s.dir, err) }()
	conn, err := s.reading.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives it back to the pool
	// Reads are short, and an interrupted statement costs a goroutine per
	// statement in the driver: ctx is looked at between statements.
	quiet := context.WithoutCancel(ctx)
	tx, err := conn.BeginTx(quiet, nil)
	if err != nil {
		return translate(err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return guard(&session{caller: ctx, ctx: quiet, db: tx, binds: tx.Tx, now: s.now()}, fn)
}

func (s *sqlite) ping(ctx context.Context) error {
	return s.reading.PingContext(ctx)
}

// close waits for the closures that wait for the writer.
func (s *sqlite) close() error {
	var errs []error
	if s.writer != nil {
		s.writer.stop()
	}
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.conn.Conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}
