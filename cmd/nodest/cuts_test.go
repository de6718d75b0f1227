package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"nodest/internal/cli"
	"nodest/llm/llmtest"
)

// breakingConn is a connection that closes after a number of bytes has been read.
type breakingConn struct {
	net.Conn
	left int // bytes until it closes; < 0 = never
}

func (w *breakingConn) Read(p []byte) (int, error) {
	if w.left == 0 {
		_ = w.Close()
		return 0, io.ErrUnexpectedEOF
	}
	if w.left > 0 {
		p = p[:min(len(p), w.left)]
	}
	n, err := w.Conn.Read(p)
	if w.left > 0 {
		w.left -= n
	}
	return n, err
}

// resumingClient does what a correct client does: it keeps its position and the
// texts, resumes, attaches to generations, and appends a delta only at its offset.
type resumingClient struct {
	t      *testing.T
	c      *cli.Client
	rng    *rand.Rand
	cuts   int // remaining
	gate   chan struct{}
	conn   *wsClient
	frames int // until this connection is cut between two frames; < 0 = never

	epoch   string
	seq     int64
	texts   map[string]string // by generation, from deltas
	stored  map[string]string // by message
	ended   map[string]bool   // generations
	answers map[string]*frame // on this connection, by command id
}

// connect dials and sends hello until that succeeds. Half of the connections are cut
// after some bytes, half between two frames.
func (a *resumingClient) connect() {
	a.t.Helper()
	for {
		bytes := -1
		a.frames = -1
		if a.cuts > 0 {
			a.cuts--
			if a.rng.IntN(2) == 0 {
				bytes = a.rng.IntN(12_000)
			} else {
				a.frames = 1 + a.rng.IntN(40)
			}
		}
		p, err := dialWS(a.t, a.c, func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &breakingConn{conn, bytes}, err
		})
		if err != nil {
			if bytes < 0 {
				a.t.Fatalf("the handshake failed by itself: %v: bytes is %d, want at least %d", err, bytes, 0)
			}
			a.releasePieces()
			continue
		}
		a.conn, a.answers = p, map[string]*frame{}
		if a.hello() {
			return
		}
	}
}

func (a *resumingClient) hello() bool {
	data := map[string]any{"protocol": 1, "deviceId": "d-app", "batch": a.rng.IntN(2) == 0}
	if a.epoch != "" {
		data["resume"] = map[string]any{"epoch": a.epoch, "seq": a.seq}
	}
	id := a.conn.send("hello", "", data)
	if !a.readUntil(func() bool { return a.answers[id] != nil }) {
		return false
	}
	var welcome struct {
		Epoch   string
		Seq     int64
		Resumed bool
		Active  []struct{ GenerationID string }
	}
	a.answers[id].into(a.t, &welcome)
	if a.epoch == "" {
		a.seq = welcome.Seq
	} else if !welcome.Resumed {
		a.t.Fatal(a.answers[id].Data)
	}
	a.epoch = welcome.Epoch
	for _, g := range welcome.Active {
		a.conn.send("gen.attach", "", map[string]any{"generationId": g.GenerationID, "off": len([]rune(a.texts[g.GenerationID]))})
	}
	return true
}

// readUntil handles frames until ok; it returns false if the connection ends first.
func (a *resumingClient) readUntil(ok func() bool) bool {
	a.t.Helper()
	for !ok() {
		if a.frames == 0 {
			_ = a.conn.ws.NetConn().Close()
			return false
		}
		f, err := a.conn.next()
		if err != nil {
			return false
		}
		a.frames--
		a.handle(f)
		a.releasePieces()
	}
	return true
}

// trickle releases a piece whenever the reply has waited for a while, until the returned
// function is called: a slow machine sends many pieces as one frame, and frames alone would
// then release too few.
func (a *resumingClient) trickle() (stop func()) {
	tick, ended := time.NewTicker(100*time.Millisecond), make(chan struct{})
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if len(a.gate) == 0 {
					a.gate <- struct{}{}
				}
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}

// releasePieces releases one to three more pieces of the reply, so that it goes on
// while the client is disconnected, but never gets far ahead.
func (a *resumingClient) releasePieces() {
	for range 1 + a.rng.IntN(3) {
		select {
		case a.gate <- struct{}{}:
		default:
		}
	}
}

