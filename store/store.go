package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base32"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"nodest/internal/account"
	"nodest/internal/fair"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store/sqldb"
)

// Options say where the data is and who hears of changes.
type Options struct {
	URL string // "" = SQLite in Dir; postgres://… = PostgreSQL
	Dir string // data folder of SQLite; made with mode 0700

	// Committed gets the events of a transaction after its commit and before
	// Update returns, with Seq and At set and in order. For one user calls may
	// come from several goroutines, not quite in the order of seq.
	Committed func(userID string, events []*stream.Event)

	// Metered gets what a transaction added to a user's meter, after its commit; nil = nobody counts it.
	Metered func(rows []nodest.UsageRow)

	// Jobs is called after a commit that enqueued jobs, or cancelled those that it
	// names: jobs.Runner.Changed.
	Jobs func(cancelled []string)

	Retention Retention // how long things are kept; the zero value = the defaults

	Quotas  account.Quotas   // limits of each user; the zero value = no limits
	Readers int              // connections that read; default 8 (PostgreSQL: all connections, default 16)
	Now     func() time.Time // for tests; default time.Now (PostgreSQL: the database's clock)
	Log     *slog.Logger     // default slog.Default()
}

func (o Options) withDefaults() Options {
	if o.Readers == 0 && o.URL != "" {
		o.Readers = 16
	}
	o.Readers = cmp.Or(o.Readers, 8)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Now == nil && o.URL == "" {
		o.Now = time.Now
	}
	if o.Jobs == nil {
		o.Jobs = func([]string) {}
	}
	if o.Metered == nil {
		o.Metered = func([]nodest.UsageRow) {}
	}
	if o.Committed == nil {
		o.Committed = func(string, []*stream.Event) {}
	}
	return o
}

// database says how sqldb opens the database.
func (o Options) database(schema migrationFolder, process string) sqldb.Options {
	d := sqldb.Options{
		Locked:  func() error { return completeRestores(o.Dir) },
		Migrate: func(ctx context.Context, db *sql.DB) error { return migrate(ctx, db, schema, o.Log) },
		Readers: o.Readers, Process: process, Log: o.Log,
	}
	if o.Now != nil {
		d.Now = func() time.Time { return sqldb.Moment(sqldb.Millis(o.Now())) }
	}
	return d
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	backend sqldb.Backend
	opts    Options
	process string
	closing sync.Once
	lost    lostProcesses
	free    func(dir string) int64 // diskFree, or that of a test
	purging sync.Map               // users for whom room is being made, see makeRoom
	readers *fair.Gate             // gate of those who read for a user

	signedIn signedIn
}

var (
	_ nodest.Store  = (*DB)(nil)
	_ stream.Store  = (*DB)(nil)
	_ account.Store = (*DB)(nil)
	_ jobs.Store    = (*DB)(nil)
)

