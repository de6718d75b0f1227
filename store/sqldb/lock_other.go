//go:build !unix

package sqldb

// FolderLock does nothing where there is no flock.
type FolderLock struct{}

// LockFolder takes no lock.
func LockFolder(string) (*FolderLock, error) { return &FolderLock{}, nil }

// Release does nothing.
func (l *FolderLock) Release() error { return nil }

// Announce notes nothing where there is no lock.
func Announce(string, string) error { return nil }

// FolderServer knows of no server.
func FolderServer(string) string { return "" }
