package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/llm/llmtest"
)

// wire is a connection through the network of the test, which may break.
type wire struct {
	net.Conn
	left int // bytes until it breaks; < 0 = it holds
}

func (w *wire) Read(p []byte) (int, error) {
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

// mobile is what a well-made client does: it keeps its position and its texts,
// resumes, attaches, and never appends blindly.
type mobile struct {
	t      *testing.T
	c      *client
	rng    *rand.Rand
	cuts   int // still to be made
	gate   chan struct{}
	phone  *phone
	frames int // of this connection until it is cut between two frames; < 0 = never

	epoch   string
	seq     int64
	texts   map[string]string // by generation, from deltas
	finals  map[string]string // by message
	ended   map[string]bool   // generations
	answers map[string]*frame // of this connection, by command
}

// connect dials and says hello until that works. Half of the connections break
// after some bytes, half between two events.
func (a *mobile) connect() {
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
		p, err := dialPhone(a.t, a.c, func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &wire{conn, bytes}, err
		})
		if err != nil {
			require.GreaterOrEqual(a.t, bytes, 0, "the handshake failed by itself: %v", err)
			a.progress()
			continue
		}
		a.phone, a.answers = p, map[string]*frame{}
		if a.hello() {
			return
		}
	}
}

func (a *mobile) hello() bool {
	data := map[string]any{"protocol": 1, "deviceId": "d-app", "batch": a.rng.IntN(2) == 0}
	if a.epoch != "" {
		data["resume"] = map[string]any{"epoch": a.epoch, "seq": a.seq}
	}
	id := a.phone.send("hello", "", data)
	if !a.until(func() bool { return a.answers[id] != nil }) {
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
	} else {
		require.True(a.t, welcome.Resumed, "%s", a.answers[id].Data)
	}
	a.epoch = welcome.Epoch
	for _, g := range welcome.Active {
		a.phone.send("gen.attach", "", map[string]any{"generationId": g.GenerationID, "off": len([]rune(a.texts[g.GenerationID]))})
	}
	return true
}

// until uses frames until ok; false means that the connection ended before.
func (a *mobile) until(ok func() bool) bool {
	a.t.Helper()
	for !ok() {
		if a.frames == 0 {
			_ = a.phone.ws.NetConn().Close()
			return false
		}
		f, err := a.phone.next()
		if err != nil {
			return false
		}
		a.frames--
		a.use(f)
		a.progress()
	}
	return true
}

// progress lets the model say one to three pieces more: the reply goes on while
// the app is away, but never runs ahead of it.
func (a *mobile) progress() {
	for range 1 + a.rng.IntN(3) {
		select {
		case a.gate <- struct{}{}:
		default:
		}
	}
}

// use takes a frame in. A position that is not the next one, or a delta that
// does not fit, is a failure.
func (a *mobile) use(f *frame) {
	a.t.Helper()
	if f.ID != "" {
		require.True(a.t, f.OK != nil && *f.OK, "command %s: %s", f.ID, f.Error)
		a.answers[f.ID] = f
		return
	}
	if f.Seq > 0 {
		require.Equal(a.t, a.seq+1, f.Seq, "position of %s", f.Ev)
		a.seq = f.Seq
	}
	switch f.Ev {
	case "gen.delta":
		var d struct{ Text, Part string }
		f.into(a.t, &d)
		require.False(a.t, a.ended[f.Gen], "a delta after the end")
		require.Equal(a.t, len([]rune(a.texts[f.Gen])), f.Off, "place of a delta")
		a.texts[f.Gen] += d.Text
	case "message.updated":
		var d struct{ Message chatMessage }
		f.into(a.t, &d)
		a.finals[d.Message.ID] = d.Message.Text
	case "gen.done", "gen.failed":
		require.False(a.t, a.ended[f.Gen], "a generation ended twice")
		a.ended[f.Gen] = true
	}
}

// turn sends a message, again under the same key until it is answered, and
// follows the reply over as many connections as that takes.
func (a *mobile) turn(conversation, key, want string) {
	a.t.Helper()
	var answer *frame
	for answer == nil {
		id := a.phone.send("chat.send", key, map[string]any{"conversationId": conversation, "text": "Go on."})
		if a.until(func() bool { return a.answers[id] != nil }) {
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
	for !a.until(func() bool { return a.ended[sent.GenerationID] }) {
		a.connect()
	}
	require.Equal(a.t, want, a.finals[sent.Message.ID], "the stored text")
	require.True(a.t, strings.HasPrefix(want, a.texts[sent.GenerationID]), "deltas gave %q, the provider sent %q", a.texts[sent.GenerationID], want)
}

// TestCuts breaks the connection to the real server at random bytes and between
// events while replies are streamed. What the app has in the end is what the
// provider sent; no event came twice and none is missing. NODEST_LONG=1 makes
// 1,000 cuts.
func TestCuts(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	fake := llmtest.NewOpenAI(t)
	inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+fake.URL)
	p := inst.start(t)
	character := sampleCharacter(t, p.client)
	// The provider answers in the order of the turns: nothing else may ask it.
	require.NoError(t, p.client.call(t.Context(), http.MethodPut, "/api/v1/characters/"+character+"/settings",
		map[string]any{"memory": map[string]any{"enabled": false}}, nil))
	conversation := newConversation(t, p.client, character)
	a := &mobile{
		t: t, c: p.client, rng: rng, cuts: long(t, 25, 1000), gate: make(chan struct{}, 1<<16),
		texts: map[string]string{}, finals: map[string]string{}, ended: map[string]bool{},
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
	for _, m := range history(t, p.client, conversation)[1:] { // without the greeting
		if m.Role == "assistant" {
			stored = append(stored, m.Text)
		}
	}
	require.Equal(t, said, stored)
	var at struct{ Seq int64 }
	require.NoError(t, p.client.call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &at))
	require.Equal(t, at.Seq, a.seq, "the end of the log")
	verifyLog(t, p.client)
	t.Logf("%d cuts, %d replies, %d events", all, len(said), a.seq)
	p.stop(t)
}

// randomPieces is a reply of up to 60 pieces of several scripts.
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
	// White space at the ends is the engine's business.
	pieces[0] = "A" + pieces[0]
	pieces[len(pieces)-1] += "."
	return pieces
}
