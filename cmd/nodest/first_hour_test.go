package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/internal/instance"
	"nodest/internal/setup"
	"nodest/store/storetest"
)

// workDir is a directory in which a new user runs commands.
type workDir struct {
	dir       string
	env       []string
	extraArgs []string // added to every command
}

// newWorkDir returns an empty one, with no settings but those given.
func newWorkDir(t *testing.T, env ...string) *workDir {
	t.Helper()
	storetest.NeedSQLite(t)
	return &workDir{dir: t.TempDir(), env: append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), raceOptions(), asProgram + "=1", "NODEST_OFFLINE_DELAY=0s",
	}, env...)}
}

// run runs the program there and returns its output and exit code.
func (f *workDir) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), commandLine(t), slices.Concat(args, f.extraArgs)...)
	cmd.Dir, cmd.Env = f.dir, f.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// mustRun runs a command that must succeed.
func (f *workDir) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, code := f.run(t, args...)
	if code != 0 {
		t.Fatalf("%v: %s: code is %d, want none", args, out, code)
	}
	return out
}

// mustBeEmpty checks that the directory is empty.
func (f *workDir) mustBeEmpty(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 0 {
		t.Fatalf("entries is %+v, want none", entries)
	}
}

// mustFail runs a command that must fail with exit code 1 and one line that contains
// all of want, and that must leave the directory empty.
func (f *workDir) mustFail(t *testing.T, args []string, want ...string) {
	t.Helper()
	out, code := f.run(t, args...)
	if code != 1 {
		t.Fatalf("%v: %s: code is %d, want %d", args, out, code, 1)
	}
	if got := strings.Count(out, "\n"); got != 1 {
		t.Fatalf("%s: got %d, want %d", out, got, 1)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Fatalf("%v: out is %q, want it with %q", args, out, w)
		}
	}
	f.mustBeEmpty(t)
}

// freeAddr returns an address on which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	return ln.Addr().String()
}

// serverCommands lists commands that need a server or a database.
var serverCommands = [][]string{
	{"list", "characters"}, {"chat"}, {"import", "--sample"}, {"export", "Mira"}, {"bind", "Book", "Mira"}, {"unbind", "Book", "Mira"},
	{"token", "create"}, {"token", "list"}, {"user", "create", "bob"}, {"user", "list"}, {"save", "list"}, {"prompt", "Mira"}, {"lint", "Mira"},
}

