package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/llm/llmtest"
)

// researchPage is the page of a server that can research: its model plays its part as the test says.
type researchPage struct {
	*chatPage
	web *httptest.Server

	mu     sync.Mutex
	answer string        // what the model answers with, once it may
	gate   chan struct{} // the choice of a step waits for it; nil = it does not
}

const researched = "When was the light at Halden Point automated?"

// researchAnswer has a sentence with a source, and one that no page supports.
const researchAnswer = lighthouseQuote + "[^1] The lighthouse was painted red in 1989.[^1]"

func newResearchPage(t *testing.T) *researchPage {
	t.Helper()
	r := &researchPage{chatPage: newChatPage(t), answer: researchAnswer}
	r.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/search":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"results": [{"title": "Halden <b>Point</b>", "url": "%[1]s/history", "content": "The light was automated in March 1987."},
				{"title": "Lost", "url": "%[1]s/lost", "content": "The light of Halden Point, automated."}]}`, r.web.URL)
		case "/history":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, lighthouse)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(r.web.Close)
	model := llmtest.NewOpenAI(t)
	model.Always(func(req llmtest.Request) llmtest.Reply { return llmtest.Say(r.reply(string(req.Body))) })
	r.p.stop(t)
	r.inst.env = append(r.inst.env, "NODEST_SEARCH=searxng", "NODEST_SEARCH_BASE_URL="+r.web.URL, "NODEST_FETCH_ALLOW=127.0.0.1", "OPENAI_BASE_URL="+model.URL)
	r.p = r.inst.start(t)
	return r
}

// reply plays the model of a research.
func (r *researchPage) reply(request string) string {
	r.mu.Lock()
	answer, gate := r.answer, r.gate
	r.mu.Unlock()
	switch {
	case strings.Contains(request, "Decide which checks"):
		return `{"needsDefinitive":true,"needsFreshness":false,"needsPlurality":false,"needsCompleteness":false}`
	case strings.Contains(request, "Check whether an answer"), strings.Contains(request, "Be a hostile reviewer"):
		return `{"think":"It is direct.","pass":true}`
	case strings.Contains(request, "Choose one of these actions"):
		if gate != nil {
			select {
			case <-gate:
			case <-r.t.Context().Done():
			}
		}
		return fmt.Sprintf(`{"think":"The page says it.","action":"answer","answer":%s}`, jsString(answer))
	}
	return "{}"
}

// hold lets the model wait before it chooses a step; the function that it returns ends that.
func (r *researchPage) hold() (release func()) {
	gate := make(chan struct{})
	r.mu.Lock()
	r.gate = gate
	r.mu.Unlock()
	release = sync.OnceFunc(func() { close(gate) })
	r.t.Cleanup(release)
	return release
}

// opened goes to the view of all research.
func (r *researchPage) opened() {
	r.t.Helper()
	goTo(r.t, r.ctx, "/research", `document.querySelector("main textarea[data-path=question]")`)
}

var _ = context.Background
var _ = chromedp.Do
