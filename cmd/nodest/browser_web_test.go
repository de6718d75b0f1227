package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/internal/cli"
)

// lighthouse is a page of the web, and lighthouseQuote a sentence of it.
const (
	lighthouseQuote = "The light at Halden Point was automated in March 1987, and the last keeper left the island."
	lighthouse      = `<!doctype html><html lang="en"><head><title>Halden Point Lighthouse: a short history</title>
		<meta property="article:published_time" content="2026-03-14T00:00:00Z"></head><body><article><h1>Halden Point Lighthouse</h1>
		<p>The lighthouse of Halden Point stands on the northern cape of the island, above a reef that took forty ships in a hundred years.</p>
		<p>` + lighthouseQuote + `</p>
		<p>Since then a small museum has moved into the house of the keepers. It shows lamps, logbooks and the horn that was blown in fog.</p>
		</article></body></html>`
)

// searchPage is a chat in the page of a server that searches with a SearXNG of the test.
type searchPage struct {
	*chatPage
	gate chan struct{} // a search waits for it; nil = it does not

	mu     sync.Mutex
	asked  string // the last query
	broken bool   // searches fail
}

func newSearchPage(t *testing.T, env ...string) *searchPage {
	t.Helper()
	s := &searchPage{chatPage: newChatPage(t)}
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/search" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, lighthouse)
			return
		}
		s.mu.Lock()
		gate, broken := s.gate, s.broken
		s.asked = r.URL.Query().Get("q")
		s.mu.Unlock()
		if gate != nil {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
		if broken {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"results": [{"title": "Halden <b>Point</b>", "url": "%s/history", "content": "The light was automated in March 1987."}]}`, web.URL)
	}))
	t.Cleanup(web.Close)
	s.p.stop(t)
	s.inst.env = append(append(s.inst.env, "NODEST_SEARCH=searxng", "NODEST_SEARCH_BASE_URL="+web.URL, "NODEST_FETCH_ALLOW=127.0.0.1"), env...)
	s.p = s.inst.start(t)
	return s
}

// set changes how searches are answered.
func (s *searchPage) set(gate chan struct{}, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate, s.broken = gate, broken
}

// query is the last one.
func (s *searchPage) query() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

const searchSwitch = `document.querySelector("form [aria-label='Web search']")`

// TestPageWebSearchSwitch: the first time the page says where texts go; each chat has its
// own switch, which begins as the default of the user. While the web is searched the page
// says so, and afterwards what was searched for, or that it was not possible.
func TestPageWebSearchSwitch(t *testing.T) {
	s := newSearchPage(t)
	openSample(t, s.ctx, s.p)
	state := func(pressed string) {
		t.Helper()
		s.see("pressed: "+pressed, searchSwitch+`?.ariaPressed == "`+pressed+`" && !document.querySelector("dialog[open]")`)
	}
	state("false")
	s.press("Web search")
	s.see("where texts go", `document.querySelector("dialog[open]")?.innerText.includes("sends the query to SearXNG")`)
	s.press("Cancel")
	state("false")
	s.press("Web search")
	s.press("Turn on")
	state("true")
	s.press("Web search")
	state("false")
	s.press("Web search") // is asked about once
	state("true")
	s.reload()
	state("true")

	gate := make(chan struct{})
	s.set(gate, false)
	s.says("It has been automatic for long.")
	s.send("When was the light at Halden Point automated?")
	s.see("what it is doing", `document.querySelector("article.last")?.innerText.includes("Searching the web…")`)
	close(gate)
	s.last("complete", "It has been automatic for long.")
	if got := s.chatPage.asked(); !strings.Contains(got, "automated in March 1987") {
		t.Fatalf("s.chatPage.asked() is %q, want it with %q", got, "automated in March 1987")
	}
	s.press("Web search for this reply")
	s.see("what was searched for", `(d => d?.includes(`+jsString("Searched for “"+s.query()+"” with SearXNG: 1 result, ")+`) && d.includes("Halden Point") && d.includes("127.0.0.1"))(document.querySelector("dialog[open]")?.innerText)`)
	s.press("Close")

	s.set(nil, true)
	s.ask("Who is the keeper of the lighthouse on Sable Island?", "I do not know.")
	s.see("it says that it could not search", `document.querySelector("article.last")?.innerText.includes("Web search was not available; the reply was written without it.")`)

	var first, other cli.Item
	api(t, s.p, http.MethodPost, "/characters", map[string]any{"roleCard": map[string]any{"name": "Tom", "first_mes": "Ahoy."}}, &first)
	api(t, s.p, http.MethodPost, "/conversations", map[string]any{"characterId": first.ID}, &other)
	goTo(t, s.ctx, "/chats/"+other.ID, shownAs("Ahoy."))
	state("false")
	api(t, s.p, http.MethodPut, "/settings", map[string]any{"searchEnabled": true}, nil)
	state("true")
	s.press("Web search")
	state("false")
	var stored struct{ Settings struct{ SearchEnabled *bool } }
	api(t, s.p, http.MethodGet, "/conversations/"+other.ID, nil, &stored)
	if stored.Settings.SearchEnabled == nil {
		t.Fatal("stored.Settings.SearchEnabled is nil, want a value")
	}
	if *stored.Settings.SearchEnabled {
		t.Fatal("*stored.Settings.SearchEnabled is true, want false")
	}
	s.p.stop(t)
}

// TestPageSources: a reply that was written with pages of the web shows its sources, how
// much of it they support, and what none of them has, also after a reload.
func TestPageSources(t *testing.T) {
	s := newSearchPage(t)
	api(t, s.p, http.MethodPut, "/settings", map[string]any{"searchEnabled": true}, nil)
	openSample(t, s.ctx, s.p)
	s.says("The light at Halden Point was automated in March 1987.[^1] It was painted red in 1989.[^7]")
	s.send("When was the light at Halden Point automated?")
	for range 2 {
		s.see("the mark of the source; the other is gone", `(e => e?.closest("article").dataset.status == "complete" && e.querySelectorAll("button").length == 1 && !e.innerText.includes("[^"))(`+shownAs("The light at Halden Point")+`)`)
		s.see("pressing the mark", `(b => b && (b.click(), true))(document.querySelector("article.last .text button"))`)
		s.see("the quote, its page and its date", `(e => e?.open && e.innerText.includes(`+jsString(lighthouseQuote)+`) && e.innerText.includes("Halden Point Lighthouse") && e.innerText.includes("March 14, 2026") && e.querySelector("a").href.endsWith("/history"))(document.querySelector("article.last ol details"))`)
		s.see("how much has a source", `document.querySelector("article.last .report")?.innerText.includes("1 source")`)
		s.see("what no source has", `document.querySelector("article.last .missing")?.innerText.trim() == "Not found in any source: 1989"`)
		s.reload()
	}
	s.p.stop(t)
}

// TestPageSearchSettings stores the default of all chats, tries a search, shows why one
// failed, and says what is missing on a server without a search provider.
func TestPageSearchSettings(t *testing.T) {
	s := newSearchPage(t)
	signInPage(t, s.ctx, s.p)
	showSettings(t, s.ctx, "search")
	s.see("the providers, and when they are asked", `(b => b?.includes("SearXNG") && b.includes("Small talk"))(document.querySelector(".body")?.innerText)`)
	click(t, s.ctx, "[data-path=searchEnabled]")
	eventually(t, "the default is stored", func() error {
		var stored struct{ SearchEnabled bool }
		if api(t, s.p, http.MethodGet, "/settings", nil, &stored); !stored.SearchEnabled {
			return errNotYet
		}
		return nil
	})
	const status = `document.querySelector("[data-section=search] [role=status]")?.innerText.trim()`
	clickText(t, s.ctx, "Search")
	s.see("a result", `/^1 result from SearXNG, /.test(`+status+`) && document.querySelector("form + div + ol b")?.innerText == "Halden Point"`)
	if got := s.query(); got != "Height of Mount Everest" {
		t.Fatalf("s.query() is %q, want %q", got, "Height of Mount Everest")
	}
	clickText(t, s.ctx, "Search")
	s.see("the same again", status+`?.includes("kept from an earlier search")`)
	// A status of the server that the browser complains about would fail the test.
	s.see("a failure on the way", `(get => (window.fetch = async (...request) => /websearch/.test(request[0]) ? Response.json({code: "upstream_timeout", detail: "web search failed: SearXNG did not answer in time", status: 504, retry: "no"}, {status: 504}) : get(...request), true))(fetch)`)
	clickText(t, s.ctx, "Search")
	s.see("why it failed", status+` == "web search failed: SearXNG did not answer in time" && !document.querySelector("form + div + ol")`)

	if err := chromedp.Do(s.ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	s.see("it fits a phone", `document.documentElement.scrollWidth <= 390 && [...document.querySelectorAll(".body *")].every(e => e.getBoundingClientRect().right <= 391)`)
	s.p.stop(t)

	s.inst.env = append(s.inst.env, "NODEST_SEARCH=none")
	s.p = s.inst.start(t)
	signInPage(t, s.ctx, s.p)
	showSettings(t, s.ctx, "search")
	s.see("what the server needs", `["NODEST_SEARCH", "BRAVE_API_KEY", "JINA_API_KEY", "NODEST_SEARCH_BASE_URL"].every(n => document.querySelector(".body").innerText.includes(n)) && !document.querySelector("[data-path=searchEnabled]")`)
	goTo(t, s.ctx, "/", `document.querySelector("main").innerText.includes("Sample character")`)
	clickText(t, s.ctx, "Sample character")
	s.see("no switch in a chat", `document.querySelector("article") && document.querySelector("`+compose+`") && !`+searchSwitch)
	s.p.stop(t)
}
