package store_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nodest/internal/account"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/sqldb"
	"nodest/store/storetest"
)

// inFiles counts a text in the files of a SQLite database.
func inFiles(t *testing.T, dir, text string) (n int) {
	t.Helper()
	for _, name := range []string{"nodest.db", "nodest.db-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(b, []byte(text))
	}
	return n
}

func TestWhatWasDeletedIsGoneFromTheFiles(t *testing.T) {
	t.Parallel()
	dir := storetest.Dir(t)
	db := storetest.OpenWith(t, store.Options{Dir: dir})
	user := storetest.User(t, db)
	secret := "a secret that must go " + id()
	for _, text := range []string{secret, strings.Repeat(secret+" ", 1000)} { // the second on pages of its own
		if err := db.Update(context.Background(), user, func(tx nodest.Tx) error {
			return store.Exec(tx, "INSERT INTO settings (user_id, document, version, updated_at) VALUES (?, ?, 1, 0) ON CONFLICT (user_id) DO UPDATE SET document = excluded.document", sqldb.ID(user), text)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if inFiles(t, dir, secret) == 0 {
		t.Fatal("the text is not where it is looked for")
	}
	if err := db.DeleteUser(context.Background(), user, func(*account.User, []*account.User) error { return nil }, nil); err != nil {
		t.Fatal(err)
	}
	if n := inFiles(t, dir, secret); n > 0 {
		t.Errorf("the text is still there, %d times", n)
	}
}

func TestMaintenanceEmptiesTheLogOfChanges(t *testing.T) {
	t.Parallel()
	dir := storetest.Dir(t)
	db := storetest.OpenWith(t, store.Options{Dir: dir})
	user := storetest.User(t, db)
	secret := "a secret that must go " + id()
	for _, text := range []string{secret, ""} {
		if err := db.Update(context.Background(), user, func(tx nodest.Tx) error {
			return store.Exec(tx, "UPDATE users SET password_hash = ? WHERE id = ?", text, user)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, ran, err := store.Maintain(context.Background(), db); err != nil || !ran {
		t.Fatal(ran, err)
	}
	if n := inFiles(t, dir, secret); n > 0 {
		t.Errorf("the text is still there, %d times", n)
	}
}

func TestFilesOfTheDatabaseAreOnlyForTheirOwner(t *testing.T) {
	t.Parallel()
	dir := storetest.Dir(t)
	first, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	// As a copy or an earlier umask may have left them.
	for name, mode := range map[string]os.FileMode{"nodest.db": 0o664, "": 0o755} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	db := storetest.OpenWith(t, store.Options{Dir: dir})
	storetest.User(t, db)
	for _, name := range []string{"", "nodest.db", "nodest.db-wal", "nodest.db-shm"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q has the mode %v", name, info.Mode())
		}
	}
}
