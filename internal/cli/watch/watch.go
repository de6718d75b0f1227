// Package watch has a person watch a run of deep research: its plan, what it does, and its answer. It reads
// events and shows texts; it must not know a command, or keep anything itself.
package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/llm/sse"
)

// Path is that of deep research in REST.
const Path = "/api/v1/research"

// Run is a run of deep research.
type Run struct {
	ID         string      `json:"id"`
	State      string      `json:"state"`
	Question   string      `json:"question"`
	Plan       Plan        `json:"plan"`
	Estimate   Estimate    `json:"estimate"`
	Answer     string      `json:"answer"`
	References []Reference `json:"references"`
	Report     *Report     `json:"report"`
	Left       []string    `json:"left"`
	Error      *Failure    `json:"error"`
	Usage      Usage       `json:"usage"`
}

// Plan is how a question is researched.
type Plan struct {
	Language  string   `json:"language"`
	Queries   []string `json:"queries"`
	Questions []string `json:"questions"`
	Budget    Budget   `json:"budget"`
}

// Budget is the most that a run may take.
type Budget struct {
	Tokens  int     `json:"tokens"`
	Seconds int     `json:"seconds"`
	USD     float64 `json:"usd"` // 0 = no limit
}

// Estimate is what a run will probably take.
type Estimate struct {
	Tokens  int      `json:"tokens"`
	Calls   int      `json:"calls"`
	Seconds int      `json:"seconds"`
	USD     *float64 `json:"usd"` // nil = the price is not known
}

// Report says what the marks of an answer are worth.
type Report struct {
	Marks     int `json:"marks"`
	Supported int `json:"supported"`
}

// Failure is why a run has failed.
type Failure struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Usage is what a run has cost.
type Usage struct {
	Calls            int   `json:"calls"`
	PromptTokens     int   `json:"promptTokens"`
	CompletionTokens int   `json:"completionTokens"`
	Ms               int64 `json:"ms"`
}

// Reference is a source of an answer.
type Reference struct {
	Marker     int    `json:"marker"`
	Title      string `json:"title"`
	URL        string `json:"url"`
	ExactQuote string `json:"exactQuote"`
}

// ShowPlan prints what a run will do, and what it will probably cost.
func ShowPlan(out io.Writer, r *Run) error {
	list(out, "searches first for", r.Plan.Queries)
	list(out, "answers", r.Plan.Questions)
	b, e := &r.Plan.Budget, &r.Estimate
	usd := ""
	if e.USD != nil {
		usd = fmt.Sprintf(", %.2f USD", *e.USD)
	}
	limit := ""
	if b.USD > 0 {
		limit = fmt.Sprintf(", %.2f USD", b.USD)
	}
	_, err := fmt.Fprintf(out, "budget: %d tokens, %d s%s; estimate: %d tokens in %d calls, %d s%s\n", b.Tokens, b.Seconds, limit, e.Tokens, e.Calls, e.Seconds, usd)
	return err
}

func list(out io.Writer, what string, items []string) {
	if len(items) > 0 {
		fmt.Fprintf(out, "%s: %s\n", what, strings.Join(items, "; "))
	}
}

// ShowAnswer prints the answer of a run with its sources on out, and what it has cost on info.
func ShowAnswer(out, info io.Writer, r *Run) error {
	fmt.Fprintln(out, strings.TrimSpace(r.Answer))
	if len(r.References) > 0 {
		fmt.Fprintln(out)
	}
	for _, ref := range r.References {
		fmt.Fprintf(out, "[%d] %s – %s\n    “%s”\n", ref.Marker, ref.Title, ref.URL, cli.Brief(ref.ExactQuote, 300))
	}
	for _, left := range r.Left {
		fmt.Fprintln(info, "left out:", left)
	}
	if r.Report != nil {
		fmt.Fprintf(info, "%d of %d marks are supported by their source\n", r.Report.Supported, r.Report.Marks)
	}
	u := &r.Usage
	_, err := fmt.Fprintf(info, "%d tokens in %d calls, %.1f s\n", u.PromptTokens+u.CompletionTokens, u.Calls, float64(u.Ms)/1000)
	return err
}

// Get returns a run, and as the server sends it.
func Get(ctx context.Context, c *cli.Client, id string) (r *Run, raw json.RawMessage, err error) {
	if err := c.Call(ctx, http.MethodGet, Path+"/"+id, nil, &raw); err != nil {
		return nil, nil, err
	}
	r = &Run{}
	return r, raw, json.Unmarshal(raw, r)
}

