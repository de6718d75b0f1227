package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// provider is an OpenAI-compatible server that notes when the first request of each turn
// arrived and when its first token left. The tag with the highest number in the prompt
// identifies the turn.
type provider struct {
	url    string
	tokens int
	words  func(turn int) []string // the tokens of a reply; nil = tok0, tok1, …
	first  time.Duration           // before the first token
	gap    time.Duration           // before each other one
	http   *http.Server

	mu    sync.Mutex
	turns map[int]moments
}

// moments of one request.
type moments struct{ arrived, spoke time.Time }

var tag = regexp.MustCompile(`turn-(\d+)-`)

// tagged is the text of a turn.
func tagged(n int) string { return fmt.Sprintf("turn-%d-: what happened then?", n) }

func newProvider(ctx context.Context, tokens int, first, gap time.Duration) (*provider, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{url: "http://" + ln.Addr().String() + "/v1", tokens: tokens, first: first, gap: gap, turns: map[int]moments{}}
	p.http = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.http.Serve(ln) }() // ends with close
	return p, nil
}

func (p *provider) close() { _ = p.http.Close() }

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	arrived := time.Now()
	n := turnOf(body)
	if err != nil || n < 0 && p.words == nil {
		http.Error(w, `{"error":{"message":"no turn given"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	rest := http.NewResponseController(w)
	reply := p.reply(n, bytes.Contains(body, []byte(`"response_format"`)))
	for i, token := range reply {
		if i == 0 {
			time.Sleep(p.first)
			p.note(n, moments{arrived, time.Now()})
		} else {
			time.Sleep(p.gap)
		}
		text, _ := json.Marshal(token) // a string
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`+"\n\n", text)
		if rest.Flush() != nil {
			return // the client has gone
		}
	}
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", len(reply), 10+len(reply))
}

// turnOf is the turn that a request belongs to; -1 = none.
func turnOf(body []byte) int {
	turn := -1
	for _, found := range tag.FindAllSubmatch(body, -1) {
		n, _ := strconv.Atoi(string(found[1])) // digits, as the tag says
		turn = max(turn, n)
	}
	return turn
}

// reply is the tokens of an answer. A request for JSON is one for facts, of which there are
// none.
func (p *provider) reply(turn int, asJSON bool) []string {
	switch {
	case p.words != nil && asJSON:
		return []string{`{"facts":[]}`}
	case p.words != nil:
		return p.words(turn)
	}
	list := make([]string, p.tokens)
	for i := range list {
		list[i] = fmt.Sprintf("tok%d ", i)
	}
	return list
}

func (p *provider) note(n int, m moments) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.turns[n]; !known { // later ones are about the turn: summaries, facts
		p.turns[n] = m
	}
}

func (p *provider) moments(n int) moments {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns[n]
}
