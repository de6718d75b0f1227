package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

// File is the name of the SQLite database in the data folder.
const File = "nodest.db"

// ErrInUse says that another process uses the data folder of SQLite.
var ErrInUse = errors.New("the data folder is in use by another nodest process")

// Options say how a database is opened.
type Options struct {
	// Locked runs when the data folder of SQLite is locked, before the file is opened.
	Locked func() error
	// Migrate makes the tables. Of several processes one at a time runs it.
	Migrate func(ctx context.Context, db *sql.DB) error

	Readers int              // connections that read; of PostgreSQL all connections
	Now     func() time.Time // in whole milliseconds; nil = the clock of PostgreSQL
	Process string           // name under which others see on PostgreSQL that this process lives
	Log     *slog.Logger
}

// SQLite is the backend of one process alone: one writing connection, several
// that only read.
type SQLite struct {
	dir     string // the data folder
	lock    *FolderLock
	writing *sql.DB
	conn    *sql.Conn // connection of writing, for the life of the backend
	writer  *groupWriter
	reading *sql.DB
	files   *files
	now     func() time.Time
	ran     atomic.Int64 // statements
}

// SQLiteDSN contains every setting, so that each connection of a pool gets them. A
// commit waits for the disk (synchronous FULL).
func SQLiteDSN(path string, readOnly bool) string {
	v := url.Values{
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"on"},
		"_busy_timeout": {"10000"},  // ms; another process can only be a tool
		"_cache_size":   {"-16000"}, // KiB
		"_mutex":        {"no"},     // database/sql gives a connection to one goroutine at a time
		// Deleted bytes are overwritten with zeros, and not only marked as free.
		"_secure_delete": {"on"},
		// Statements that stay parsed, per connection; a turn has about 30.
		"_stmt_cache_size": {"64"},
	}
	if readOnly {
		v.Set("mode", "ro")
		v.Set("_query_only", "on")
		v.Set("_cache_size", "-4000") // there are several, and the system keeps the file in memory too
		v.Del("_journal_mode")        // it is the file's, and setting it writes
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: v.Encode()}).String()
}

// OpenSQLite opens the database in a data folder, which it creates with mode 0700. It
// returns ErrInUse, naming the other process, if one uses the folder.
func OpenSQLite(ctx context.Context, dir string, o Options) (_ *SQLite, err error) {
	if dir == "" {
		return nil, errors.New("no data folder given")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the data folder: %w", err)
	}
	s := &SQLite{dir: dir, now: o.Now}
	defer func() {
		if err != nil {
			err = errors.Join(ExplainSQLite(dir, err), s.Close())
		}
	}()
	if s.lock, err = LockFolder(dir); err != nil {
		return nil, err
	}
	if err := o.Locked(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, File)
	if err := keepPrivate(dir, path); err != nil {
		return nil, err
	}
	if s.writing, err = sql.Open("sqlite3", SQLiteDSN(path, false)); err != nil {
		return nil, err
	}
	s.writing.SetMaxOpenConns(1)
	if err := o.Migrate(ctx, s.writing); err != nil {
		return nil, err
	}
	if s.reading, err = sql.Open("sqlite3", SQLiteDSN(path, true)); err != nil {
		return nil, err
	}
	s.reading.SetMaxOpenConns(o.Readers)
	s.reading.SetMaxIdleConns(o.Readers)
	if s.conn, err = s.writing.Conn(ctx); err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	s.files = newFiles(path)
	if err := s.files.check(); err != nil {
		return nil, err
	}
	s.writer = startGroupWriter(s.conn, s.now, s.files.check, &s.ran)
	return s, nil
}

// keepPrivate creates the database file if there is none, and removes the permissions of other
// users of the machine on it and its folder. SQLite gives the files beside it the same mode.
func keepPrivate(dir, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm", dir} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		shared := info.Mode()&os.ModeSticky != 0 // such as /tmp
		if mode := info.Mode().Perm(); mode&0o077 != 0 && !shared {
			err = os.Chmod(name, mode&0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) { // it belongs to somebody else, who decides
			return err
		}
	}
	return nil
}

