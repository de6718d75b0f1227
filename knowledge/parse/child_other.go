//go:build !unix

package parse

import "os/exec"

func ownGroup(*exec.Cmd) {}

// lockFile does nothing: two processes may compile the same, and the last one's stays.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
