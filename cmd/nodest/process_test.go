package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/internal/instance"
	"nodest/store"
	"nodest/store/storetest"
)

// asProgram makes the test binary run as the program, so that a test can start it as
// a process and kill it. Documents are parsed by a process without environment: see TestMain.
const asProgram = "NODEST_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	instance.RecallTimeout, instance.KnowledgeTimeout = testTimeout, testTimeout
	instance.WarmAfter = time.Hour // five seconds of a core for each server
	parses := len(os.Args) == 2 && os.Args[1] == "parse-worker"
	if os.Getenv(asProgram) == "" && !parses {
		os.Exit(runTests(m))
	}
	if d, err := time.ParseDuration(os.Getenv(testLease)); err == nil {
		instance.Lease = d
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(exitCode(err, os.Stderr))
}

func runTests(m *testing.M) (code int) {
	var err error
	if binaries, err = os.MkdirTemp("", "nodest-test-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(binaries) //nolint:errcheck // a temporary folder
	return m.Run()
}

// testLease shortens the lease of that program, because another process takes over
// the work of a killed one only after its lease.
const testLease = "NODEST_TEST_LEASE"

// raceOptions sets GORACE for the processes that a test starts. By default a program
// with the race detector sleeps for a second before it exits.
func raceOptions() string { return "GORACE=" + cmp.Or(os.Getenv("GORACE"), "atexit_sleep_ms=20") }

// commandLine returns the program for short commands and for tests that kill servers
// again and again. With the race detector, which starts and works slowly, it is a build
// without it; the commands also run within this process, and other tests serve with it.
func commandLine(t *testing.T) string {
	t.Helper()
	path, err := withoutRace()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var withoutRace = sync.OnceValues(func() (string, error) {
	if !raceDetector() {
		return os.Args[0], nil
	}
	path := filepath.Join(binaries, "nodest")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	return path, nil
})

// binaries is a folder for programs built by tests.
var binaries string

// raceDetector reports whether the race detector is on.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// testTimeout is how long a test waits for something that must happen.
const testTimeout = 60 * time.Second

// installation is a data folder, its configuration, and the program that serves it.
type installation struct {
	dir     string
	env     []string
	program string
}

// newInstallation returns an empty one on SQLite, or on PostgreSQL when url is given.
func newInstallation(t *testing.T, url string, env ...string) *installation {
	if url == "" {
		storetest.NeedSQLite(t)
	}
	dir := t.TempDir()
	return &installation{dir: dir, program: os.Args[0], env: append([]string{
		"NODEST_DATA=" + filepath.Join(dir, "data"), "NODEST_DATABASE_URL=" + url, "NODEST_PROVIDER=offline",
		"NODEST_OFFLINE_DELAY=1ms", "NODEST_ADDR=127.0.0.1:0", "NODEST_LOG_LEVEL=warn", asProgram + "=1",
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), raceOptions(), testLease + "=3s",
	}, env...)}
}

// fast makes it serve without the race detector.
func (i *installation) fast(t *testing.T) *installation {
	t.Helper()
	i.program = commandLine(t)
	return i
}

// newDatabase returns an installation with a SQLite database, so that commands can
// work on it without a server.
func newDatabase(t *testing.T, env ...string) *installation {
	inst := newInstallation(t, "", env...)
	inst.prepare(t)
	return inst
}

// prepare gives an installation on SQLite without a data folder an empty database, because a
// program takes much longer to create one than to start. The tests of the first hour have their
// programs create it.
func (i *installation) prepare(t *testing.T) {
	t.Helper()
	o := i.options()
	if o.URL != "" {
		return
	}
	if err := os.Mkdir(o.Dir, 0o700); !errors.Is(err, fs.ErrExist) {
		if err != nil {
			t.Fatal(err)
		}
		storetest.Fill(t, o.Dir)
	}
}

// options returns the options to open the installation's database.
func (i *installation) options() store.Options {
	o := store.Options{Dir: filepath.Join(i.dir, "data")}
	for _, pair := range i.env {
		if url, ok := strings.CutPrefix(pair, "NODEST_DATABASE_URL="); ok {
			o.URL = url
		}
	}
	return o
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// process is a running server.
type process struct {
	cmd      *exec.Cmd
	client   *cli.Client
	link     string // secret of the sign-in link
	linkBase string // and its address
	stderr   *strings.Builder
	exited   chan error
}

// start runs `nodest serve` and returns when it listens.
func (i *installation) start(t *testing.T) *process {
	t.Helper()
	i.prepare(t)
	cmd := exec.CommandContext(t.Context(), i.program, "serve")
	cmd.Env = i.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, stderr: &strings.Builder{}, exited: make(chan error, 1)}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan []string, 1)
	go func() {
		var base string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, after, ok := strings.Cut(lines.Text(), " listens on "); ok {
				base = after
			}
			if at, link, ok := strings.Cut(lines.Text(), "/signin#"); ok {
				listening <- []string{base, link, at[strings.LastIndex(at, " ")+1:]}
			}
		}
		p.exited <- cmd.Wait()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	select {
	case said := <-listening:
		token, err := os.ReadFile(filepath.Join(i.dir, "data", instance.TokenFile))
		if err != nil {
			t.Fatal(err)
		}
		p.client, p.link, p.linkBase = newTestClient(said[0], strings.TrimSpace(string(token))), said[1], said[2]
		return p
	case err := <-p.exited:
		t.Fatalf("the server ended: %v\n%s", err, p.stderr)
	case <-time.After(testTimeout):
		t.Fatalf("the server does not listen\n%s", p.stderr)
	}
	return nil
}

// kill sends SIGKILL.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.exited
}

// stop sends SIGTERM and waits until the process has ended.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		if err != nil {
			t.Fatalf("%s: %v", p.stderr.String(), err)
		}
	case <-time.After(testTimeout):
		t.Fatal("the server does not stop")
	}
}

// eachDatabase runs f on SQLite and, if there is one, on PostgreSQL.
func eachDatabase(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, "") })
	t.Run("postgres", func(t *testing.T) { f(t, storetest.PostgresURL(t)) })
}

// scaled returns a number of steps: least by default, all with NODEST_LONG=1.
func scaled(t *testing.T, least, all int) int {
	t.Helper()
	fraction, err := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64)
	if err != nil {
		return least
	}
	return max(least, int(fraction*float64(all)))
}

// newRand returns a random source with a fixed seed, or that of NODEST_SEED.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Logf("NODEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// eventually calls f until it returns nil, and fails with its last error.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(testTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

// command runs one command in this process and returns what it printed.
func (i *installation) command(t *testing.T, in io.Reader, args ...string) (out, errOut string, err error) {
	t.Helper()
	env := map[string]string{}
	for _, pair := range i.env {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	var o, e strings.Builder
	err = run(t.Context(), args, func(name string) string { return env[name] }, in, &o, &e)
	return o.String(), e.String(), err
}

var errNotYet = errors.New("not yet")

// wantSame fails unless got has the same elements as want, in any order.
func wantSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if g, w := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)); !slices.Equal(g, w) {
		t.Fatalf("%s: got %q, want %q", what, g, w)
	}
}

// wantNone fails if there is a file or folder.
func wantNone(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s: got %v, want nothing there", path, err)
	}
}