// Settle writes the write-ahead log back into the database and empties it, so that deleted data
// is in neither file. It does nothing while somebody reads an older state.
func (s *SQLite) Settle(ctx context.Context) error {
	if err := s.files.check(); err != nil { // opening the path would create another database
		return err
	}
	db, err := sql.Open("sqlite3", strings.Replace(SQLiteDSN(filepath.Join(s.dir, File), false), "_busy_timeout=10000", "_busy_timeout="+settleWait, 1))
	if err != nil {
		return err
	}
	return errors.Join(Translate(settle(ctx, db)), db.Close())
}

// Emptying the log waits for who reads, and nobody can write meanwhile. So each attempt is short, in
// milliseconds, and what can be done beside others is done before.
const (
	settleWait     = "100"
	settleAttempts = 10
	settlePause    = 200 * time.Millisecond
)

func settle(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		return err
	}
	for range settleAttempts {
		var busy bool
		var pages, done int
		if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &done); err != nil || !busy {
			return err
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Write implements Backend.
func (s *SQLite) Write(ctx context.Context, fn func(*Session) error) error {
	return ExplainSQLite(s.dir, Translate(s.writer.write(ctx, fn)))
}

// Read takes a reading connection; the snapshot is that of the first statement.
func (s *SQLite) Read(ctx context.Context, fn func(*Session) error) (err error) {
	defer func() { err = ExplainSQLite(s.dir, Translate(err)) }()
	// Reads are short, and a statement that can be interrupted costs a goroutine in the
	// driver, so ctx is only checked between statements. A sql.Tx would cost one for each
	// statement, and one for itself.
	quiet := context.WithoutCancel(ctx)
	reading := snapshot{pool: s.reading, caller: ctx}
	defer reading.end(quiet)
	return guard(&Session{caller: ctx, ctx: quiet, db: &reading, now: s.now(), ran: &s.ran, readOnly: true}, fn)
}

// snapshot is a reading transaction that begins with its first statement: some find all that they
// look for in memory.
type snapshot struct {
	pool   *sql.DB
	caller context.Context // whose end ends the waiting for a connection
	conn   *sql.Conn       // nil = it has not begun
}

func (r *snapshot) begin(ctx context.Context) error {
	if r.conn != nil {
		return nil
	}
	conn, err := r.pool.Conn(r.caller)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		_ = conn.Close()
		return err
	}
	r.conn = conn
	return nil
}

// end gives the connection back.
func (r *snapshot) end(ctx context.Context) {
	if r.conn == nil {
		return
	}
	if _, err := r.conn.ExecContext(ctx, "ROLLBACK"); err != nil { // nothing was written, but nobody may go on with this one
		_ = r.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = r.conn.Close()
}

func (r *snapshot) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	return r.conn.ExecContext(ctx, query, args...)
}

func (r *snapshot) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	return r.conn.QueryContext(ctx, query, args...)
}

// Glance implements Backend: a statement is a snapshot by itself.
func (s *SQLite) Glance(ctx context.Context, fn func(*Session) error) error {
	err := guard(&Session{caller: ctx, ctx: context.WithoutCancel(ctx), db: s.reading, now: s.now(), ran: &s.ran, readOnly: true}, fn)
	return ExplainSQLite(s.dir, Translate(err))
}

// Now implements Backend.
func (s *SQLite) Now() time.Time { return s.now() }

// Ping implements Backend.
func (s *SQLite) Ping(ctx context.Context) error {
	if err := s.files.check(); err != nil {
		return err
	}
	return Translate(s.reading.PingContext(ctx))
}

// Commits counts the transactions of the writing connection.
func (s *SQLite) Commits() int64 { return s.writer.commits.Load() }

// Statements counts the statements that were run, apart from the beginnings and ends of transactions
// that only read.
func (s *SQLite) Statements() int64 { return s.ran.Load() }

// GroupFor bounds the time of a group of closures, in place of groupTime.
func (s *SQLite) GroupFor(d time.Duration) { s.writer.groupTime.Store(int64(d)) }

// Waiting counts the closures that wait for the writing connection.
func (s *SQLite) Waiting() int { return len(s.writer.queue) }

// Close waits for the closures that wait for the writer.
func (s *SQLite) Close() error {
	var errs []error
	if s.writer != nil {
		s.writer.stop()
	}
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	return errors.Join(errs...)
}