// handle processes one frame. A seq that is not the next one and a delta at another
// offset are failures.
func (a *resumingClient) handle(f *frame) {
	a.t.Helper()
	if f.ID != "" {
		if f.OK == nil || !(*f.OK) {
			a.t.Fatalf("command %s: %s", f.ID, f.Error)
		}
		a.answers[f.ID] = f
		return
	}
	if f.Seq > 0 {
		if want := a.seq + 1; f.Seq != want {
			a.t.Fatalf("position of %s: f.Seq is %d, want %d", f.Ev, f.Seq, want)
		}
		a.seq = f.Seq
	}
	switch f.Ev {
	case "gen.delta":
		var d struct{ Text, Part string }
		f.into(a.t, &d)
		if a.ended[f.Gen] {
			a.t.Fatal("a delta after the end")
		}
		if want := len([]rune(a.texts[f.Gen])); f.Off != want {
			a.t.Fatalf("place of a delta: f.Off is %d, want %d", f.Off, want)
		}
		a.texts[f.Gen] += d.Text
	case "message.updated":
		var d struct{ Message chatMessage }
		f.into(a.t, &d)
		a.stored[d.Message.ID] = d.Message.Text
	case "gen.done", "gen.failed":
		if a.ended[f.Gen] {
			a.t.Fatal("a generation ended twice")
		}
		a.ended[f.Gen] = true
	}
}

// turn sends a message, repeats it with the same key until it is answered, and
// follows the reply over as many connections as it takes.
func (a *resumingClient) turn(conversation, key, want string) {
	a.t.Helper()
	var answer *frame
	for answer == nil {
		id := a.conn.send("chat.send", key, map[string]any{"conversationId": conversation, "text": "Go on."})
		if a.readUntil(func() bool { return a.answers[id] != nil }) {
			answer = a.answers[id]
		} else {
			a.connect()
		}
	}
	var sent struct {
		GenerationID string
		Message      chatMessage
	}
	answer.into(a.t, &sent)
	defer a.trickle()()
	for !a.readUntil(func() bool { return a.ended[sent.GenerationID] }) {
		a.connect()
	}
	if a.stored[sent.Message.ID] != want {
		a.t.Fatalf("the stored text: a.stored[sent.Message.ID] is %q, want %q", a.stored[sent.Message.ID], want)
	}
	if !strings.HasPrefix(want, a.texts[sent.GenerationID]) {
		a.t.Fatalf("deltas gave %q, the provider sent %q", a.texts[sent.GenerationID], want)
	}
}

// TestCutConnectionsLoseNothing cuts the connection to a real server process at
// random bytes and between events while replies are streamed. In the end the client
// has what the provider sent, and no event is missing or came twice. NODEST_LONG=1
// makes 1,000 cuts.
func TestCutConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	rng := newRand(t)
	fake := llmtest.NewOpenAI(t)
	inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+fake.URL)
	p := inst.start(t)
	character := sampleCharacter(t, p.client)
	// The provider scripts one reply per turn: nothing else may call it.
	if err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/characters/"+character+"/settings",
		map[string]any{"memory": map[string]any{"enabled": false}}, nil); err != nil {
		t.Fatal(err)
	}
	conversation := newConversation(t, p.client, character)
	a := &resumingClient{
		t: t, c: p.client, rng: rng, cuts: scaled(t, 25, 1000), gate: make(chan struct{}, 1<<16),
		texts: map[string]string{}, stored: map[string]string{}, ended: map[string]bool{},
	}
	all := a.cuts
	a.connect()
	var said []string
	for turn := 0; a.cuts > 0 || turn == 0; turn++ {
		pieces := randomPieces(rng)
		reply := llmtest.Say(pieces...)
		reply.Gate = a.gate
		fake.Script(reply)
		said = append(said, strings.Join(pieces, ""))
		a.turn(conversation, fmt.Sprintf("turn-%d", turn), said[turn])
	}
	var stored []string
	for _, m := range history(t, p.client, conversation)[1:] { // the greeting left out
		if m.Role == "assistant" {
			stored = append(stored, m.Text)
		}
	}
	if !reflect.DeepEqual(stored, said) {
		t.Fatalf("stored is %q, want %q", stored, said)
	}
	if want := logEnd(t, p.client); a.seq != want {
		t.Fatalf("the end of the log: a.seq is %d, want %d", a.seq, want)
	}
	verifyLog(t, p.client)
	t.Logf("%d cuts, %d replies, %d events", all, len(said), a.seq)
	p.stop(t)
}

// randomPieces returns a reply of up to 60 pieces in several scripts.
func randomPieces(rng *rand.Rand) []string {
	letters := []rune("abc xyz 茶館🫖\n\"\\é")
	pieces := make([]string, 1+rng.IntN(60))
	for i := range pieces {
		piece := make([]rune, 1+rng.IntN(12))
		for k := range piece {
			piece[k] = letters[rng.IntN(len(letters))]
		}
		pieces[i] = string(piece)
	}
	// The engine trims white space at the ends.
	pieces[0] = "A" + pieces[0]
	pieces[len(pieces)-1] += "."
	return pieces
}