// Open opens the database and brings its schema up to date. It returns
// fault.NewerVersion for a database of a newer program, and sqldb.ErrInUse with the
// other process when the data folder of SQLite is in use.
func Open(ctx context.Context, o Options) (*DB, error) {
	o = o.withDefaults()
	db := &DB{opts: o, process: op.NewID(), free: diskFree, readers: fair.New(readersOf(o.Readers))}
	var err error
	switch {
	case o.URL == "":
		db.backend, err = sqldb.OpenSQLite(ctx, o.Dir, o.database(sqliteSchema, db.process))
	case strings.HasPrefix(o.URL, "postgres://"), strings.HasPrefix(o.URL, "postgresql://"):
		db.backend, err = sqldb.OpenPostgres(ctx, o.URL, o.database(postgresSchema, db.process))
	default:
		err = fmt.Errorf("the database URL must start with postgres://")
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Close waits for transactions that have begun and closes the database. Closing
// it again does nothing.
func (db *DB) Close() (err error) {
	db.closing.Do(func() { err = db.backend.Close() })
	return err
}

// Now is the time by the clock that all processes on the database share: that of
// PostgreSQL, or of this process on SQLite.
func (db *DB) Now() time.Time { return db.backend.Now() }

// Ping says whether the database answers.
func (db *DB) Ping(ctx context.Context) error { return db.backend.Ping(ctx) }

// Statements counts the statements that were run on SQLite, for tests that say how many an operation
// needs; 0 on PostgreSQL.
func (db *DB) Statements() int64 {
	if s, ok := db.backend.(*sqldb.SQLite); ok {
		return s.Statements()
	}
	return 0
}

// session is a transaction with the statements of this package.
type session struct{ *sqldb.Session }

func (db *DB) write(ctx context.Context, fn func(*session) error) error {
	changed := false
	defer func() {
		if changed {
			db.signedIn.forget()
		}
	}()
	return db.backend.Write(ctx, func(s *sqldb.Session) error {
		s.Writing = func(query string) { changed = changed || changesSignedIn(query) }
		return fn(&session{s})
	})
}

func (db *DB) read(ctx context.Context, fn func(*session) error) error {
	return db.backend.Read(ctx, func(s *sqldb.Session) error { return fn(&session{s}) })
}

// glancing returns what fn reads with a single statement.
func glancing[T any](ctx context.Context, db *DB, fn func(*session) (T, error)) (v T, err error) {
	err = db.backend.Glance(ctx, func(s *sqldb.Session) (err error) {
		v, err = fn(&session{s})
		return err
	})
	return v, err
}

// reading returns what fn reads on a snapshot.
func reading[T any](ctx context.Context, db *DB, fn func(*session) (T, error)) (v T, err error) {
	err = db.read(ctx, func(s *session) (err error) {
		v, err = fn(s)
		return err
	})
	return v, err
}

// writing returns what fn returns in a transaction that it writes in.
func writing[T any](ctx context.Context, db *DB, fn func(*session) (T, error)) (v T, err error) {
	err = db.write(ctx, func(s *session) (err error) {
		v, err = fn(s)
		return err
	})
	return v, err
}

// Update runs fn in one transaction: nodest.Store. fn must use tx alone: a
// writing method of DB within it would wait for itself on SQLite.
func (db *DB) Update(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	return part[nodest.Tx]{db, (*tx).forTurns}.Update(ctx, userID, fn)
}

func (db *DB) update(ctx context.Context, userID string, fn func(*tx) error) error {
	var logged []*stream.Event
	var news jobNews
	var used []nodest.UsageRow
	full := false // by the counters
	run := func(s *session) error {
		t := newTx(db, s, userID)
		if err := fn(t); err != nil {
			return err
		}
		if err := s.Ready(); err != nil { // fn may have dropped it
			return err
		}
		if err := db.charge(t); err != nil {
			full = fault.Is(err, fault.QuotaExceeded)
			return err
		}
		used = t.users.usage // finish writes and drops it
		var err error
		logged, err = t.finish()
		news = t.jobs.news
		return err
	}
	err := db.write(ctx, run)
	if err != nil && full {
		switch wait, failed := db.makeRoom(ctx, userID); {
		case wait > 0:
			err = fault.Public(err).After(wait)
		case failed == nil:
			err = db.write(ctx, run)
		}
	}
	if err != nil {
		return err
	}
	db.tell(news)
	if len(used) > 0 {
		db.opts.Metered(used)
	}
	if len(logged) > 0 {
		db.opts.Committed(userID, logged)
	}
	return nil
}

// View runs fn on a snapshot: nodest.Store.
func (db *DB) View(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	return part[nodest.Tx]{db, (*tx).forTurns}.View(ctx, userID, fn)
}

// readersOf shares connections that read: a user who reads much at once has half of them, and two are
// kept for users who read nothing else.
func readersOf(connections int) fair.Rules {
	const spare = 2
	return fair.Rules{Places: fair.Fixed(int64(max(1, connections-spare))), Each: int64(max(1, connections/2)), Spare: spare}
}

// view reads for a user, in turns with other users. fn must not begin another view: it would wait for
// a place while it holds one.
func (db *DB) view(ctx context.Context, userID string, fn func(*tx) error) error {
	leave, err := db.readers.Enter(ctx, userID, 1, true)
	if err != nil {
		return sqldb.Translate(ctx.Err())
	}
	defer leave()
	return db.read(ctx, func(s *session) error { return fn(newTx(db, s, userID)) })
}

// newEpoch returns a name for event logs: 8 letters and digits, 40 bits.
func newEpoch() string {
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b))
}
