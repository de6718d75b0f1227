package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child is a process under measure.
type child struct {
	cmd    *exec.Cmd
	base   string // http://host:port
	took   time.Duration
	errors bytes.Buffer // read after gone
	gone   chan error
}

// launch runs the program and returns when it says where it listens. It ends
// with stop, or with ctx.
func launch(ctx context.Context, program string, env []string, args ...string) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, program, args...), gone: make(chan error, 1)}
	c.cmd.Env, c.cmd.Stderr = env, &c.errors
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	listens := make(chan string, 1)
	go func() { // ends with the process
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, base, ok := strings.Cut(lines.Text(), " listens on "); ok {
				listens <- base
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
		c.gone <- c.cmd.Wait()
	}()
	select {
	case c.base = <-listens:
		c.took = time.Since(begun)
		return c, nil
	case err := <-c.gone:
		return nil, fmt.Errorf("%s %s: %w: %s", program, args[0], errors.Join(err, ctx.Err()), bytes.TrimSpace(c.errors.Bytes()))
	}
}

// stop asks the process to end, and ends it if it does not within 30 s.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-c.gone:
		return err
	case <-time.After(30 * time.Second):
		_ = c.cmd.Process.Kill()
		return errors.Join(errors.New("the server did not stop within 30 s"), <-c.gone)
	}
}

// server starts nodest on a data folder. models is the address of the provider,
// "" = the offline model.
func (c *chatRun) server(ctx context.Context, dir, models string) (*child, error) {
	env := append([]string{
		"NODEST_DATA=" + dir, "NODEST_ADDR=127.0.0.1:0", "NODEST_LOG_LEVEL=warn", "NODEST_MAX_CONNECTIONS=20000",
		"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "NODEST_PROVIDER=offline", "NODEST_OFFLINE_DELAY=0s",
	}, c.o.Env...)
	if models != "" {
		env = append(env, "NODEST_PROVIDER=openai", "OPENAI_BASE_URL="+models, "NODEST_MODEL=bench")
	}
	return launch(ctx, c.o.Program, env, "serve")
}

// floor starts the bare proxy.
func (c *chatRun) floor(ctx context.Context, models string) (*child, error) {
	env := append([]string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH")}, c.o.Env...)
	return launch(ctx, c.o.Program, env, "bench", "floor", models)
}

// cpu is the processor time that the process has used.
func (c *child) cpu() (time.Duration, error) {
	text, err := c.proc("stat")
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold spaces; user and system time are the 12th
	// and 13th field after it, in hundredths of a second.
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("/proc has no processor time")
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// resident is the memory of the process, in bytes.
func (c *child) resident() (int, error) {
	text, err := c.proc("statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0, errors.New("/proc has no memory usage")
	}
	pages, err := strconv.Atoi(fields[1])
	return pages * os.Getpagesize(), err
}

func (c *child) proc(name string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, name))
	if err != nil {
		return "", fmt.Errorf("this measurement needs Linux: %w", err)
	}
	return string(text), nil
}

// metric reads one figure of GET /metrics.
func (c *child) metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("/metrics has no %s", name), lines.Err())
}
