package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// TestAStalledReaderIsDisconnected: the connection of a client that reads nothing
// is closed, while another device is served as usual.
func TestAStalledReaderIsDisconnected(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.WriteWithin = testTimeout })
	chat := h.newChat()
	dead, _, _ := h.dial(dialOptions{token: h.token, noRead: true, dial: h.servePipes()})
	dead.send("hello", "", map[string]any{"protocol": 1, "deviceId": "d-stalled"})
	_, hello, err := dead.ws.ReadMessage()
	if err != nil || !strings.Contains(string(hello), `"ok":true`) {
		t.Fatalf("hello: %s %v", hello, err)
	}
	p, _ := h.connect(map[string]any{"deviceId": "d-alive"})

	// 90 KB per message: a few are more than socket and queue can hold.
	text := strings.Repeat("茶", 30_000)
	n := 0
	for ; h.serves("d-stalled"); n++ {
		if n == 10_000 {
			t.Fatal("the connection that reads nothing was never closed")
		}
		p.ok("chat.send", h.newKey(), map[string]any{"conversationId": chat, "text": fmt.Sprint(n, text), "reply": false})
	}
	t.Logf("closed after %d events", n)
	sent := p.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Are you there?"})
	p.event("gen.done", field[string](t, sent, "generationId"))
}

// serves reports whether the connection of a device is still open.
func (h *testServer) serves(device string) bool {
	for _, c := range h.server.sockets.list() {
		if c.device == device && !c.out.Ended() {
			return true
		}
	}
	return false
}

// servePipes serves over connections without buffers, so that the server cannot write
// what the client does not read. It returns a dial function.
func (h *testServer) servePipes() func(context.Context, string, string) (net.Conn, error) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: h.server.Handler(), ReadHeaderTimeout: testTimeout}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	h.t.Cleanup(func() {
		srv.Close()
		<-served
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		client, server := net.Pipe()
		select {
		case l.conns <- server:
			return client, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestASlowReaderGetsFewerDeltas: a client that stops reading for a while gets
// gen.behind instead of deltas, and the missing text as soon as it reads again.
func TestASlowReaderGetsFewerDeltas(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.WriteWithin, o.QueueBytes = testTimeout, 32<<10 })
	chat := h.newChat()
	slow, _, _ := h.dial(dialOptions{token: h.token, noRead: true, dial: h.servePipes()})
	slow.send("hello", "", map[string]any{"protocol": 1, "deviceId": "d-slow"})
	if _, hello, err := slow.ws.ReadMessage(); err != nil || !strings.Contains(string(hello), `"ok":true`) {
		t.Fatalf("hello: %s %v", hello, err)
	}
	fast, _ := h.connect(map[string]any{"deviceId": "d-fast"})

	pieces := make([]string, 4_000)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("%05d茶.", i)
	}
	gate := make(chan struct{}, len(pieces))
	for range len(pieces) - 1 {
		gate <- struct{}{}
	}
	h.model.enqueue(&script{pieces: pieces, gate: gate})
	want := strings.Join(pieces, "")
	most := utf8.RuneCountInString(want) - utf8.RuneCountInString(pieces[0])

	sent := fast.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Say much"})
	gen := field[string](t, sent, "generationId")
	fast.waitText(gen, most) // all pieces but the last
	go slow.read()
	slow.waitText(gen, most)
	gate <- struct{}{}
	for name, p := range map[string]*wsClient{"slow": slow, "fast": fast} {
		p.event("gen.done", gen)
		text, frames := p.deltaText(gen)
		if text != want {
			t.Errorf("%s: the deltas are %d bytes, want %d", name, len(text), len(want))
		}
		if up := p.waitFrame("the stored text", func(f *frame) bool { return f.Ev == "message.updated" }); field[string](t, up, "message.text") != want {
			t.Errorf("%s: another text is stored", name)
		}
		t.Logf("%s: %d pieces came in %d frames", name, len(pieces), frames)
	}
	slow.event("gen.behind", gen)
}

// deltaText joins the deltas of a generation; each must start where the previous one
// ends.
func (p *wsClient) deltaText(gen string) (text string, frames int) {
	p.t.Helper()
	have := 0
	var b strings.Builder
	for _, f := range p.all() {
		if f.Ev != "gen.delta" || f.Gen != gen {
			continue
		}
		if f.Off != have {
			p.t.Fatalf("delta at %d of a text of %d", f.Off, have)
		}
		piece := field[string](p.t, f, "text")
		b.WriteString(piece)
		have += utf8.RuneCountInString(piece)
		frames++
	}
	return b.String(), frames
}

// waitText waits for the deltas of a generation to reach a length in code points.
func (p *wsClient) waitText(gen string, length int) {
	p.t.Helper()
	p.waitFrame(fmt.Sprint(length, " characters"), func(f *frame) bool {
		return f.Ev == "gen.delta" && f.Gen == gen && f.Off+len(f.Data) >= length &&
			f.Off+utf8.RuneCountInString(field[string](p.t, f, "text")) >= length
	})
}

// TestLatencyBesideAStalledReader prints the round trip time with and without
// clients that read nothing. It promises nothing.
func TestLatencyBesideAStalledReader(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"deviceId": "d-one"})
	measure := func() time.Duration {
		start := time.Now()
		for range 200 {
			p.ok("ping", "", nil)
		}
		return time.Since(start) / 200
	}
	alone := measure()
	pipes := h.servePipes()
	for range 2 {
		dead, _, _ := h.dial(dialOptions{token: h.token, noRead: true, dial: pipes})
		dead.send("hello", "", map[string]any{"protocol": 1, "deviceId": "d-stalled"})
	}
	t.Logf("a round trip takes %v alone, %v beside stalled readers", alone, measure())
}
