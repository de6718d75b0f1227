//go:build linux || darwin

package store

import "syscall"

// diskFree is the space in bytes that is free for this program where a folder is; -1 =
// unknown.
func diskFree(dir string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:gosec,unconvert // no disk is that large; the types differ between systems
}
