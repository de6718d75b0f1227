// Package storetest gives tests of other packages a real database: SQLite in the
// test's own folder, whose schema is made once per test program and copied; or a
// schema of the test's own in the PostgreSQL of NODEST_TEST_DATABASE_URL.
//
// A test of a promise that each database must keep runs on both (Each); all others use
// SQLite (Open), or PostgreSQL where only that can break the promise. With
// NODEST_TEST_ONLY=postgres those that need SQLite alone are skipped.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"nodest/internal/account"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/store"
)

// Opener is OpenWith or OpenPostgres.
type Opener = func(testing.TB, store.Options) *store.DB

// Each runs a test on SQLite and on PostgreSQL.
func Each(t *testing.T, test func(t *testing.T, open Opener)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, OpenWith) })
	t.Run("postgres", func(t *testing.T) { test(t, OpenPostgres) })
}

// Open returns a new database on SQLite that is closed when the test ends.
func Open(t testing.TB) *store.DB {
	t.Helper()
	return OpenWith(t, store.Options{})
}

// OpenWith is Open with options; a Dir or URL in them is used as it is.
func OpenWith(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	if o.URL == "" && o.Dir == "" {
		o.Dir = Dir(t)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	db, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(db, o)
	t.Cleanup(func() {
		opened.Delete(db)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// opened has the options of the databases that OpenWith has opened.
var opened sync.Map

func optionsOf(t testing.TB, db *store.DB) store.Options {
	t.Helper()
	o, ok := opened.Load(db)
	if !ok {
		t.Fatal("the database was not opened by this package")
	}
	return o.(store.Options)
}

// OpenPostgres is OpenWith on PostgreSQL; without one the test is skipped. The
// schema is empty and the test's own; it is used again by later tests, and
// dropped by Exit.
func OpenPostgres(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	o.URL = takeSchema(t)
	return OpenWith(t, o)
}

// PostgresURL returns the URL of a schema without tables that is dropped when
// the test ends. Without NODEST_TEST_DATABASE_URL the test is skipped.
func PostgresURL(t testing.TB) string {
	t.Helper()
	u, name := newSchema(t)
	t.Cleanup(func() {
		if err := execute("DROP SCHEMA " + name + " CASCADE"); err != nil {
			t.Error(err)
		}
	})
	return u
}

// schemas that were made for OpenPostgres: making the tables takes longer than
// most tests.
var schemas struct {
	mu   sync.Mutex
	all  []string // names
	free []string // URLs
}

func takeSchema(t testing.TB) string {
	t.Helper()
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	var u string
	if n := len(schemas.free); n > 0 {
		u, schemas.free = schemas.free[n-1], schemas.free[:n-1]
		needPostgres.Store(t.Name(), true)
	} else {
		var name string
		u, name = newSchema(t)
		schemas.all = append(schemas.all, name)
	}
	t.Cleanup(func() {
		name := schemaOf(u)
		// Everything but the server's own jobs, the audit log and the model servers belongs to a user. With few rows a
		// DELETE is faster than a TRUNCATE of all tables, with many it is slower.
		empty := fmt.Sprintf(`DO $$ BEGIN
			IF (SELECT COUNT(*) FROM %[1]s.messages) > 500 THEN TRUNCATE %[1]s.users CASCADE; ELSE DELETE FROM %[1]s.users; END IF;
			END $$`, name)
		if err := execute(empty, "DELETE FROM "+name+".jobs", "DELETE FROM "+name+".audit_log", "DELETE FROM "+name+".model_servers"); err != nil {
			return // it stays unused
		}
		schemas.mu.Lock()
		defer schemas.mu.Unlock()
		schemas.free = append(schemas.free, u)
	})
	return u
}

// Exit drops the schemas of OpenPostgres and ends the test program: the end of its TestMain. If that fails, the tests have.
func Exit(code int) {
	if err := dropSchemas(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func dropSchemas() error {
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	var errs []error
	for _, name := range schemas.all {
		errs = append(errs, execute("DROP SCHEMA "+name+" CASCADE"))
	}
	schemas.all, schemas.free = nil, nil
	control.mu.Lock()
	defer control.mu.Unlock()
	if control.conn != nil {
		errs = append(errs, control.conn.Close(context.Background()))
		control.conn = nil
	}
	return errors.Join(errs...)
}

func newSchema(t testing.TB) (schemaURL, name string) {
	t.Helper()
	base := os.Getenv("NODEST_TEST_DATABASE_URL")
	if base == "" {
		t.Skip("skipped on PostgreSQL: NODEST_TEST_DATABASE_URL is not set (scripts/with-postgres sets it)")
	}
	needPostgres.Store(t.Name(), true)
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal("NODEST_TEST_DATABASE_URL cannot be read")
	}
	name = "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := execute("CREATE SCHEMA " + name); err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), name
}

func schemaOf(schemaURL string) string {
	u, err := url.Parse(schemaURL)
	if err != nil {
		return ""
	}
	return u.Query().Get("search_path")
}

// control is the connection of execute. PostgreSQL keeps the plans of the many cascades of a
// user's tables with the connection, so that emptying a schema again takes a fraction of the
// first time.
var control struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// execute runs statements, one after the other.
func execute(statements ...string) error {
	control.mu.Lock()
	defer control.mu.Unlock()
	ctx := context.Background()
	for _, s := range statements {
		if control.conn == nil || control.conn.IsClosed() {
			conn, err := pgx.Connect(ctx, os.Getenv("NODEST_TEST_DATABASE_URL"))
			if err != nil {
				return err
			}
			control.conn = conn
		}
		if _, err := control.conn.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// needPostgres has the names of the tests that have taken a schema.
var needPostgres sync.Map

// NeedSQLite skips a test when only those on PostgreSQL are asked for. A test that needs
// both databases takes PostgreSQL first.
func NeedSQLite(t testing.TB) {
	t.Helper()
	if os.Getenv("NODEST_TEST_ONLY") != "postgres" {
		return
	}
	for name := t.Name(); ; {
		if _, too := needPostgres.Load(name); too {
			return
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			t.Skip("skipped on SQLite: NODEST_TEST_ONLY=postgres")
		}
		name = name[:i]
	}
}

// Dir returns a new data folder with an empty, migrated SQLite database.
func Dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Fill(t, dir)
	return dir
}

// Fill makes an empty folder one that Dir returns.
func Fill(t testing.TB, dir string) {
	t.Helper()
	NeedSQLite(t)
	data, err := template()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nodest.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// template is the file of an empty database.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "nodest-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	db, err := store.Open(context.Background(), store.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // also moves the log into the file
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "nodest.db"))
})

// User stores a user with a name of its own and returns the id.
func User(t testing.TB, db *store.DB) string {
	t.Helper()
	id := op.NewID()
	u := &account.User{ID: id, Username: "user-" + id, Role: account.RoleMember}
	if err := db.InsertUser(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	return id
}

// Memory is the memory on an open transaction: its operations are a part of it.
func Memory(tx memory.Tx) *memory.Service {
	scene := func(context.Context, string, string, string) (memory.Scene, error) {
		return memory.Scene{Share: true}, nil
	}
	return memory.New(open{tx: tx}, memory.Options{Log: slog.New(slog.DiscardHandler), Scenes: scene})
}

// open is the store of a transaction that is open.
type open struct {
	memory.Store
	tx memory.Tx
}

func (o open) Update(_ context.Context, _ string, fn func(memory.Tx) error) error { return fn(o.tx) }

func (o open) View(_ context.Context, _ string, fn func(memory.Tx) error) error { return fn(o.tx) }