// TestNoServerAndNoDatabase: without a server no command creates a database; the
// error says which server and folder the command looked for.
func TestNoServerAndNoDatabase(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	f := newWorkDir(t, "NODEST_ADDR="+addr)
	for _, args := range serverCommands {
		f.mustFail(t, args, addr, "connection refused", filepath.Join(f.dir, "data"), "--local")
	}
	if got := f.mustRun(t, "doctor", "--no-network"); !strings.Contains(got, "does not exist yet") {
		t.Fatalf("got %q, want it with %q", got, "does not exist yet")
	}
	f.mustBeEmpty(t)

	// A folder without a database is not a data folder.
	if err := os.Mkdir(filepath.Join(f.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, code := f.run(t, "list", "characters")
	if code != 1 {
		t.Fatalf("%s: code is %d, want %d", out, code, 1)
	}
	f.mustRun(t, "doctor", "--no-network")
	entries, err := os.ReadDir(filepath.Join(f.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 0 {
		t.Fatalf("entries is %+v, want none", entries)
	}
}

// TestNamedServersAreNotReplacedByTheDataFolder: if the command line, a token or
// a remote address names a server, a command never works on the local data folder
// instead.
func TestNamedServersAreNotReplacedByTheDataFolder(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t)
	f.mustRun(t, "migrate")
	addr := freeAddr(t)
	for _, tt := range []struct{ env, args []string }{
		{args: []string{"--addr", addr}},
		{env: []string{"NODEST_ADDR=" + addr, "NODEST_TOKEN=secret"}},
		{env: []string{"NODEST_ADDR=nodest.invalid:8080"}},
	} {
		g := &workDir{dir: f.dir, env: append(append([]string{}, f.env...), tt.env...)}
		out, code := g.run(t, append([]string{"list", "characters"}, tt.args...)...)
		if code != 1 {
			t.Fatalf("%s: code is %d, want %d", out, code, 1)
		}
		if got := strings.Count(out, "no NodeST server at "); got != 1 {
			t.Fatalf("%s: got %d, want %d", out, got, 1)
		}
		if !strings.Contains(out, "--local") {
			t.Fatalf("out is %q, want it with %q", out, "--local")
		}
	}
}

// TestLocalMode: --local creates a database, and later commands work on it.
func TestLocalMode(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t, "NODEST_ADDR="+freeAddr(t))
	out := f.mustRun(t, "import", "--sample", "--local")
	if !strings.Contains(out, "Wren Halloway") {
		t.Fatalf("out is %q, want it with %q", out, "Wren Halloway")
	}
	if got := strings.Count(out, "level=INFO"); got != 1 {
		t.Fatalf("one line reports the new database: %s: got %d, want %d", out, got, 1)
	}
	if !strings.Contains(out, "database created") {
		t.Fatalf("out is %q, want it with %q", out, "database created")
	}
	if got := f.mustRun(t, "list", "characters", "--local"); strings.Contains(got, "no NodeST server") {
		t.Fatalf("got %q, want it without %q", got, "no NodeST server")
	}
	out = f.mustRun(t, "list", "characters")
	if strings.Contains(out, "level=") {
		t.Fatalf("out is %q, want it without %q", out, "level=")
	}
	if !strings.Contains(out, "working directly on the data folder "+filepath.Join(f.dir, "data")) {
		t.Fatalf("it is clear that this is not the server's: out is %q, want it with %q", out, "working directly on the data folder "+filepath.Join(f.dir, "data"))
	}
	out, code := f.run(t, "list", "characters", "--json")
	if code != 0 {
		t.Fatalf("code is %d, want none", code)
	}
	if !strings.Contains(out, `"name":"Wren Halloway"`) {
		t.Fatalf("out is %q, want it with %q", out, `"name":"Wren Halloway"`)
	}
}

// TestPrintedCommandsWorkInAnotherTerminal: the commands that a new server prints
// include its settings, so that they work in a terminal without them.
func TestPrintedCommandsWorkInAnotherTerminal(t *testing.T) {
	t.Parallel()
	cfg, err := setup.Load(func(string) string { return "" }, map[string]string{"NODEST_DATA": "/my data/O'Neil"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again(cfg), shellWord(os.Args[0])+` --data '/my data/O'\''Neil'`; got != want {
		t.Fatalf("again(cfg) is %q, want %q", got, want)
	}
	env := map[string]string{"NODEST_ADDR": "127.0.0.1:9000"}
	cfg, err = setup.Load(func(name string) string { return env[name] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again(cfg), shellWord(os.Args[0])+" --addr 127.0.0.1:9000"; got != want {
		t.Fatalf("again(cfg) is %q, want %q", got, want)
	}
	cfg, err = setup.Load(func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again(cfg), shellWord(os.Args[0]); got != want {
		t.Fatalf("again(cfg) is %q, want %q", got, want)
	}
}

// TestInvalidAddresses are refused, not taken for those of a server that is down.
func TestInvalidAddresses(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t)
	f.mustRun(t, "migrate")
	for _, addr := range []string{"localhost:99999", "127.0.0.1:8080/", "127.0.0.1:", "127.0.0.1:80x", "http://127.0.0.1:8080", "127.0.0.1"} {
		g := &workDir{dir: f.dir, env: append(append([]string{}, f.env...), "NODEST_ADDR="+addr)}
		for _, args := range [][]string{{"list", "characters"}, {"serve"}} {
			out, code := g.run(t, args...)
			if code != 1 {
				t.Fatalf("%s: code is %d, want %d", out, code, 1)
			}
			if !strings.Contains(out, `"`+addr+`" is invalid; must be host:port`) {
				t.Fatalf("out is %q, want it with %q", out, `"`+addr+`" is invalid; must be host:port`)
			}
		}
	}
}

// TestHelpForUnknownCommands: asking for help about a command that does not exist is a
// usage error with a suggestion.
func TestHelpForUnknownCommands(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t)
	for _, args := range [][]string{{"help", "lst"}, {"lst", "--help"}, {"lst", "-h"}} {
		out, code := f.run(t, args...)
		if code != 2 {
			t.Fatalf("%v: %s: code is %d, want %d", args, out, code, 2)
		}
		if !strings.Contains(out, "did you mean list?") {
			t.Fatalf("out is %q, want it with %q", out, "did you mean list?")
		}
	}
	for _, args := range [][]string{{"help", "list", "charcters"}, {"list", "charcters", "--help"}} {
		out, code := f.run(t, args...)
		if code != 2 {
			t.Fatalf("%v: %s: code is %d, want %d", args, out, code, 2)
		}
		if !strings.Contains(out, "did you mean characters?") {
			t.Fatalf("out is %q, want it with %q", out, "did you mean characters?")
		}
	}
	for _, args := range [][]string{{"help"}, {"help", "list"}, {"help", "list", "books"}, {"help", "help"}, {"list", "--help"}, {"chat", "Mira", "--help"}} {
		if got := f.mustRun(t, args...); !strings.Contains(got, "Usage:") {
			t.Fatalf("%v: f.mustRun(t, args...) is %q, want it with %q", args, got, "Usage:")
		}
	}
	f.mustBeEmpty(t)
}

// TestReasonsForNotReachingTheServer: each reason has its own message, and a failed
// command leaves nothing behind.
func TestReasonsForNotReachingTheServer(t *testing.T) {
	t.Parallel()
	inst := newInstallation(t, "")
	server := inst.start(t)
	addr := strings.TrimPrefix(server.client.Base, "http://")

	f := newWorkDir(t, "NODEST_ADDR="+addr)
	for _, args := range serverCommands {
		f.mustFail(t, args, "a NodeST server is running at "+addr, "no token", filepath.Join(f.dir, "data"), "NODEST_TOKEN")
	}
	wrong := newWorkDir(t, "NODEST_ADDR="+addr, "NODEST_TOKEN=not-a-token")
	for _, args := range serverCommands {
		wrong.mustFail(t, args, "rejected the token from NODEST_TOKEN", addr)
	}
	// The token of another data folder.
	other := newWorkDir(t)
	other.mustRun(t, "import", "--sample", "--local")
	out, code := other.run(t, "list", "characters", "--addr", addr)
	if code != 1 {
		t.Fatalf("code is %d, want %d", code, 1)
	}
	if !strings.Contains(out, "rejected the token from "+filepath.Join(other.dir, "data", instance.TokenFile)) {
		t.Fatalf("out is %q, want it with %q", out, "rejected the token from "+filepath.Join(other.dir, "data", instance.TokenFile))
	}

	// With a valid token the folder does not matter.
	right := newWorkDir(t, "NODEST_ADDR="+addr, "NODEST_TOKEN="+server.client.Token)
	if got := right.mustRun(t, "import", "--sample"); !strings.Contains(got, "Wren Halloway") {
		t.Fatalf("got %q, want it with %q", got, "Wren Halloway")
	}
	if got := right.mustRun(t, "list", "characters"); !strings.Contains(got, "Wren Halloway") {
		t.Fatalf("got %q, want it with %q", got, "Wren Halloway")
	}
	right.mustBeEmpty(t)

	// The server's own folder: its lock knows where the server is, unless another address is asked for.
	for _, env := range [][]string{{}, {"NODEST_ADDR=" + freeAddr(t)}} {
		found := newWorkDir(t, append(env, "NODEST_DATA="+filepath.Join(inst.dir, "data"))...)
		if got := found.mustRun(t, "list", "characters"); !strings.Contains(got, "Wren Halloway") {
			t.Fatalf("got %q, want it with %q", got, "Wren Halloway")
		}
		found.mustFail(t, []string{"list", "characters", "--addr", freeAddr(t)}, "no NodeST server at")
		found.mustFail(t, []string{"list", "characters", "--local"}, "the data folder is in use by another nodest process", "a server at "+addr)
		if got := found.mustRun(t, "doctor", "--no-network"); !strings.Contains(got, "the running server is ready") {
			t.Fatalf("got %q, want it with %q", got, "the running server is ready")
		}
	}
	out, code = wrong.run(t, "doctor", "--no-network")
	if code != 1 {
		t.Fatalf("%s: code is %d, want %d", out, code, 1)
	}
	if !strings.Contains(out, "rejected the token") {
		t.Fatalf("out is %q, want it with %q", out, "rejected the token")
	}
	wrong.mustBeEmpty(t)
	server.stop(t)
	lost := newWorkDir(t, "NODEST_ADDR="+freeAddr(t), "NODEST_DATA="+filepath.Join(inst.dir, "data"))
	if got := lost.mustRun(t, "list", "characters"); !strings.Contains(got, "Wren Halloway") {
		t.Fatalf("the server's own database, in its place: got %q, want it with %q", got, "Wren Halloway")
	}
}

// TestTheAddressOfAnotherProgram: a program that is not NodeST is recognized as such,
// whatever it answers.
func TestTheAddressOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a page":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>It works!</html>")) },
		"JSON":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"hello":"world"}`)) },
		"not found": http.NotFound,
		"a refusal": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"detail":"no"}`, http.StatusUnauthorized)
		},
		"a broken gateway": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"no HTTP whatsoever": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
				_ = conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			stranger := httptest.NewServer(answer)
			defer stranger.Close()
			addr := strings.TrimPrefix(stranger.URL, "http://")
			f := newWorkDir(t, "NODEST_ADDR="+addr)
			f.mustFail(t, []string{"list", "characters"}, "the program at "+addr+" is not NodeST")
			out, code := f.run(t, "doctor", "--no-network")
			if code != 1 {
				t.Fatalf("%s: code is %d, want %d", out, code, 1)
			}
			if !strings.Contains(out, "is not NodeST") {
				t.Fatalf("out is %q, want it with %q", out, "is not NodeST")
			}
			f.mustFail(t, []string{"serve"}, "cannot listen on "+addr, "another program")
		})
	}
}

