package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"nodest/fault"
)

// ServerOptions are those of the measurements that start servers.
type ServerOptions struct {
	Program string   // the nodest program, which the servers are processes of
	Env     []string // of those processes, beside what a measurement sets
	Only    string   // Chat: one of ChatParts; "" = all
	JSON    bool     // print the figures as one JSON object
	Small   bool     // small sizes, to try out the measurements; the figures mean nothing
}

// ChatParts are the measurements of Chat, in the order in which they run.
var ChatParts = []string{"ttft", "cpu", "idle", "startup", "append", "store"}

// sizes are how much a measurement does.
type sizes struct {
	streams    []int // ttft: running at once
	samples    int   // ttft: turns at each number of streams, at least
	ttftTokens int   // ttft: of each reply
	cpuStreams int
	cpuTurns   int // of each stream
	cpuTokens  int // of each reply
	idle       int // connections
	settle     time.Duration
	long       int // messages of the long chat; the short one has 100
	starts     int
	requests   int // append and page: of each kind
	storing    time.Duration
}

var (
	fullSizes = sizes{
		streams: []int{1, 10, 100}, samples: 20, ttftTokens: 100, cpuStreams: 32, cpuTurns: 4, cpuTokens: 200,
		idle: 10_000, settle: 30 * time.Second, long: 100_000, starts: 7, requests: 300, storing: 5 * time.Second,
	}
	smallSizes = sizes{
		streams: []int{1, 2}, samples: 2, cpuStreams: 2, cpuTurns: 1, cpuTokens: 20, ttftTokens: 5,
		idle: 20, settle: 0, long: 300, starts: 1, requests: 5, storing: 50 * time.Millisecond,
	}
)

// figures are what Chat found; a part that was not measured is nil.
type figures struct {
	Machine  string         `json:"machine"`
	TTFT     []ttftFigures  `json:"ttft,omitempty"`
	CPU      *cpuFigures    `json:"cpu,omitempty"`
	Idle     *idleFigures   `json:"idle,omitempty"`
	Startup  *startFigures  `json:"startup,omitempty"`
	Append   *appendFigures `json:"append,omitempty"`
	Storing  *storeFigures  `json:"store,omitempty"`
	Measured time.Time      `json:"measured"`
}

// Chat measures the program from outside, as an app sees it: real processes on
// SQLite in a temporary folder, a provider that costs nothing, and for the parts
// about streaming a bare proxy (Floor) in the same minutes. It runs a few minutes.
func Chat(ctx context.Context, out io.Writer, o ServerOptions) error {
	if o.Only != "" && !slices.Contains(ChatParts, o.Only) {
		return fault.InvalidField("only", "value", "unknown measurement %q; must be one of %s", o.Only, strings.Join(ChatParts, ", "))
	}
	return withServers(out, o, func(c *chatRun, machine string, at time.Time) (any, error) {
		c.figures = figures{Machine: machine, Measured: at}
		err := c.run(ctx)
		return c.figures, err
	})
}

// withServers runs a measurement in a temporary folder, and prints its figures as JSON
// if they are wanted so.
func withServers(out io.Writer, o ServerOptions, measure func(c *chatRun, machine string, at time.Time) (figures any, err error)) error {
	dir, err := os.MkdirTemp("", "nodest-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := &chatRun{o: o, n: fullSizes, dir: dir, out: out}
	if o.Small {
		c.n = smallSizes
	}
	if o.JSON {
		c.out = io.Discard
	}
	name, at := machine(), time.Now().UTC().Truncate(time.Second)
	fmt.Fprintf(c.out, "%s, SQLite, %s\n", name, at.Format(time.RFC3339))
	f, err := measure(c, name, at)
	if err == nil && o.JSON {
		err = json.NewEncoder(out).Encode(f)
	}
	return err
}

// chatRun is one run of Chat.
type chatRun struct {
	o       ServerOptions
	n       sizes
	dir     string
	out     io.Writer
	figures figures
}

func (c *chatRun) run(ctx context.Context) error {
	parts := map[string]func(context.Context) error{
		"ttft": c.ttft, "cpu": c.cpu, "idle": c.idle, "startup": c.startup, "append": c.appending, "store": c.storing,
	}
	for _, name := range ChatParts {
		if c.o.Only != "" && c.o.Only != name {
			continue
		}
		if err := parts[name](ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// machine names what the figures hold for.
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

// folder is a new data folder.
func (c *chatRun) folder(name string) string { return filepath.Join(c.dir, name) }

// at is the value below which share of the sorted times are.
func at(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(int(share*float64(len(times))), len(times)-1)]
}

// millis is a time as figures show it.
func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
