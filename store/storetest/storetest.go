// Package storetest gives tests of other packages a real database: SQLite in the
// test's own folder. The schema is made once per test program and copied.
package storetest

import (
	"context"
	"os"
	"path/filepath"
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
