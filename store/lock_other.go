//go:build !unix

package store

// folderLock does nothing where there is no flock.
type folderLock struct{}

func lockFolder(string) (*folderLock, error) { return &folderLock{}, nil }

func (l *folderLock) release() error { return nil }
