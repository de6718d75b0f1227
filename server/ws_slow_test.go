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
		if c.device == device && !c.out.ended() {
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

// TestASlowReaderGetsFewerDeltas: a client that stops reading for a while and
// then goes on gets the whole text, in fewer frames, and is not closed.
func TestASlowReaderGetsFewerDeltas(t *testing.T) {
	h := build(t, func(o *Options) { o.WriteWithin = patience })
	chat := h.chat()
	slow, _, _ := h.dial(dialed{token: h.token, still: true, dial: h.pipes()})
	slow.send("hello", "", map[string]any{"protocol": 1, "deviceId": "d-slow"})
	if _, hello, err := slow.ws.ReadMessage(); err != nil || !strings.Contains(string(hello), `"ok":true`) {
		t.Fatalf("hello: %s %v", hello, err)
	}
	p, _ := h.phone(map[string]any{"deviceId": "d-fast"})

	pieces := make([]string, 20_000)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("%05d茶 ", i)
	}
	want := strings.Join(pieces, "")
	h.voice.lay(&script{pieces: pieces})
	sent := p.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Say much"})
	gen := field[string](t, sent, "generationId")
	done := p.event("gen.done", gen)

	go slow.read()
	slow.reach(done.Seq)
	text, frames := "", 0
	for _, f := range slow.all() {
		switch f.Ev {
		case "gen.delta":
			if f.Off != len([]rune(text)) {
				t.Fatalf("delta at %d of a text of %d", f.Off, len([]rune(text)))
			}
			text += field[string](t, f, "text")
			frames++
		case "message.updated":
			if got := field[string](t, f, "message.text"); got != want {
				t.Errorf("the stored text has %d bytes, want %d", len(got), len(want))
			}
		}
	}
	if !strings.HasPrefix(want, text) {
		t.Error("the deltas are not the beginning of the text")
	}
	t.Logf("%d pieces came in %d frames", len(pieces), frames)
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
