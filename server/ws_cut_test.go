package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/internal/stream"
)

// newRand returns a random source with a fixed seed, or that of NODEST_SEED.
func newRand(t *testing.T) *rand.Rand {
	seed := uint64(20261121)
	if v, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("NODEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// scaled returns full times NODEST_LONG, which is 1 in `make test-long`, but at least
// least.
func scaled(full, least int) int {
	share, err := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64)
	if err != nil {
		return least
	}
	return max(least, int(float64(full)*share))
}

// cutAfter is a connection that closes after a number of bytes has been read.
type cutAfter struct {
	net.Conn
	left int
}

var errCut = errors.New("the test cut the connection")

func (c *cutAfter) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.Conn.Close()
		return 0, errCut
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// resumingClient does what a correct client does: it keeps its position and the
// texts, resumes, attaches to generations, and appends a delta only at its offset.
type resumingClient struct {
	t        *testing.T
	h        *testServer
	epoch    string
	seq      int64
	texts    map[string]string // by generation, from deltas
	stored   map[string]string // by message
	ended    map[string]bool   // generations
	problems []string
	progress func() // called after each frame
}

// session is one connection of a resumingClient.
type session struct {
	*resumingClient
	p    *wsClient
	used int               // number of frames handled
	sent map[string]*frame // replies by command id
}

// connect dials and sends hello until that succeeds; bytes returns after how many
// bytes the next connection is cut, 0 = never.
func (a *resumingClient) connect(bytes func() int) *session {
	a.t.Helper()
	for {
		limit := bytes()
		p, _, err := a.h.dial(dialOptions{token: a.h.token, mayFail: true, dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, addr)
			if err != nil || limit == 0 {
				return conn, err
			}
			return &cutAfter{conn, limit}, nil
		}})
		if err != nil {
			a.progress()
			continue // cut in the handshake
		}
		s := &session{resumingClient: a, p: p, sent: map[string]*frame{}}
		hello := map[string]any{"protocol": 1, "deviceId": "d-app", "batch": true}
		if a.epoch != "" {
			hello["resume"] = stream.Position{Epoch: a.epoch, Seq: a.seq}
		}
		id := p.send("hello", "", hello)
		if !s.readUntil(func() bool { return s.sent[id] != nil }) {
			continue
		}
		f := s.sent[id]
		if a.epoch != "" && !field[bool](a.t, f, "resumed") {
			a.t.Fatalf("not resumed: %s", f.Data)
		}
		a.epoch = field[string](a.t, f, "epoch")
		for _, v := range field[[]any](a.t, f, "active") {
			gen := v.(map[string]any)["generationId"].(string)
			s.attach(gen)
		}
		return s
	}
}

// attach asks for the rest of a text.
func (s *session) attach(gen string) {
	s.p.send("gen.attach", "", map[string]any{"generationId": gen, "off": len([]rune(s.texts[gen]))})
}

// readUntil handles frames until ok; it returns false if the connection ends first.
func (s *session) readUntil(ok func() bool) bool {
	s.t.Helper()
	deadline := time.After(testTimeout)
	for !ok() {
		s.p.mu.Lock()
		frames, closed, news := s.p.frames[s.used:], s.p.closed, s.p.updated
		s.p.mu.Unlock()
		if len(frames) > 0 {
			s.used++
			s.handle(frames[0])
			s.progress()
			continue
		}
		if closed != nil {
			return false
		}
		select {
		case <-news:
		case <-deadline:
			s.t.Fatalf("no more frames; texts %v, seq %d; this connection: %s", s.texts, s.seq, s.p.recentFrames())
		}
	}
	return true
}

// handle processes one frame and records protocol violations.
func (s *session) handle(f *frame) {
	if f.ID != "" {
		s.sent[f.ID] = f
		if f.OK != nil && !*f.OK {
			s.report("command failed: %+v", f.Error)
		}
		if s.epoch == "" && f.OK != nil && *f.OK {
			s.seq = int64(field[float64](s.t, f, "seq"))
		}
		return
	}
	if f.Seq > 0 {
		if f.Seq != s.seq+1 {
			s.report("event %d came after %d", f.Seq, s.seq)
		}
		s.seq = f.Seq
	}
	switch f.Ev {
	case "gen.delta":
		s.delta(f)
	case "message.updated":
		var d struct{ Message struct{ ID, Text string } }
		if err := json.Unmarshal(f.Data, &d); err != nil {
			s.report("message.updated: %v", err)
		}
		s.stored[d.Message.ID] = d.Message.Text
	case "gen.done", "gen.failed":
		s.ended[f.Gen] = true
	}
}

