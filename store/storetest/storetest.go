// Package storetest gives tests of other packages a real database: SQLite in the
// test's own folder, whose schema is made once per test program and copied; or a
// schema of the test's own in the PostgreSQL of NODEST_TEST_DATABASE_URL.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"nodest/account"
	"nodest/store"
)

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
	db, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// OpenPostgres is OpenWith on PostgreSQL; without one the test is skipped.
func OpenPostgres(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	o.URL = PostgresURL(t)
	return OpenWith(t, o)
}

// PostgresURL returns the URL of a new, empty schema that is dropped when the
// test ends. Without NODEST_TEST_DATABASE_URL the test is skipped.
func PostgresURL(t testing.TB) string {
	t.Helper()
	base := os.Getenv("NODEST_TEST_DATABASE_URL")
	if base == "" {
		t.Skip("skipped on PostgreSQL: NODEST_TEST_DATABASE_URL is not set (scripts/with-postgres sets it)")
	}
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal("NODEST_TEST_DATABASE_URL cannot be read")
	}
	admin, err := sql.Open("pgx", base) // package store brings the driver
	if err != nil {
		t.Fatal(err)
	}
	schema := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := admin.ExecContext(context.Background(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := admin.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		if err := errors.Join(err, admin.Close()); err != nil {
			t.Error(err)
		}
	})
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// Dir returns a new data folder with an empty, migrated SQLite database.
func Dir(t testing.TB) string {
	t.Helper()
	data, err := template()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nodest.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// template is the file of an empty database.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "nodest-template-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	db, err := store.Open(context.Background(), store.Options{Dir: dir})
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
	id := uuid.Must(uuid.NewV7()).String()
	u := &account.User{ID: id, Username: "user-" + id, Role: account.RoleMember}
	if err := db.InsertUser(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	return id
}
