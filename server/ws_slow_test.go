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

// TestAReaderThatReadsNothing: its connection is closed, its generation is
// finished, and the other device hears everything in the meantime.
func TestAReaderThatReadsNothing(t *testing.T) {
	h := build(t, func(o *Options) { o.WriteWithin = patience })
	chat := h.chat()
	dead, _, _ := h.dial(dialed{token: h.token, still: true, dial: h.pipes()})
	dead.send("hello", "", map[string]any{"protocol": 1, "deviceId": "d-dead"})
	_, hello, err := dead.ws.ReadMessage()
	if err != nil || !strings.Contains(string(hello), `"ok":true`) {
		t.Fatalf("hello: %s %v", hello, err)
	}
	p, _ := h.phone(map[string]any{"deviceId": "d-alive"})

	// A message of 90 KB each time: some of them are more than what sockets and
	// queue can hold.
	text := strings.Repeat("茶", 30_000)
	n := 0
	for ; h.waitsFor("d-dead"); n++ {
		if n == 10_000 {
			t.Fatal("the connection that reads nothing was never closed")
		}
		p.ok("chat.send", h.key(), map[string]any{"conversationId": chat, "text": fmt.Sprint(n, text), "reply": false})
	}
	t.Logf("closed after %d events", n)
	sent := p.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Are you there?"})
	p.event("gen.done", field[string](t, sent, "generationId"))
}

// waitsFor says whether the connection of a device is still served.
func (h *house) waitsFor(device string) bool {
	for _, c := range h.server.sockets.list() {
		if c.device == device && !c.out.Ended() {
			return true
		}
	}
	return false
}

// pipes serves the house over connections without any buffer of their own: what
// the client does not read, the server cannot write.
func (h *house) pipes() func(context.Context, string, string) (net.Conn, error) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: h.server.Handler(), ReadHeaderTimeout: patience}
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

// TestASlowReaderGetsFewerDeltas: a client that stops reading for a while goes
// without deltas, is told so, and gets what it missed as soon as it reads again.
func TestASlowReaderGetsFewerDeltas(t *testing.T) {
	h := build(t, func(o *Options) { o.WriteWithin, o.QueueBytes = patience, 32<<10 })
	chat := h.chat()
	slow, _, _ := h.dial(dialed{token: h.token, still: true, dial: h.pipes()})
	slow.send("hello", "", map[string]any{"protocol": 1, "deviceId": "d-slow"})
	if _, hello, err := slow.ws.ReadMessage(); err != nil || !strings.Contains(string(hello), `"ok":true`) {
		t.Fatalf("hello: %s %v", hello, err)
	}
	fast, _ := h.phone(map[string]any{"deviceId": "d-fast"})

	pieces := make([]string, 4_000)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("%05d茶.", i)
	}
	gate := make(chan struct{}, len(pieces))
	for range len(pieces) - 1 {
		gate <- struct{}{}
	}
	h.voice.lay(&script{pieces: pieces, gate: gate})
	want := strings.Join(pieces, "")
	most := utf8.RuneCountInString(want) - utf8.RuneCountInString(pieces[0])

	sent := fast.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Say much"})
	gen := field[string](t, sent, "generationId")
	fast.until(gen, most) // all but the last piece has been said
	go slow.read()
	slow.until(gen, most)
	gate <- struct{}{}
	for name, p := range map[string]*phone{"slow": slow, "fast": fast} {
		p.event("gen.done", gen)
		text, frames := p.said(gen)
		if text != want {
			t.Errorf("%s: the deltas are %d bytes, want %d", name, len(text), len(want))
		}
		if up := p.wait("the stored text", func(f *frame) bool { return f.Ev == "message.updated" }); field[string](t, up, "message.text") != want {
			t.Errorf("%s: another text is stored", name)
		}
		t.Logf("%s: %d pieces came in %d frames", name, len(pieces), frames)
	}
	slow.event("gen.behind", gen)
}

// said joins the deltas of a generation, each of which must begin where the one
// before ends.
func (p *phone) said(gen string) (text string, frames int) {
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

// until waits for the deltas of a generation to reach a length in code points.
func (p *phone) until(gen string, length int) {
	p.t.Helper()
	p.wait(fmt.Sprint(length, " characters"), func(f *frame) bool {
		return f.Ev == "gen.delta" && f.Gen == gen && f.Off+len(f.Data) >= length &&
			f.Off+utf8.RuneCountInString(field[string](p.t, f, "text")) >= length
	})
}

// TestLatencyBesideADeadReader prints how much longer deltas take to others
// while a client reads nothing: a figure, not a promise.
func TestLatencyBesideADeadReader(t *testing.T) {
	h := build(t, nil)
	p, _ := h.phone(map[string]any{"deviceId": "d-one"})
	measure := func() time.Duration {
		start := time.Now()
		for range 200 {
			p.ok("ping", "", nil)
		}
		return time.Since(start) / 200
	}
	alone := measure()
	pipes := h.pipes()
	for range 2 {
		dead, _, _ := h.dial(dialed{token: h.token, still: true, dial: pipes})
		dead.send("hello", "", map[string]any{"protocol": 1, "deviceId": "d-dead"})
	}
	t.Logf("a round trip takes %v alone, %v beside dead readers", alone, measure())
}