// TestServeRefusesBeforeItCreates: if the port is taken, or nobody could sign in,
// serve fails and creates nothing.
func TestServeRefusesBeforeItCreates(t *testing.T) {
	t.Parallel()
	server := newInstallation(t, "").start(t)
	addr := strings.TrimPrefix(server.client.Base, "http://")
	newWorkDir(t, "NODEST_ADDR="+addr).mustFail(t, []string{"serve"}, "cannot listen on "+addr, "another NodeST server", "--addr")
	newWorkDir(t).mustFail(t, []string{"serve", "--addr", "0.0.0.0:0"}, "no user can sign in")
	newWorkDir(t).mustFail(t, []string{"serve", "--addr", "192.0.2.1:0"}, "no user can sign in")
	newWorkDir(t, "NODEST_ADMIN_TOKEN=long-enough-to-be-one").mustFail(t, []string{"serve", "--addr", "192.0.2.1:0"}, "cannot listen on 192.0.2.1:0")
	server.stop(t)
}

// TestMistypedCommandsGetASuggestion: unknown commands, flags and arguments
// end with exit code 2 and a suggestion.
func TestMistypedCommandsGetASuggestion(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t)
	for line, want := range map[string]string{
		"sevre":                   "did you mean serve?",
		"lits characters":         "did you mean list?",
		"characters":              "did you mean list characters?",
		"list charcters":          "did you mean characters?",
		"token craete":            "did you mean create?",
		"save sing":               "nodest save --help",
		"sing":                    "nodest --help",
		"chat --nwe":              "did you mean --new?",
		"serve --adr x":           "did you mean --addr?",
		"serve --port 1":          "nodest serve --help",
		"export":                  "usage: nodest export NAME",
		"prompt a b":              "usage: nodest prompt CHAT",
		"bind Eldoria":            "give a resource and a character",
		"import":                  "give a file (nodest import card.png) or --sample",
		"import x --as sandwich":  "must be one of character, book",
		"bind a b --as chat":      "must be one of book",
		"bind preset Wrong --all": "--all means every character; leave out Wrong",
		"unbind preset A B --all": "leave out A, B",
	} {
		out, code := f.run(t, strings.Fields(line)...)
		if code != 2 {
			t.Fatalf("%s: %s: code is %d, want %d", line, out, code, 2)
		}
		if !strings.Contains(out, want) {
			t.Fatalf("%s: out is %q, want it with %q", line, out, want)
		}
	}
	for _, line := range []string{"--version", "-v", "version"} {
		if got, want := f.mustRun(t, line), "nodest "+version+"\n"; got != want {
			t.Fatalf("f.mustRun(t, line) is %q, want %q", got, want)
		}
	}
	for _, line := range []string{"", "--help", "token", "list", "save", "help chat"} {
		if got := f.mustRun(t, strings.Fields(line)...); !strings.Contains(got, "Usage:") {
			t.Fatalf("%s: f.mustRun(t, strings.Fields(line)...) is %q, want it with %q", line, got, "Usage:")
		}
	}
	f.mustBeEmpty(t)
}

