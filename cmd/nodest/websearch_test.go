package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"nodest/internal/cli"
	"nodest/llm/llmtest"
	"nodest/websearch/provider/providertest"
)

const lighthouseQuestion = "When was the Halden Point lighthouse automated?"

// searchHome is a server that searches with a SearXNG of the test and reads pages of the
// test, with a model of the test.
type searchHome struct {
	*installation
	engine providertest.Server
	model  *llmtest.Fake
	web    *httptest.Server // the search engine, and lighthouse at every other path

	mu   sync.Mutex
	said string // by the model in a chat
}

func newSearchHome(t *testing.T, url string) *searchHome {
	t.Helper()
	h := &searchHome{model: llmtest.NewOpenAI(t), said: "The light was automated in March 1987 [1]."}
	h.model.Always(func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) == 1 { // the words to search for, and work in the background
			return llmtest.Say("{}")
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		return llmtest.Say(strings.SplitAfter(h.said, " ")...)
	})
	h.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/search":
			h.engine.ServeHTTP(w, r)
		case "/robots.txt":
			http.NotFound(w, r)
		case "/hostile":
			_, _ = fmt.Fprint(w, strings.ReplaceAll(lighthouse, "Halden Point", "Halden &#27;]0;owned\x07\x1b[2J&#8238; Point"))
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, lighthouse)
		}
	}))
	t.Cleanup(h.web.Close)
	h.engine.Answer("", providertest.Result{Title: "Halden <b>Point</b>\x1b[2J", URL: h.web.URL + "/history", Content: "The light was automated in March 1987."})
	h.installation = newInstallation(t, url, "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+h.model.URL, "OPENAI_API_KEY=key-of-the-test",
		"NODEST_SEARCH=searxng", "NODEST_SEARCH_BASE_URL="+h.web.URL, "NODEST_FETCH_ALLOW=127.0.0.1", "NODEST_LOG_LEVEL=info")
	return h
}

func (h *searchHome) says(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = text
}

// citedReply is a message as far as these tests look at it.
type citedReply struct {
	Text, Status string
	References   []struct {
		Marker                    int
		URL, ExactQuote, Evidence string
	}
	CitationReport *struct{ Marks, Supported int }
}

// ask sends a message over REST and returns the reply.
func ask(t *testing.T, c *cli.Client, conversation, text string) citedReply {
	t.Helper()
	if err := c.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", map[string]any{"text": text}, nil); err != nil {
		t.Fatal(err)
	}
	return lastReply(t, c, conversation)
}

func lastReply(t *testing.T, c *cli.Client, conversation string) citedReply {
	t.Helper()
	var page struct{ Items []citedReply }
	if err := c.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+conversation+"/messages", nil, &page); err != nil {
		t.Fatal(err)
	}
	return page.Items[len(page.Items)-1]
}

func searchingChat(t *testing.T, c *cli.Client) string {
	t.Helper()
	chat := newConversation(t, c, sampleCharacter(t, c))
	settings := map[string]any{"settings": map[string]any{"searchEnabled": true}}
	if err := c.Call(t.Context(), http.MethodPatch, "/api/v1/conversations/"+chat, settings, nil); err != nil {
		t.Fatal(err)
	}
	return chat
}

// TestAReplyRestsOnAPage searches, reads and cites through the program, with and without
// a search provider, and looks for what must not be in the log.
func TestAReplyRestsOnAPage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		h := newSearchHome(t, url)
		p := h.start(t)
		chat := searchingChat(t, p.client)
		watcher := connectWS(t, p.client, "watcher")

		cited := ask(t, p.client, chat, lighthouseQuestion)
		if cited.Text != "The light was automated in March 1987[^1]." {
			t.Fatalf("cited.Text is %q, want %q", cited.Text, "The light was automated in March 1987[^1].")
		}
		if len(cited.References) != 1 {
			t.Fatalf("cited.References has %d, want %d: %+v", len(cited.References), 1, cited.References)
		}
		if want := h.web.URL + "/history"; cited.References[0].URL != want {
			t.Fatalf("cited.References[0].URL is %q, want %q", cited.References[0].URL, want)
		}
		if cited.References[0].Evidence != "page" {
			t.Fatalf("cited.References[0].Evidence is %q, want %q", cited.References[0].Evidence, "page")
		}
		if !strings.Contains(lighthouse, cited.References[0].ExactQuote) {
			t.Fatalf("got %q, want it with %q", lighthouse, cited.References[0].ExactQuote)
		}
		if cited.CitationReport.Supported != 1 {
			t.Fatalf("cited.CitationReport.Supported is %d, want %d", cited.CitationReport.Supported, 1)
		}
		if got := warningsOf(t, watcher); len(got) != 0 {
			t.Fatalf("warningsOf(t, watcher) is %q, want none", got)
		}

		h.engine.Fail(providertest.Fault{Status: http.StatusInternalServerError})
		h.says("I do not know.")
		plain := ask(t, p.client, chat, "When was the Cape Varga lighthouse built?")
		if plain.Status != "complete" {
			t.Fatalf("plain.Status is %q, want %q", plain.Status, "complete")
		}
		if plain.Text != "I do not know." {
			t.Fatalf("plain.Text is %q, want %q", plain.Text, "I do not know.")
		}
		if len(plain.References) != 0 {
			t.Fatalf("plain.References is %+v, want none", plain.References)
		}
		if got, want := warningsOf(t, watcher), ([]string{"search_unavailable"}); !reflect.DeepEqual(got, want) {
			t.Fatalf("warningsOf(t, watcher) is %q, want %q", got, want)
		}

		p.stop(t)
		for _, secret := range []string{"Halden", "Varga", "automated", "key-of-the-test"} {
			if got := p.stderr.String(); strings.Contains(got, secret) {
				t.Fatalf("the log: p.stderr.String() is %q, want it without %q", got, secret)
			}
		}
	})
}

