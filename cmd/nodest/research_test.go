package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/internal/cli/watch"
	"nodest/llm/llmtest"
	"nodest/store/storetest"
)

// asksFor reports whether the first message of a request has some words.
func asksFor(r llmtest.Request, words string) bool {
	return len(r.Messages) > 0 && strings.Contains(r.Messages[0].Text, words)
}

// researches makes the model of a home one that answers from the page that was read, and is content with that.
// gate, if there is one, is waited for before it judges the question, behind a search and a visit.
func (h *searchHome) researches(gate <-chan struct{}) {
	h.model.Always(func(r llmtest.Request) llmtest.Reply {
		switch {
		case asksFor(r, "needsDefinitive"):
			reply := llmtest.Say(`{"needsDefinitive":true}`)
			reply.Gate = gate
			return reply
		case asksFor(r, "\nanswer – "):
			return llmtest.Say(`{"think":"The page says it.","action":"answer","answer":"The light was automated in March 1987. [1]"}`)
		case asksFor(r, "whether an answer to a question passes"):
			return llmtest.Say(`{"think":"It is there.","pass":true}`)
		}
		return llmtest.Say("{}")
	})
}

// research runs the program as a person would, against the server of p, and returns what it printed.
func (i *installation) research(t *testing.T, p *process, args ...string) (out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(t.Context(), i.program, append([]string{"research"}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = i.withAddrOf(p).env, &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

// researchesOf are all that the server has.
func researchesOf(t *testing.T, p *process) []watch.Run {
	t.Helper()
	var page struct{ Items []watch.Run }
	if err := p.client.Call(t.Context(), http.MethodGet, watch.Path, nil, &page); err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// A question is planned, researched and answered, with what happens on standard error and the answer with
// its source on standard output.
func TestAQuestionIsResearchedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		h := newSearchHome(t, url)
		h.researches(nil)
		p := h.start(t)
		plan, _, err := h.research(t, p, "--plan", "--budget", "20000", lighthouseQuestion)
		if err != nil || !strings.Contains(plan, "Halden Point") || !strings.Contains(plan, "budget: 20000 tokens") || !strings.Contains(plan, "estimate: ") {
			t.Errorf("the plan: %q, %v", plan, err)
		}
		if asked := h.model.Requests(); slices.ContainsFunc(asked, func(r llmtest.Request) bool { return len(r.Messages) > 0 }) || len(researchesOf(t, p)) > 0 {
			t.Errorf("a plan asked the model %d times", len(asked))
		}
		out, said, err := h.research(t, p, "When was the Halden Point", "lighthouse automated?")
		if err != nil || !strings.HasPrefix(out, "The light was automated in March 1987[^1].\n\n[1] ") || !strings.Contains(out, "automated in March 1987, and the last keeper left") {
			t.Fatalf("%q, %q, %v", out, said, err)
		}
		for _, part := range []string{"1 search: ", "  searches for ", "2 visit: ", "/history: read\n", "3 answer: ", " of 60000 tokens\n", "1 of 1 marks are supported"} {
			if strings.Count(said, part) != 1 && !strings.Contains(part, "tokens") || !strings.Contains(said, part) {
				t.Errorf("%q is there %d times in\n%s", part, strings.Count(said, part), said)
			}
		}
		if strings.ContainsAny(out+said, "\x1b\x07") {
			t.Errorf("control characters of pages are shown: %q %q", out, said)
		}
		out, _, err = h.research(t, p, "--json", "--seconds", "60", lighthouseQuestion)
		var run watch.Run
		if err != nil || json.Unmarshal([]byte(out), &run) != nil || run.State != "done" || run.Plan.Budget.Seconds != 60 || len(run.References) != 1 {
			t.Errorf("as JSON: %q, %v", out, err)
		}
		for _, args := range [][]string{{"--budget", "0", "Why?"}, {"--seconds", "5", "Why?"}, {" "}} {
			out, said, err := h.research(t, p, args...)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || out != "" || !strings.Contains(said, "must") {
				t.Errorf("%q: %q %q %v", args, out, said, err)
			}
		}
	})
}

// output collects what a program prints while it runs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Ctrl-C ends the command and cancels the run on the server.
func TestCtrlCCancelsAResearch(t *testing.T) {
	t.Parallel()
	h := newSearchHome(t, "")
	gate := make(chan struct{})
	defer close(gate)
	h.researches(gate)
	p := h.start(t)
	said := &output{}
	cmd := exec.CommandContext(t.Context(), h.program, "research", lighthouseQuestion)
	cmd.Env, cmd.Stderr = h.withAddrOf(p).env, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the page is read", func() error {
		if !strings.Contains(said.String(), "/history: read\n") {
			return fmt.Errorf("it said %q", said)
		}
		return nil
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v: %s", err, said)
	}
	if runs := researchesOf(t, p); len(runs) != 1 || runs[0].State != "cancelled" {
		t.Errorf("%+v", runs)
	}
}

