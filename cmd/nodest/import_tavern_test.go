package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"nodest/internal/cli/pack"
	"nodest/internal/tavern/taverntest"
)

// TestImportASillyTavernFolder tries a folder, imports it, and imports it again, which adds nothing. A link out of it is not
// followed, and keys are not sent.
func TestImportASillyTavernFolder(t *testing.T) {
	t.Parallel()
	home := newInstallation(t, "").fast(t)
	p := home.start(t)
	home = home.withAddrOf(p)
	dir := tavernFolder(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "worlds", "link.json")); err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(dir))
	says := func(want string, args ...string) string {
		t.Helper()
		out := home.mustRun(t, append([]string{"import", "--sillytavern", root}, args...)...)
		if !strings.Contains(out, want) {
			t.Fatalf("%s\nwant %q", out, want)
		}
		return out
	}
	characters := func() int {
		t.Helper()
		var list struct{ Items []any }
		api(t, p, http.MethodGet, "/characters", nil, &list)
		return len(list.Items)
	}
	out := says("9 files: 6 to be taken, 3 not taken", "--dry-run")
	for _, want := range []string{"2 chats: 2 to be taken", "worlds/link.json: it is a link", "secrets.json: it has keys and passwords", "Nothing was added."} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwant %q", out, want)
		}
	}
	if n := characters(); n != 0 {
		t.Fatalf("the trial has made %d characters", n)
	}
	says("9 files: 6 taken, 3 not taken")
	says("9 files: 6 there already, 3 not taken")
	if n := characters(); n != 2 {
		t.Errorf("%d characters", n)
	}
	var all struct {
		Import pack.Import
		Files  []pack.File
	}
	if err := json.Unmarshal([]byte(says(`"files":`, "--json")), &all); err != nil || len(all.Files) != all.Import.Found || all.Import.Kept != 6 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, _, err := home.command(t, nil, "import", "--sillytavern", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no folder of a SillyTavern user") {
		t.Errorf("%v", err)
	}
}

// Ctrl-C ends the command and stops the import on the server. A second run brings the rest.
func TestCtrlCStopsAnImport(t *testing.T) {
	t.Parallel()
	home := newInstallation(t, "").fast(t)
	p := home.start(t)
	file := filepath.Join(t.TempDir(), "folder.zip")
	f, err := os.Create(file)
	if err == nil {
		err = errors.Join(taverntest.Write(f, taverntest.Size{Cards: 5, Books: 1, Chats: 600, Messages: 60}), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	said := &output{}
	cmd := exec.CommandContext(t.Context(), home.program, "import", "--sillytavern", file)
	cmd.Env, cmd.Stderr = home.withAddrOf(p).env, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	newest := func() (imp pack.Import, err error) {
		var list struct{ Items []pack.Import }
		err = p.client.Call(t.Context(), http.MethodGet, pack.Path, nil, &list)
		if err != nil || len(list.Items) == 0 {
			return imp, fmt.Errorf("no import yet: %w", err)
		}
		return list.Items[0], nil
	}
	eventually(t, "some files are done", func() error {
		imp, err := newest()
		if err == nil && imp.Done == 0 {
			err = errNotYet
		}
		return err
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(said.String(), "stopped after") {
		t.Errorf("%v: %s", err, said)
	}
	if imp, err := newest(); err != nil || imp.State != "cancelled" || imp.Done >= imp.Found {
		t.Errorf("%+v, %v", imp, err)
	}
	if out := home.withAddrOf(p).mustRun(t, "import", "--sillytavern", file); !strings.Contains(out, "607 files: ") || strings.Contains(out, "not taken") {
		t.Errorf("%s", out)
	}
}

// TestImportRefusesFlagsWithoutEffect says of a flag that would do nothing what it is for.
func TestImportRefusesFlagsWithoutEffect(t *testing.T) {
	t.Parallel()
	home := newWorkDir(t)
	for _, tt := range []struct{ want, args string }{
		{"--no-characters has an effect only with --sillytavern", "a.png --no-characters"},
		{"--no-characters has an effect only with --sillytavern", "a.jsonl --all --no-characters"},
		{"--dry-run has an effect only with --all or --sillytavern", "a.png --dry-run"},
		{"--as is for single files", "dir --sillytavern --as preset"},
		{"--character is for single files", "dir --sillytavern --character Bo"},
		{"--conversation is for single files", "dir --sillytavern --conversation x"},
		{"--make-character is for single files", "dir --sillytavern --make-character"},
		{"--character is for single files", "a.jsonl --all --character Bo"},
		{"give one of --all, --sillytavern and --sample", "dir --all --sillytavern"},
		{"give one of --all, --sillytavern and --sample", "dir --sillytavern --sample"},
	} {
		out, code := home.run(t, append([]string{"import"}, strings.Fields(tt.args)...)...)
		if code != 2 || !strings.Contains(out, tt.want) {
			t.Errorf("import %s: %d, %s\nwant %q", tt.args, code, out, tt.want)
		}
	}
}
