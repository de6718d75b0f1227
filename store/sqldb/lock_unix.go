//go:build unix

package sqldb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// FolderLock keeps a second process away from a data folder: two would each
// take the events of a user for their own. The lock is the kernel's, so it ends
// with the process, however that ends.
type FolderLock struct{ file *os.File }

// LockFolder takes the lock of a data folder, or returns ErrInUse with its holder.
func LockFolder(dir string) (*FolderLock, error) {
	path := filepath.Join(dir, "nodest.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 20))
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s (pid %s); stop it, choose another folder, or use PostgreSQL", ErrInUse, dir, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil { // the pid is for the message only
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &FolderLock{f}, nil
}

// Release unlocks before it closes: a child that this process is just starting
// holds the file too, until it runs its own program, and the lock with it.
func (l *FolderLock) Release() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