// TestFilesThatCannotBeRead: the error names the file once.
func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t)
	f.mustRun(t, "migrate")
	f.extraArgs = []string{"--local"}
	empty, quotes := tempFile(t, "empty.json", " \n"), tempFile(t, "quotes.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ann \"A\"","first_mes":"Hi."}}`)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"import", "nix.json"}, "nodest: nix.json: no such file or directory\n"},
		{[]string{"import", f.dir}, "nodest: " + f.dir + ": it is a folder; import one of SillyTavern's with nodest import --sillytavern " + f.dir + ", else name the files in it\n"},
		{[]string{"import", empty}, "nodest: " + empty + ": the file is empty\n"},
		{[]string{"restore", "nix.zip"}, "nodest: nix.zip: no such file or directory\n"},
		{[]string{"restore", "--check", "nix.zip"}, "nodest: nix.zip: no such file or directory\n"},
	} {
		out, code := f.run(t, tt.args...)
		if code != 1 {
			t.Fatalf("%s: code is %d, want %d", out, code, 1)
		}
		if out != tt.want {
			t.Fatalf("out is %q, want %q", out, tt.want)
		}
	}
	if got := f.mustRun(t, "import", quotes); !strings.Contains(got, "  note: data.name: the name ") {
		t.Fatalf("got %q, want it with %q", got, "  note: data.name: the name ")
	}
	if got := f.mustRun(t, "backup", "-"); !strings.Contains(got, "backup written and verified: standard output (") {
		t.Fatalf("got %q, want it with %q", got, "backup written and verified: standard output (")
	}
}

// TestAStopSignalWhileWaitingForPostgres: the server stops without an error.
func TestAStopSignalWhileWaitingForPostgres(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	log := &logTrigger{text: "PostgreSQL is not ready yet", seen: cancel}
	env := map[string]string{"NODEST_ADDR": freeAddr(t), "NODEST_DATA": t.TempDir(), "NODEST_DATABASE_URL": "postgres://nobody@" + freeAddr(t) + "/x"}
	if err := run(ctx, []string{"serve"}, func(name string) string { return env[name] }, strings.NewReader(""), io.Discard, log); err != nil {
		t.Fatal(err)
	}
	if err := ctx.Err(); err == nil {
		t.Fatal("it waited: got no error, want one")
	}
}

// logTrigger calls seen when a line that contains text is written to it.
type logTrigger struct {
	text string
	seen func()
}

func (w *logTrigger) Write(line []byte) (int, error) {
	if strings.Contains(string(line), w.text) {
		w.seen()
	}
	return len(line), nil
}

// databaseCommands lists commands that open the database of a data folder themselves.
var databaseCommands = [][]string{
	{"serve", "--addr", "127.0.0.1:0"}, {"migrate"}, {"list", "characters", "--local"}, {"doctor", "--no-network"}, {"backup", "all.zip"},
}

// TestADamagedDatabase: every command names the file and how to repair it, and that
// works.
func TestADamagedDatabase(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t, "NODEST_ADDR="+freeAddr(t))
	f.mustRun(t, "import", "--sample", "--local")
	f.mustRun(t, "backup", "good.zip")
	path := filepath.Join(f.dir, "data", "nodest.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range append([][]string{{"list", "characters"}}, databaseCommands...) {
		out, code := f.run(t, args...)
		if code != 1 {
			t.Fatalf("%v: %s: code is %d, want %d", args, out, code, 1)
		}
		if !strings.Contains(out, "the database "+filepath.Join("data", "nodest.db")+" is damaged (file is not a database). ") {
			t.Fatalf("%v: out is %q, want it with %q", args, out, "the database "+filepath.Join("data", "nodest.db")+" is damaged (file is not a database). ")
		}
		if !strings.Contains(out, "nodest restore --force") {
			t.Fatalf("%v: out is %q, want it with %q", args, out, "nodest restore --force")
		}
		if strings.Contains(out, "store:") {
			t.Fatalf("out is %q, want it without %q", out, "store:")
		}
	}
	f.mustRun(t, "restore", "--force", "good.zip")
	if got := f.mustRun(t, "list", "characters"); !strings.Contains(got, "Wren Halloway") {
		t.Fatalf("got %q, want it with %q", got, "Wren Halloway")
	}
}

// TestAFolderThatCannotBeWritten: the error names the file and what to check.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	f := newWorkDir(t, "NODEST_DATA=/sys") // not even root can create a file there
	if _, err := os.Stat("/sys/kernel"); err != nil {
		t.Skip("there is no /sys here")
	}
	for _, args := range databaseCommands[:3] {
		f.mustFail(t, args, "cannot open "+filepath.Join("/sys", "nodest.lock")+": ", "Check the owner and permissions", "the folder /sys")
	}
	out, code := f.run(t, "doctor", "--no-network")
	if code != 1 {
		t.Fatalf("%s: code is %d, want %d", out, code, 1)
	}
	if !strings.Contains(out, "/sys is not writable") {
		t.Fatalf("out is %q, want it with %q", out, "/sys is not writable")
	}
	if strings.Contains(out, "doctor-") {
		t.Fatalf("the probe file is not named: out is %q, want it without %q", out, "doctor-")
	}
	f.mustBeEmpty(t)
}
