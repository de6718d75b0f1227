//go:build unix

package sqldb_test

import (
	"errors"
	"strings"
	"testing"

	"nodest/store/sqldb"
)

// The lock of a data folder says where the process answers that holds it, and nothing of one that has ended.
func TestTheLockKnowsTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := sqldb.FolderServer(dir); got != "" {
		t.Errorf("an empty folder has a server at %q", got)
	}
	lock, err := sqldb.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := sqldb.FolderServer(dir); got != "" {
		t.Errorf("the process has a server at %q", got)
	}
	if err := sqldb.Announce(dir, "127.0.0.1:9000"); err != nil {
		t.Fatal(err)
	}
	if got := sqldb.FolderServer(dir); got != "127.0.0.1:9000" {
		t.Errorf("the server is at %q", got)
	}
	if _, err := sqldb.LockFolder(dir); !errors.Is(err, sqldb.ErrInUse) || !strings.Contains(err.Error(), "a server at 127.0.0.1:9000") {
		t.Errorf("error %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if got := sqldb.FolderServer(dir); got != "" {
		t.Errorf("the server has ended and is at %q", got)
	}
	if lock, err = sqldb.LockFolder(dir); err != nil {
		t.Fatal(err)
	}
	if got := sqldb.FolderServer(dir); got != "" {
		t.Errorf("the next process has a server at %q", got)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}
