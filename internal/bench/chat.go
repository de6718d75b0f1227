package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"nodest/internal/bench/circle"
	"nodest/internal/fault"
)

// ServerOptions are those of the measurements that start servers.
type ServerOptions struct {
	Program string   // the nodest program, which the servers are processes of
	Bench   string   // the nodest-bench program, which the bare proxy is a process of
	Env     []string // variables of those processes, in addition to those that a measurement sets
	Only    string   // Chat: one of ChatParts; "" = all
	// FirstToken is how long the provider of Chat takes to its first token.
	FirstToken time.Duration
	// Database is the URL of a PostgreSQL, for a schema that is dropped in the end; "" = SQLite in a
	// temporary folder. Only Year uses it.
	Database string
	JSON     bool // print the figures as one JSON object
	Small    bool // small sizes, to try out the measurements; the figures mean nothing
}

// ChatParts are the measurements of Chat, in the order in which they run.
var ChatParts = []string{"ttft", "cpu", "idle", "startup", "append", "store"}

// sizes are how much a measurement does.
type sizes struct {
	streams    []int // ttft: running at once
	samples    int   // ttft: turns at each number of streams, at least
	ttftTokens int   // ttft: of each reply
	cpuStreams int
	cpuTurns   int // turns of each stream
	cpuTokens  int // tokens of each reply
	idle       int // connections
	settle     time.Duration
	long       int // messages of the long chat; the short one has 100
	starts     int
	requests   int // append and page: of each kind
	storing    time.Duration
	chats      []int // history: messages of each chat
	steps      int   // history: each step
	forks      int   // history
}

var (
	fullSizes = sizes{
		streams: []int{1, 10, 100}, samples: 20, ttftTokens: 100, cpuStreams: 32, cpuTurns: 4, cpuTokens: 200,
		idle: 10_000, settle: 30 * time.Second, long: 100_000, starts: 7, requests: 300, storing: 5 * time.Second,
		chats: []int{100, 10_000, 100_000}, steps: 100, forks: 10,
	}
	smallSizes = sizes{
		streams: []int{1, 2}, samples: 2, cpuStreams: 2, cpuTurns: 1, cpuTokens: 20, ttftTokens: 5,
		idle: 20, settle: 0, long: 300, starts: 1, requests: 5, storing: 50 * time.Millisecond,
		chats: []int{20, 200}, steps: 3, forks: 1,
	}
)

// Chat measures the program from outside, as an app sees it: real processes on
// SQLite in a temporary folder, a provider that costs nothing, and for the parts
// about streaming a bare proxy (Floor) in the same minutes. It takes a few minutes.
func Chat(ctx context.Context, out io.Writer, o ServerOptions) error {
	if o.Only != "" && !slices.Contains(ChatParts, o.Only) {
		return fault.InvalidField("only", "value", "unknown measurement %q; must be one of %s", o.Only, strings.Join(ChatParts, ", "))
	}
	if o.FirstToken < 0 {
		return fault.InvalidField("first-token", "value", "must not be negative")
	}
	return withServers(ctx, out, o, func(r *run) error {
		parts := map[string]func(context.Context) error{
			"ttft": r.ttft, "cpu": r.cpu, "idle": r.idle, "startup": r.startup, "append": r.appending, "store": r.storing,
		}
		for _, name := range ChatParts {
			if o.Only != "" && o.Only != name {
				continue
			}
			if err := parts[name](ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// run is one run of a measurement that starts servers.
type run struct {
	ServerOptions
	n       sizes
	dir     string         // for everything that it writes
	out     io.Writer      // for text
	figures map[string]any // for JSON
}

// withServers runs a measurement in a temporary folder, and prints its figures as JSON
// if requested.
func withServers(ctx context.Context, out io.Writer, o ServerOptions, measure func(*run) error) (err error) {
	dir, err := os.MkdirTemp("", "nodest-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	name, now := machine(), time.Now().UTC().Truncate(time.Second)
	r := &run{ServerOptions: o, n: fullSizes, dir: dir, out: out, figures: map[string]any{"machine": name, "measured": now}}
	if o.Small {
		r.n = smallSizes
	}
	if o.JSON {
		r.out = io.Discard
	}
	engine := "SQLite"
	if o.Database != "" {
		var drop func() error
		if r.Database, drop, err = circle.NewSchema(ctx, o.Database); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, drop()) }()
		engine = "PostgreSQL"
	}
	fmt.Fprintf(r.out, "%s, %s, %s\n", name, engine, now.Format(time.RFC3339))
	err = measure(r)
	if err == nil && o.JSON {
		err = json.NewEncoder(out).Encode(r.figures)
	}
	return err
}

// machine describes the machine that the figures hold for.
func machine() string {
	model := ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = " (" + strings.TrimSpace(value) + ")"
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %d CPUs%s, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, runtime.Version())
}
