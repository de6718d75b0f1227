package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child is a process that is measured.
type child struct {
	cmd  *exec.Cmd
	base string        // http://host:port
	took time.Duration // until it listened
}

// launch runs a program, calls f when it listens, and asks it to end.
func (r *run) launch(ctx context.Context, program string, env []string, f func(*child) error, args ...string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := &child{cmd: exec.CommandContext(ctx, program, args...)}
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = 3 * time.Minute // a busy machine may take so long
	var failed bytes.Buffer
	c.cmd.Env, c.cmd.Stderr = slices.Concat(env, r.Env), &failed
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := c.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for c.base == "" && lines.Scan() {
		_, c.base, _ = strings.Cut(lines.Text(), " listens on ")
	}
	if c.took = time.Since(begun); c.base == "" {
		return fmt.Errorf("%s %s: %w: %s", program, args[0], errors.Join(c.cmd.Wait(), ctx.Err()), bytes.TrimSpace(failed.Bytes()))
	}
	drained := make(chan struct{})
	go func() { // ends with the process
		defer close(drained)
		_, _ = io.Copy(io.Discard, out)
	}()
	err = f(c)
	stop()
	<-drained
	if ended := c.cmd.Wait(); !errors.Is(ended, context.Canceled) {
		err = errors.Join(err, ended)
	}
	return err
}

// serve runs f with a server on a data folder. models is the address of the provider,
// "" = the offline model.
func (r *run) serve(ctx context.Context, dir, models string, f func(*child) error) error {
	env := []string{
		"NODEST_DATA=" + dir, "NODEST_DATABASE_URL=" + r.Database, "NODEST_ADDR=127.0.0.1:0", "NODEST_LOG_LEVEL=warn", "NODEST_MAX_CONNECTIONS=20000",
		"HOME=" + r.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "NODEST_PROVIDER=offline", "NODEST_OFFLINE_DELAY=0s",
	}
	if models != "" {
		env = append(env, "NODEST_PROVIDER=openai", "OPENAI_BASE_URL="+models, "NODEST_MODEL=bench")
	}
	return r.launch(ctx, r.Program, env, f, "serve")
}

// floor runs f with the bare proxy.
func (r *run) floor(ctx context.Context, models string, f func(*child) error) error {
	return r.launch(ctx, r.Bench, []string{"HOME=" + r.dir, "PATH=" + os.Getenv("PATH")}, f, "floor", models)
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