func (s *session) delta(f *frame) {
	var d stream.Delta
	if err := json.Unmarshal(f.Data, &d); err != nil || d.Part != "text" {
		return
	}
	if s.ended[f.Gen] {
		s.report("a delta after the end")
	}
	have := len([]rune(s.texts[f.Gen]))
	if f.Off != have {
		s.report("delta at %d of a text of %d", f.Off, have)
		return
	}
	s.texts[f.Gen] += d.Text
}

func (a *resumingClient) report(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// TestCutConnectionsLoseNothing cuts the connection at random bytes while replies
// are streamed. In the end the text is the provider's, and no event is missing or
// came twice. NODEST_LONG=1 makes 1,000 cuts.
func TestCutConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	cuts := int64(scaled(1000, 40))
	r := newRand(t)
	h := newTestServer(t, nil)
	chat := h.newChat()
	gate := make(chan struct{}, 1<<16)
	a := &resumingClient{t: t, h: h, texts: map[string]string{}, stored: map[string]string{}, ended: map[string]bool{}}
	// Each handled frame releases one to three more pieces, so that the reply goes on
	// while the client is disconnected, but never gets far ahead.
	a.progress = func() {
		for range 1 + r.IntN(3) {
			select {
			case gate <- struct{}{}:
			default:
			}
		}
	}
	var made atomic.Int64
	bytes := func() int {
		if made.Add(1) > cuts {
			return 0
		}
		return 1 + r.IntN(12_000) // 0 would never cut: no further turn would end the test
	}
	s := a.connect(bytes)
	for n := 0; made.Load() <= cuts; n++ {
		pieces := randomPieces(r, 60)
		h.model.enqueue(&script{pieces: pieces, gate: gate})
		a.turn(&s, bytes, chat, fmt.Sprintf("turn-%d", n), strings.Join(pieces, ""))
		if len(a.problems) > 0 {
			t.Fatalf("in turn %d: %s", n, strings.Join(a.problems, "; "))
		}
	}
	t.Logf("%d connections, %d events", made.Load(), a.seq)
	assertWholeLog(t, h, a)
}

// turn sends a message, repeats it with the same key until it is answered, and
// follows the reply over as many connections as it takes.
func (a *resumingClient) turn(s **session, bytes func() int, chat, key, want string) {
	a.t.Helper()
	var answer *frame
	for answer == nil {
		id := (*s).p.send("chat.send", key, map[string]any{"conversationId": chat, "text": "Go on."})
		if (*s).readUntil(func() bool { return (*s).sent[id] != nil }) {
			answer = (*s).sent[id]
		} else {
			*s = a.connect(bytes)
		}
	}
	if !*answer.OK {
		a.t.Fatalf("send: %+v", answer.Error)
	}
	gen, msg := field[string](a.t, answer, "generationId"), field[string](a.t, answer, "message.id")
	for !(*s).readUntil(func() bool { return a.ended[gen] }) {
		*s = a.connect(bytes)
	}
	if got := a.stored[msg]; got != want {
		a.report("stored text %q, the provider sent %q", got, want)
	}
	if got := a.texts[gen]; !strings.HasPrefix(want, got) {
		a.report("deltas gave %q, the provider sent %q", got, want)
	}
}

func randomPieces(r *rand.Rand, n int) []string {
	letters := []rune("abc xyz 茶館🫖\n\"\\é")
	pieces := make([]string, 1+r.IntN(n))
	for i := range pieces {
		piece := make([]rune, 1+r.IntN(12))
		for k := range piece {
			piece[k] = letters[r.IntN(len(letters))]
		}
		pieces[i] = string(piece)
	}
	pieces[0] = "A" + pieces[0] // the engine trims white space at the ends
	pieces[len(pieces)-1] += "."
	return pieces
}

// assertWholeLog checks that the client has reached the end of the log.
func assertWholeLog(t *testing.T, h *testServer, a *resumingClient) {
	t.Helper()
	at, _, err := h.db.Position(context.Background(), h.user.ID)
	h.must(err)
	if at.Seq != a.seq {
		t.Errorf("the app is at %d, the log at %d", a.seq, at.Seq)
	}
}
