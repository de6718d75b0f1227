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
	"time"
)

// FolderLock keeps a second process away from a data folder: two would each
// take the events of a user for their own. The lock is the kernel's, so it ends
// with the process, however that ends.
type FolderLock struct{ file *os.File }

// LockFolder takes the lock of a data folder, or returns ErrInUse with its holder.
func LockFolder(dir string) (*FolderLock, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) { // FolderServer may be looking
		time.Sleep(glance)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		by := holder(f)
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s (%s); stop it, choose another folder, or use PostgreSQL", ErrInUse, dir, by)
		}
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	if err := f.Truncate(0); err == nil { // the pid is for the message only
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &FolderLock{f}, nil
}

// glance is how long FolderServer may hold a lock, and more.
const glance = 20 * time.Millisecond

// holding says who holds a lock.
type holding struct{ pid, addr string }

func (h holding) String() string {
	if h.addr == "" {
		return "pid " + h.pid
	}
	return "pid " + h.pid + ", a server at " + h.addr
}

// holder reads the file of a lock: the pid, and then the address if the process has one.
func holder(f *os.File) holding {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 300)) // an empty answer is one
	pid, addr, _ := strings.Cut(string(text), "\n")
	addr, _, _ = strings.Cut(addr, "\n")
	return holding{strings.TrimSpace(pid), addr}
}

// Announce notes in the lock of a data folder, which this process holds, where its server answers.
func Announce(dir, addr string) error {
	return os.WriteFile(filepath.Join(dir, lockFile), []byte(strconv.Itoa(os.Getpid())+"\n"+addr+"\n"), 0o600)
}

// FolderServer returns the address where the process answers that holds the lock of a data folder;
// "" = none holds it, or it has no address.
func FolderServer(dir string) string {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return ""
	}
	defer f.Close()                                                         //nolint:errcheck // it is only read
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil { // a process that has ended has left the file
		return ""
	}
	return holder(f).addr
}

// lockFile is the file of a data folder that is locked.
const lockFile = "nodest.lock"

// Release unlocks before it closes: a child that this process is just starting
// holds the file too, until it runs its own program, and the lock with it.
func (l *FolderLock) Release() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
