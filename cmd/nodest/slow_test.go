package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/llm/llmtest"
)

// TestAStalledReaderDelaysNobody lets one device read nothing while replies are
// streamed: another device of the same user gets every piece, and all replies end. The
// test prints the time between pieces with and without the stalled device.
func TestAStalledReaderDelaysNobody(t *testing.T) {
	t.Parallel()
	const pieces = 200
	turns := scaled(t, 4, 100)
	fake := llmtest.NewOpenAI(t)
	said := make([]string, pieces)
	for i := range said {
		said[i] = fmt.Sprintf("%03d %s. ", i, strings.Repeat("word ", 100))
	}
	gate := make(chan struct{}, 2*pieces)
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) == 1 { // in the background, about the memory
			return llmtest.Say("{}")
		}
		reply := llmtest.Say(said...)
		reply.Gate = gate
		return reply
	})
	inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+fake.URL)
	p := inst.start(t)
	character := sampleCharacter(t, p.client)
	reader := connectWS(t, p.client, "reader")
	l := &pacedClient{t: t, client: p.client, p: reader, gate: gate, want: strings.TrimSpace(strings.Join(said, ""))}

	alone := l.measureTurns(newConversation(t, p.client, character), turns)
	silent, err := dialWS(t, p.client, func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4096)
		}
		return conn, err
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := silent.answer(silent.send("hello", "", map[string]any{"protocol": 1, "deviceId": "silent"}))
	if err != nil {
		t.Fatal(err)
	}
	if !(*f.OK) {
		t.Fatal(f.Error)
	}
	beside := l.measureTurns(newConversation(t, p.client, character), turns)

	if len(beside) != len(alone) {
		t.Fatalf("pieces that came: len(beside) is %d, want %d", len(beside), len(alone))
	}
	t.Logf("%d and %d pieces; 99 of 100 came within %v of the one before, with a stalled device within %v", len(alone), len(beside), percentile(alone, 0.99), percentile(beside, 0.99))
	if err := p.client.Call(t.Context(), http.MethodGet, "/readyz", nil, nil); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
}

// pacedClient is a client whose model sends the next piece only after it has received
// one, so that a reply that is held up does not end.
type pacedClient struct {
	t      *testing.T
	client *cli.Client
	p      *wsClient
	gate   chan struct{}
	want   string
}

// measureTurns makes turns in a conversation, over REST because the commands of a
// connection are limited, checks the replies, and returns the time before each piece.
func (l *pacedClient) measureTurns(conversation string, turns int) []time.Duration {
	l.t.Helper()
	var gaps []time.Duration
	for n := range turns {
		answered := make(chan error, 1)
		go func() {
			body := map[string]any{"text": fmt.Sprintf("Go on, %d.", n)}
			answered <- l.client.Call(l.t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", body, nil)
		}()
		gaps = append(gaps, l.turn()...)
		if <-answered != nil {
			l.t.Fatal(<-answered)
		}
	}
	return gaps
}

func (l *pacedClient) turn() (gaps []time.Duration) {
	l.t.Helper()
	for len(l.gate) > 0 { // the last piece of the turn before may have left one
		<-l.gate
	}
	l.gate <- struct{}{}
	text, final := "", ""
	last := time.Now()
	for {
		f, err := l.p.next()
		if err != nil {
			l.t.Fatal(err)
		}
		switch f.Ev {
		case "gen.delta":
			var d struct{ Text string }
			f.into(l.t, &d)
			text += d.Text
			gaps, last = append(gaps, time.Since(last)), time.Now()
			l.gate <- struct{}{}
		case "message.updated":
			var d struct{ Message chatMessage }
			f.into(l.t, &d)
			final = strings.TrimSpace(d.Message.Text)
		case "gen.failed":
			l.t.Fatalf("the reply failed: %s", f.Data)
		case "gen.done":
			if final != l.want {
				l.t.Fatalf("the stored text has %d of %d bytes", len(final), len(l.want))
			}
			if strings.TrimSpace(text) != l.want {
				l.t.Fatalf("the pieces have %d of %d bytes", len(text), len(l.want))
			}
			return gaps
		}
	}
}

func percentile(times []time.Duration, of float64) time.Duration {
	slices.Sort(times)
	return times[int(of*float64(len(times)-1))].Round(time.Microsecond)
}
