package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// startInTerminal starts a program in a new pseudo-terminal and returns its keyboard
// and screen.
func startInTerminal(t *testing.T, cmd *exec.Cmd) (keyboard *os.File, screen *terminal) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skip("skipped: no terminal can be made here")
	}
	require.NoError(t, err)
	fd := int(keyboard.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, line.Close())
	screen = &terminal{}
	closed := make(chan struct{})
	go func() { // ends when no process has the terminal open
		defer close(closed)
		b := make([]byte, 4096)
		for {
			n, err := keyboard.Read(b)
			_, _ = screen.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_, _ = keyboard.Write([]byte{0x1c}) // Ctrl-\ ends whatever still runs there
		_ = cmd.Process.Kill()
		<-closed
		_ = keyboard.Close()
	})
	return keyboard, screen
}

// TestCtrlCEndsMakeRunCleanly: Ctrl-C in a terminal stops the server, and make exits
// with 0. The server is this test binary.
func TestCtrlCEndsMakeRunCleanly(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("skipped: there is no make")
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "../..", "run", "GO=true", "BIN="+os.Args[0])
	cmd.Env = newWorkDir(t, "NODEST_ADDR=127.0.0.1:0", "NODEST_DATA="+filepath.Join(t.TempDir(), "data")).env
	keyboard, out := startInTerminal(t, cmd)
	out.shows(t, " listens on ", 1)
	_, err := keyboard.Write([]byte{3}) // Ctrl-C
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), out.text())
	out.shows(t, "stopping", 1) // may be read after the process has ended
	require.NotContains(t, out.text(), "***")
}

// TestImportAsksForTheCharacter: a user who imports a chat with an unknown
// character is asked which one it is, and may create it.
func TestImportAsksForTheCharacter(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t, "NODEST_ADDR="+freeAddr(t))
	f.mustRun(t, "import", "--sample", "--local")
	log := `{"user_name":"Ann","character_name":"Ilse","chat_metadata":{}}` + "\n" +
		`{"name":"Ilse","is_user":false,"mes":"The boat is gone."}` + "\n"
	chat := tempFile(t, "boat.jsonl", log)

	out, code := f.run(t, "import", chat)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, `this is a chat with "Ilse"; choose its character with --character NAME`)

	for _, tt := range []struct{ answer, with string }{
		{"nobody\r1\r", "Wren Halloway"}, {"wren halloway\r", "Wren Halloway"}, {"0\r", "Ilse"}, // 0 creates the character
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "import", chat)
		cmd.Dir, cmd.Env = f.dir, f.env
		keyboard, screen := startInTerminal(t, cmd)
		screen.shows(t, "a new character named Ilse", 1)
		_, err := keyboard.Write([]byte(tt.answer))
		require.NoError(t, err)
		require.NoError(t, cmd.Wait(), screen.text())
		screen.shows(t, "(chat with "+tt.with+")", 1)
	}
	require.Contains(t, f.mustRun(t, "import", chat), "(chat with Ilse)", "it is known now")
	require.Equal(t, 2, strings.Count(f.mustRun(t, "list", "chats", "--character", "ilse"), "The boat is gone."))
}

// TestDeletingAnAccountIsConfirmed: the command asks before it deletes.
func TestDeletingAnAccountIsConfirmed(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	_, _, err := inst.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	require.NoError(t, err)
	for _, answer := range []string{"\r", "n\r", "y\r"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "user", "delete", "Alice")
		cmd.Env = slices.Concat(newWorkDir(t).env, inst.env)
		keyboard, screen := startInTerminal(t, cmd)
		screen.shows(t, "This will delete the account alice and all its data. It cannot be undone.", 1)
		_, err := keyboard.Write([]byte(answer))
		require.NoError(t, err)
		if answer == "y\r" {
			require.NoError(t, cmd.Wait(), screen.text())
			require.NotContains(t, inst.mustRun(t, "user", "list"), "alice")
			continue
		}
		require.Error(t, cmd.Wait(), screen.text())
		screen.shows(t, "nodest: nothing was deleted", 1)
		require.Contains(t, inst.mustRun(t, "user", "list"), "alice")
	}
}

// text returns what the terminal has shown.
func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.Clone(s.b.Bytes()))
}