// A server that is killed in the middle of a run finishes it when it is started again, without asking the model
// again for what it has answered.
func TestAResearchSurvivesTheServer(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		h := newSearchHome(t, url)
		gate := make(chan struct{})
		h.researches(gate)
		p := h.start(t)
		var made struct{ Research watch.Run }
		order := map[string]any{"question": lighthouseQuestion, "start": true}
		if err := p.client.Call(t.Context(), http.MethodPost, watch.Path, order, &made); err != nil {
			t.Fatal(err)
		}
		waits := func(r llmtest.Request) bool { return asksFor(r, "needsDefinitive") }
		eventually(t, "the model judges the question", func() error {
			if !slices.ContainsFunc(h.model.Requests(), waits) {
				return errNotYet
			}
			return nil
		})
		p.kill(t)
		close(gate)
		p = h.start(t)
		var run *watch.Run
		eventually(t, "the run ends", func() (err error) {
			if run, _, err = watch.Get(t.Context(), p.client, made.Research.ID); err == nil && run.State != "done" {
				err = fmt.Errorf("it is %s", run.State)
			}
			return err
		})
		if !strings.Contains(run.Answer, "March 1987") || len(run.References) != 1 {
			t.Errorf("%+v", run)
		}
		asked := map[string]int{}
		for _, r := range h.model.Requests() {
			if len(r.Messages) == 0 { // vectors
				continue
			}
			if asked[string(r.Body)]++; asked[string(r.Body)] > 1 && !waits(r) {
				t.Errorf("the model was asked again: %s", r.Body)
			}
		}
	})
}

// A process cancels what another one on its database is doing: the call of the model is given up. A
// client that follows the run at either of them sees the end.
func TestAResearchIsCancelledByAnotherProcess(t *testing.T) {
	t.Parallel()
	database := storetest.PostgresURL(t)
	h := newSearchHome(t, database)
	h.env = append(h.env, "NODEST_SECRET_KEY=shared by both servers")
	gate := make(chan struct{})
	defer close(gate)
	h.researches(gate)
	a := h.start(t)
	var made struct{ Research watch.Run }
	order := map[string]any{"question": lighthouseQuestion, "start": true}
	if err := a.client.Call(t.Context(), http.MethodPost, watch.Path, order, &made); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the model judges the question", func() error {
		if !slices.ContainsFunc(h.model.Requests(), func(r llmtest.Request) bool { return asksFor(r, "needsDefinitive") }) {
			return errNotYet
		}
		return nil
	})
	own := func(setting string) bool {
		return strings.HasPrefix(setting, "NODEST_DATA=") || strings.HasPrefix(setting, "HOME=")
	}
	b := newInstallation(t, database, slices.DeleteFunc(slices.Clone(h.env), own)...).start(t)
	path := watch.Path + "/" + made.Research.ID
	followed := make(chan error, 2)
	for _, p := range []*process{a, b} {
		go func() { followed <- watch.Follow(t.Context(), p.client, made.Research.ID, io.Discard) }()
	}
	if err := b.client.Call(t.Context(), http.MethodPost, path+"/cancel", nil, nil); err != nil {
		t.Fatal(err)
	}
	select { // A notices and closes its request
	case <-h.model.Closed():
	case <-time.After(testTimeout):
		t.Fatal("the provider's request was never closed")
	}
	for range 2 {
		if err := <-followed; err != nil {
			t.Error(err)
		}
	}
	if run, _, err := watch.Get(t.Context(), a.client, made.Research.ID); err != nil || run.State != "cancelled" {
		t.Errorf("%+v, %v", run, err)
	}
}
