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
	if err != nil {
		t.Fatal(err)
	}
	fd := int(keyboard.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", out.text(), err)
	}
	out.shows(t, "stopping", 1) // may be read after the process has ended
	if got := out.text(); strings.Contains(got, "***") {
		t.Fatalf("out.text() is %q, want it without %q", got, "***")
	}
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
	if code != 2 {
		t.Fatalf("%s: code is %d, want %d", out, code, 2)
	}
	if !strings.Contains(out, `this is a chat with "Ilse"; choose its character with --character NAME`) {
		t.Fatalf("out is %q, want it with %q", out, `this is a chat with "Ilse"; choose its character with --character NAME`)
	}

	for _, tt := range []struct{ answer, with string }{
		{"nobody\r1\r", "Wren Halloway"}, {"wren halloway\r", "Wren Halloway"}, {"0\r", "Ilse"}, // 0 creates the character
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "import", chat)
		cmd.Dir, cmd.Env = f.dir, f.env
		keyboard, screen := startInTerminal(t, cmd)
		screen.shows(t, "a new character named Ilse", 1)
		_, err := keyboard.Write([]byte(tt.answer))
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s: %v", screen.text(), err)
		}
		screen.shows(t, "(chat with "+tt.with+")", 1)
	}
	if got := f.mustRun(t, "import", chat); !strings.Contains(got, "(chat with Ilse)") {
		t.Fatalf("it is known now: got %q, want it with %q", got, "(chat with Ilse)")
	}
	if got := strings.Count(f.mustRun(t, "list", "chats", "--character", "ilse"), "The boat is gone."); got != 2 {
		t.Fatalf("got %d, want %d", got, 2)
	}
}

// TestDeletingAnAccountIsConfirmed: the command asks before it deletes.
func TestDeletingAnAccountIsConfirmed(t *testing.T) {
	t.Parallel()
	inst := newDatabase(t)
	_, _, err := inst.command(t, strings.NewReader("correct horse battery\n"), "user", "create", "alice")
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"\r", "n\r", "y\r"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "user", "delete", "Alice")
		cmd.Env = slices.Concat(newWorkDir(t).env, inst.env)
		keyboard, screen := startInTerminal(t, cmd)
		screen.shows(t, "This will delete the account alice and all its data. It cannot be undone.", 1)
		_, err := keyboard.Write([]byte(answer))
		if err != nil {
			t.Fatal(err)
		}
		if answer == "y\r" {
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%s: %v", screen.text(), err)
			}
			if got := inst.mustRun(t, "user", "list"); strings.Contains(got, "alice") {
				t.Fatalf("got %q, want it without %q", got, "alice")
			}
			continue
		}
		if err := cmd.Wait(); err == nil {
			t.Fatalf("%s: got no error, want one", screen.text())
		}
		screen.shows(t, "nodest: nothing was deleted", 1)
		if got := inst.mustRun(t, "user", "list"); !strings.Contains(got, "alice") {
			t.Fatalf("got %q, want it with %q", got, "alice")
		}
	}
}

// In a terminal, an edit opens the whole payload in the editor, and one that is no payload changes nothing.
func TestAnExtractionIsEditedInTheEditor(t *testing.T) {
	t.Parallel()
	here, p, character := newFerries(t)
	editor := tempFile(t, "editor", "#!/bin/sh\nif [ -e \"$0.again\" ]; then sed -i s/nine/ten/ \"$1\"; else touch \"$0.again\"; echo 'no payload' > \"$1\"; fi\n")
	if err := os.Chmod(editor, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "extractions", "review", "Mira")
	cmd.Env = slices.Concat(newWorkDir(t).env, here.env, []string{"EDITOR=" + editor})
	keyboard, screen := startInTerminal(t, cmd)
	for i, answer := range []string{"e", "e", "y", "q", "y"} {
		screen.shows(t, []string{"quit? [a/e/d/s/q]", "not accepted: this must be a JSON object", `"The ferry sails at ten."`, "[2/4]", "make memories"}[i], 1)
		if _, err := keyboard.Write([]byte(answer + "\r")); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", screen.text(), err)
	}
	if got := p.memoriesOf(t, character); !slices.Equal(got, []string{"The ferry sails at ten. extraction"}) {
		t.Errorf("memories: %q\n%s", got, screen.text())
	}
}

// text returns what the terminal has shown.
func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.Clone(s.b.Bytes()))
}
