//go:build unix

package parse

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a child a process group of its own, which is killed as a whole, and which a
// Ctrl+C in the terminal does not reach.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