// Limits of watching.
const (
	longestEvent = 16 << 20 // bytes
	mostBreaks   = 60       // in a row, after which the server is taken for gone
	pause        = time.Second
	cancelTime   = 10 * time.Second
)

// Follow shows what a run does until it ends. A stream that breaks is opened again, also while the server is
// started again: the run goes on meanwhile. When ctx ends, it cancels the run.
func Follow(ctx context.Context, c *cli.Client, id string, out io.Writer) error {
	return (&screen{out: out, shown: map[step]bool{}}).follow(ctx, c, id)
}

// Start starts the run of a plan and follows it from its first step.
func Start(ctx context.Context, c *cli.Client, id string, out io.Writer) error {
	return (&screen{out: out, shown: map[step]bool{}, planned: true}).follow(ctx, c, id)
}

func (s *screen) follow(ctx context.Context, c *cli.Client, id string) error {
	for breaks := 0; ; breaks++ {
		before := len(s.shown)
		ended, err := s.stream(ctx, c, id)
		if ended {
			return nil
		}
		if ctx.Err() != nil {
			return cancel(ctx, c, id)
		}
		if !passes(err) || breaks == mostBreaks {
			return err
		}
		if len(s.shown) > before {
			breaks = 0
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// passes reports whether another try can help against an error.
func passes(err error) bool {
	var nobody *cli.NobodyError
	var problem *fault.Error
	return errors.Is(err, errBroken) || errors.As(err, &nobody) || errors.As(err, &problem) && problem.Retry() != "no"
}

// cancel cancels a run whose watcher has gone, and returns why that has.
func cancel(ctx context.Context, c *cli.Client, id string) error {
	last, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer done()
	if err := c.Call(last, http.MethodPost, Path+"/"+id+"/cancel", nil, nil); err != nil {
		return err
	}
	return ctx.Err()
}

// screen shows the events of a run, each step once.
type screen struct {
	out     io.Writer
	shown   map[step]bool
	used    int  // tokens, as shown last
	planned bool // the run is to be started
}

type step struct{ n, member int }

// errBroken says that a stream has ended before its run.
var errBroken = errors.New("the connection to the server was lost")

// stream shows one stream of events. ended says that the run is over.
func (s *screen) stream(ctx context.Context, c *cli.Client, id string) (ended bool, err error) {
	res, err := c.Send(ctx, http.MethodGet, Path+"/"+id+"/events", nil, "text/event-stream")
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	if s.planned { // not before its events are heard: some are not kept
		if err := c.Call(ctx, http.MethodPost, Path+"/"+id+"/start", nil, nil); err != nil {
			return false, err
		}
		s.planned = false
	}
	for events := sse.NewReader(res.Body, longestEvent); ; {
		data, err := events.Next()
		if err != nil { // also the end
			return false, errBroken
		}
		var ev event
		if err := json.Unmarshal(data, &ev); err != nil {
			return false, fmt.Errorf("the server sent an event that is not valid JSON: %w", err)
		}
		if s.show(&ev) {
			return true, nil
		}
	}
}

// event is an event of a run.
type event struct {
	Ev   string `json:"ev"`
	Data struct {
		N        int    `json:"n"`
		Member   int    `json:"member"`
		Action   string `json:"action"`
		Question string `json:"question"`
		Query    string `json:"query"`
		URL      string `json:"url"`
		State    string `json:"state"`
		Used     int    `json:"used"`
		Total    int    `json:"total"`
	} `json:"data"`
}

// show shows an event, and reports whether it is the last one.
func (s *screen) show(ev *event) bool {
	d := &ev.Data
	switch ev.Ev {
	case "research.step":
		if at := (step{d.N, d.Member}); !s.shown[at] {
			s.shown[at] = true
			who := ""
			if d.Member > 0 {
				who = fmt.Sprintf("%d.", d.Member)
			}
			fmt.Fprintf(s.out, "%s%d %s: %s\n", who, d.N, d.Action, cli.Brief(d.Question, 100))
		}
	case "research.search":
		fmt.Fprintf(s.out, "  searches for %s\n", d.Query)
	case "research.visit":
		if d.State != "reading" {
			fmt.Fprintf(s.out, "  %s: %s\n", d.URL, d.State)
		}
	case "research.budget":
		if d.Used > s.used {
			s.used = d.Used
			fmt.Fprintf(s.out, "  %d of %d tokens\n", d.Used, d.Total)
		}
	case "research.done", "research.failed", "research.removed":
		return true
	}
	return false
}
