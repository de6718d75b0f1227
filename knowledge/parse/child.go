package parse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// Child parses files in child processes, which are killed when they take too long or too much
// memory. A file that makes one crash fails by itself. The zero value runs this program again
// with the argument parse-worker. It is safe for concurrent use.
type Child struct {
	Command  []string // default: this program, parse-worker
	CacheDir string   // for inputs that have none
	Limits   Limits   // for inputs that have none
}

// smallText is up to what size text is parsed without a child, in bytes.
const smallText = 1 << 20

// maxAnswer bounds what a child may write, in bytes.
const maxAnswer = 256 << 20

// request is the first line of what a child reads; the bytes of the file follow.
type request struct {
	Name         string
	DeclaredType string
	Limits       Limits
	CacheDir     string
	Parent       int // process that waits for the answer; 0 = none
}

// answer is what a child writes.
type answer struct {
	Document *Document `json:",omitempty"`
	Error    *Error    `json:",omitempty"`
}

// Parse parses a file. Small texts of the types that are read in linear time are parsed in
// this process.
//
// Errors: *Error for what is wrong with the file, also that its child had to be killed; those
// of ctx; others if no child can be started.
func (c *Child) Parse(ctx context.Context, in Input) (*Document, error) {
	if in.Limits == (Limits{}) {
		in.Limits = c.Limits
	}
	in.Limits = in.Limits.withDefaults()
	if in.CacheDir == "" {
		in.CacheDir = c.CacheDir
	}
	kind, err := container(in.Data)
	if err != nil {
		return nil, err
	}
	if kind == "" && len(in.Data) <= smallText && !needsChild(in) {
		return Parse(ctx, in)
	}
	return c.run(ctx, in)
}

// needsChild reports whether a text may be of a type whose parser is not known to take linear
// time.
func needsChild(in Input) bool {
	switch claimed(in) {
	case "text", "markdown", "code", "csv", "json":
		return false
	}
	return true
}

// blankPDF has one page, without text.
const blankPDF = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
	"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"

// Warm compiles what parsing needs into the cache, so that the first document need not wait for it.
func (c *Child) Warm(ctx context.Context) error {
	_, err := c.Parse(ctx, Input{Name: "blank.pdf", Data: []byte(blankPDF)})
	if e := (*Error)(nil); errors.As(err, &e) && e.Code == NoTextLayer { // it was read
		return nil
	}
	return err
}

func (c *Child) run(ctx context.Context, in Input) (*Document, error) {
	if in.CacheDir != "" { // the child works in another folder
		dir, err := filepath.Abs(in.CacheDir)
		if err != nil {
			return nil, err
		}
		in.CacheDir = dir
	}
	header, err := json.Marshal(request{in.Name, in.DeclaredType, in.Limits, in.CacheDir, os.Getpid()})
	if err != nil {
		return nil, err
	}
	command := c.Command
	if command == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the program to parse with: %w", err)
		}
		command = []string{self, "parse-worker"}
	}
	timeout, cancel := context.WithTimeoutCause(ctx, in.Limits.Time, fail(ParseTimeout, "the file took longer than "+in.Limits.Time.String()))
	defer cancel()
	limited, kill := context.WithCancelCause(timeout)
	defer kill(nil)

	cmd := exec.CommandContext(limited, command[0], command[1:]...)
	cmd.Env = []string{} // no key or setting of ours reaches the parser of a foreign file
	cmd.Dir = os.TempDir()
	cmd.Stdin = io.MultiReader(bytes.NewReader(append(header, '\n')), bytes.NewReader(in.Data))
	out, said := &bounded{limit: maxAnswer, full: kill}, &tail{limit: 4096}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the parser: %w", err)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watchMemory(limited, cmd.Process.Pid, in.Limits.Memory, kill)
	}()
	err = cmd.Wait()
	killed := context.Cause(limited)
	kill(nil)
	<-watched
	return result(ctx, err, killed, out.kept.Bytes(), said.text)
}

// result tells how a child ended.
func result(ctx context.Context, err, killed error, out, said []byte) (*Document, error) {
	if err == nil {
		var a answer
		if json.Unmarshal(out, &a) == nil {
			switch {
			case a.Error != nil:
				return nil, a.Error
			case a.Document != nil:
				return a.Document, nil
			}
		}
		return nil, fail(DamagedFile, "the parser gave no answer for this file")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if e := (*Error)(nil); errors.As(killed, &e) {
		return nil, e
	}
	if bytes.Contains(said, []byte("out of memory")) || bytes.Contains(said, []byte("cannot allocate memory")) {
		return nil, outOfMemory()
	}
	return nil, fail(DamagedFile, "the parser crashed on this file")
}

func outOfMemory() *Error { return fail(DamagedFile, "the file needs too much memory to be read") }

// watchMemory kills a process that uses more than limit bytes of memory, until ctx ends.
func watchMemory(ctx context.Context, pid int, limit int64, kill context.CancelCauseFunc) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			used, known := residentMemory(pid)
			if !known {
				return
			}
			if used > limit {
				kill(outOfMemory())
				return
			}
		}
	}
}

// bounded keeps what is written up to a limit, and then calls full.
type bounded struct {
	kept  bytes.Buffer // not embedded: its ReadFrom would go past the limit
	limit int
	full  context.CancelCauseFunc
}

func (b *bounded) Write(data []byte) (int, error) {
	if b.kept.Len()+len(data) > b.limit {
		b.full(fail(TextTooLong, "the document is too large"))
		return 0, errors.New("the answer of the parser is too long")
	}
	return b.kept.Write(data)
}

// tail keeps the beginning of what is written.
type tail struct {
	text  []byte
	limit int
}

func (t *tail) Write(data []byte) (int, error) {
	t.text = append(t.text, data[:min(len(data), t.limit-len(t.text))]...)
	return len(data), nil
}

// Work is the child process: it reads a request from in, parses the file and writes the answer
// to out. It ends by itself if its parent does not end it in time, or is gone: a server that
// was killed leaves no child behind.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	var r request
	line, err := readLine(in)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	r.Limits = r.Limits.withDefaults()
	debug.SetMemoryLimit(r.Limits.Memory * 3 / 4)
	limitMemory(r.Limits.Memory)
	end := time.AfterFunc(r.Limits.Time+10*time.Second, func() { os.Exit(3) })
	defer end.Stop()
	working, stop := context.WithCancel(ctx)
	defer stop()
	go endWithParent(working, r.Parent)
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var a answer
	a.Document, err = Parse(ctx, Input{r.Name, r.DeclaredType, data, r.Limits, r.CacheDir})
	if err != nil && !errors.As(err, &a.Error) {
		return err
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(a)
}

// endWithParent ends this process when the one that started it is gone, until ctx ends.
func endWithParent(ctx context.Context, parent int) {
	tick := time.Tick(200 * time.Millisecond)
	for parent != 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			if os.Getppid() != parent {
				orphaned()
			}
		}
	}
}

// orphaned ends a process that nobody waits for.
func orphaned() { os.Exit(3) }

// readLine reads a line byte by byte, so that nothing after it is lost.
func readLine(in io.Reader) ([]byte, error) {
	var line strings.Builder
	var c [1]byte
	for line.Len() < 64<<10 {
		if _, err := io.ReadFull(in, c[:]); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		if c[0] == '\n' {
			return []byte(line.String()), nil
		}
		line.WriteByte(c[0])
	}
	return nil, errors.New("the request is too long")
}
