package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// provider is an OpenAI-compatible server that notes when each request arrived and when
// its first token left. The last tag in the prompt identifies the turn.
type provider struct {
	url    string
	tokens int
	first  time.Duration // before the first token
	gap    time.Duration // before each other one
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
	tags := tag.FindAllSubmatch(body, -1)
	if err != nil || len(tags) == 0 {
		http.Error(w, `{"error":{"message":"no turn given"}}`, http.StatusBadRequest)
		return
	}
	n, _ := strconv.Atoi(string(tags[len(tags)-1][1])) // digits, as the tag says
	w.Header().Set("Content-Type", "text/event-stream")
	rest := http.NewResponseController(w)
	for i := range p.tokens {
		if i == 0 {
			time.Sleep(p.first)
			p.note(n, moments{arrived, time.Now()})
		} else {
			time.Sleep(p.gap)
		}
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":"tok%d "},"finish_reason":null}]}`+"\n\n", i)
		if rest.Flush() != nil {
			return // the client has gone
		}
	}
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", p.tokens, 10+p.tokens)
}

func (p *provider) note(n int, m moments) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns[n] = m
}

func (p *provider) moments(n int) moments {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns[n]
}