// warningsOf returns the warnings of the next gen.context.
func warningsOf(t *testing.T, p *wsClient) []string {
	t.Helper()
	for {
		f, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Ev == "gen.context" {
			var data struct{ Warnings []string }
			f.into(t, &data)
			return data.Warnings
		}
	}
}

// TestAKillBetweenAcceptAndAskLeavesNoReplyOpen kills the server while a reply that is accepted waits for the
// search provider: its message stays, also when it is sent again, its reply ends as interrupted without a
// request to the model, and the chat goes on.
func TestAKillBetweenAcceptAndAskLeavesNoReplyOpen(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		h := newSearchHome(t, url)
		p := h.start(t)
		chat := searchingChat(t, p.client)
		h.engine.Fail(providertest.Fault{Delay: testTimeout})
		send := func() (sent struct {
			GenerationID string
			UserMessage  chatMessage
		}) {
			client := connectWS(t, p.client, "phone")
			id := client.send("chat.send", "the-key-of-this-message", map[string]any{"conversationId": chat, "text": lighthouseQuestion})
			answer, err := client.answer(id)
			if err != nil {
				t.Fatal(err)
			}
			answer.into(t, &sent)
			return sent
		}
		first := send()
		if first.GenerationID == "" {
			t.Fatalf("first.GenerationID is %q, want more", first.GenerationID)
		}
		eventually(t, "the search", func() error {
			if len(h.engine.Asked()) == 0 {
				return errNotYet
			}
			return nil
		})
		p.kill(t)
		if slices.ContainsFunc(h.model.Requests(), func(r llmtest.Request) bool { return len(r.Messages) > 1 }) {
			t.Fatal("the model was asked for the reply")
		}
		h.engine.Fail(providertest.Fault{})
		p = h.start(t)
		eventually(t, "the end of the reply", func() error {
			if reply := lastReply(t, p.client, chat); reply.Status != "interrupted" {
				return fmt.Errorf("it is %s: %q\n%s", reply.Status, reply.Text, p.stderr.String())
			}
			return nil
		})
		var generation struct{ Status, PromptID string }
		if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/generations/"+first.GenerationID, nil, &generation); err != nil {
			t.Fatal(err)
		}
		if generation.Status != "interrupted" {
			t.Fatalf("generation.Status is %q, want %q", generation.Status, "interrupted")
		}
		if generation.PromptID != "" {
			t.Fatalf("nothing was sent: generation.PromptID is %q, want none", generation.PromptID)
		}
		if got := send().UserMessage.ID; got != first.UserMessage.ID {
			t.Fatalf("one key, one message: send().UserMessage.ID is %q, want %q", got, first.UserMessage.ID)
		}
		stored := history(t, p.client, chat)
		if got := stored[len(stored)-2].ID; got != first.UserMessage.ID {
			t.Fatalf("stored[len(stored)-2].ID is %q, want %q", got, first.UserMessage.ID)
		}
		if got := ask(t, p.client, chat, lighthouseQuestion).References; len(got) != 1 {
			t.Fatalf("got %d, want %d: %+v", len(got), 1, got)
		}
		p.stop(t)
	})
}

// TestSearchCommands runs nodest search, read and doctor against a server.
func TestSearchCommands(t *testing.T) {
	t.Parallel()
	h := newSearchHome(t, "")
	p := h.start(t)
	h.env = append(h.env, "NODEST_ADDR="+strings.TrimPrefix(p.client.Base, "http://"))

	out := h.mustRun(t, "search", "halden", "point")
	if !strings.Contains(out, " 1. Halden Point") {
		t.Fatalf("out is %q, want it with %q", out, " 1. Halden Point")
	}
	if !strings.Contains(out, h.web.URL+"/history") {
		t.Fatalf("out is %q, want it with %q", out, h.web.URL+"/history")
	}
	if got := h.engine.Asked()[0]; got != "halden point" {
		t.Fatalf("h.engine.Asked()[0] is %q, want %q", got, "halden point")
	}

	page := h.mustRun(t, "read", h.web.URL+"/hostile", "--question", "When was the light automated?")
	if !strings.Contains(page, "automated in March 1987") {
		t.Fatalf("page is %q, want it with %q", page, "automated in March 1987")
	}
	for _, text := range []string{out, page} {
		if got := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) || r == '\u202e' }); got != -1 {
			t.Fatalf("%q: got %d, want %d", text, got, -1)
		}
	}
	_, _, err := h.command(t, nil, "read", "http://127.0.0.2/")
	if err == nil || !strings.Contains(err.Error(), "public page") {
		t.Fatalf("got error %v, want one with %q", err, "public page")
	}

	report, _, _ := h.command(t, nil, "doctor")
	if !strings.Contains(report, "✓ web search searxng") {
		t.Fatalf("report is %q, want it with %q", report, "✓ web search searxng")
	}
	h.engine.Fail(providertest.Fault{Status: http.StatusForbidden})
	report, _, err = h.command(t, nil, "doctor")
	if err == nil {
		t.Fatal("got no error, want one")
	}
	if !strings.Contains(report, "add json to search.formats") {
		t.Fatalf("report is %q, want it with %q", report, "add json to search.formats")
	}
	p.stop(t)
}
