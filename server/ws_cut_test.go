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

	"nodest/stream"
)

// seeded returns the random numbers of a test; NODEST_SEED chooses others.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(20261121)
	if v, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("NODEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// long scales a number by NODEST_LONG, which is 1 in `make test-long`.
func long(full, least int) int {
	share, err := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64)
	if err != nil {
		return least
	}
	return max(least, int(float64(full)*share))
}

// cutAfter is a connection that breaks off after a number of bytes were read.
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

// mobile is what a well-made client does: it keeps a position and texts, resumes,
// attaches, and never appends blindly.
type mobile struct {
	t        *testing.T
	h        *house
	epoch    string
	seq      int64
	texts    map[string]string // by generation, from deltas
	finals   map[string]string // by message
	ended    map[string]bool   // generations
	faults   []string
	progress func() // called after each frame
}

// session is one connection of an app, until it is cut or done says so.
type session struct {
	*mobile
	p    *phone
	n    int               // frames of the connection that were used
	sent map[string]*frame // replies by command id
}

// connect dials and says hello until that succeeds; bytes is after how many
// bytes each connection breaks off, 0 = never.
func (a *mobile) connect(bytes func() int) *session {
	a.t.Helper()
	for {
		limit := bytes()
		p, _, err := a.h.dial(dialed{token: a.h.token, quiet: true, dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
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
		s := &session{mobile: a, p: p, sent: map[string]*frame{}}
		hello := map[string]any{"protocol": 1, "deviceId": "d-app", "batch": true}
		if a.epoch != "" {
			hello["resume"] = stream.Position{Epoch: a.epoch, Seq: a.seq}
		}
		id := p.send("hello", "", hello)
		if !s.until(func() bool { return s.sent[id] != nil }) {
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

// attach asks for the text from where the app's own ends.
func (s *session) attach(gen string) {
	s.p.send("gen.attach", "", map[string]any{"generationId": gen, "off": len([]rune(s.texts[gen]))})
}

// until uses frames until ok, and returns false if the connection ended before.
func (s *session) until(ok func() bool) bool {
	s.t.Helper()
	deadline := time.After(patience)
	for !ok() {
		s.p.mu.Lock()
		frames, closed, news := s.p.frames[s.n:], s.p.closed, s.p.news
		s.p.mu.Unlock()
		if len(frames) > 0 {
			s.n++
			s.use(frames[0])
			s.progress()
			continue
		}
		if closed != nil {
			return false
		}
		select {
		case <-news:
		case <-deadline:
			s.t.Fatalf("nothing comes any more; texts %v, seq %d; this connection: %s", s.texts, s.seq, s.p.heard())
		}
	}
	return true
}

// use takes one frame in and notes whatever should not be.
func (s *session) use(f *frame) {
	if f.ID != "" {
		s.sent[f.ID] = f
		if f.OK != nil && !*f.OK {
			s.fault("command failed: %+v", f.Error)
		}
		if s.epoch == "" && f.OK != nil && *f.OK {
			s.seq = int64(field[float64](s.t, f, "seq"))
		}
		return
	}
	if f.Seq > 0 {
		if f.Seq != s.seq+1 {
			s.fault("event %d came after %d", f.Seq, s.seq)
		}
		s.seq = f.Seq
	}
	switch f.Ev {
	case "gen.delta":
		s.delta(f)
	case "message.updated":
		var d struct{ Message struct{ ID, Text string } }
		if err := json.Unmarshal(f.Data, &d); err != nil {
			s.fault("message.updated: %v", err)
		}
		s.finals[d.Message.ID] = d.Message.Text
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
		s.fault("a delta after the end")
	}
	have := len([]rune(s.texts[f.Gen]))
	if f.Off != have {
		s.fault("delta at %d of a text of %d", f.Off, have)
		return
	}
	s.texts[f.Gen] += d.Text
}

func (a *mobile) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}

// TestCutConnectionsLoseNothing cuts the connection at random bytes while
// replies are streamed. After all resumes the text is the provider's, no event
// came twice and none is missing. NODEST_LONG=1 makes 1,000 cuts.
func TestCutConnectionsLoseNothing(t *testing.T) {
	cuts := int64(long(1000, 40))
	r := seeded(t)
	h := build(t, nil)
	chat := h.chat()
	gate := make(chan struct{}, 1<<16)
	a := &mobile{t: t, h: h, texts: map[string]string{}, finals: map[string]string{}, ended: map[string]bool{}}
	// Each frame that the app has used lets the model say one to three pieces
	// more: so the reply goes on while the app is away, but never runs ahead.
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
		return r.IntN(12_000)
	}
	s := a.connect(bytes)
	for n := 0; made.Load() <= cuts; n++ {
		pieces := randomPieces(r, 60)
		h.voice.lay(&script{pieces: pieces, gate: gate})
		a.turn(&s, bytes, chat, fmt.Sprintf("turn-%d", n), strings.Join(pieces, ""))
		if len(a.faults) > 0 {
			t.Fatalf("in turn %d: %s", n, strings.Join(a.faults, "; "))
		}
	}
	t.Logf("%d connections, %d events", made.Load(), a.seq)
	assertWholeLog(t, h, a)
}

// turn sends a message, again under the same key until it is answered, and
// follows the reply over as many connections as it takes.
func (a *mobile) turn(s **session, bytes func() int, chat, key, want string) {
	a.t.Helper()
	var answer *frame
	for answer == nil {
		id := (*s).p.send("chat.send", key, map[string]any{"conversationId": chat, "text": "Go on."})
		if (*s).until(func() bool { return (*s).sent[id] != nil }) {
			answer = (*s).sent[id]
		} else {
			*s = a.connect(bytes)
		}
	}
	if !*answer.OK {
		a.t.Fatalf("send: %+v", answer.Error)
	}
	gen, msg := field[string](a.t, answer, "generationId"), field[string](a.t, answer, "message.id")
	for !(*s).until(func() bool { return a.ended[gen] }) {
		*s = a.connect(bytes)
	}
	if got := a.finals[msg]; got != want {
		a.fault("stored text %q, the provider sent %q", got, want)
	}
	if got := a.texts[gen]; !strings.HasPrefix(want, got) {
		a.fault("deltas gave %q, the provider sent %q", got, want)
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
	pieces[0] = "A" + pieces[0] // white space at the ends is the engine's business
	pieces[len(pieces)-1] += "."
	return pieces
}

// assertWholeLog compares what the app has seen with the log.
func assertWholeLog(t *testing.T, h *house, a *mobile) {
	t.Helper()
	at, _, err := h.db.Position(context.Background(), h.user.ID)
	h.must(err)
	if at.Seq != a.seq {
		t.Errorf("the app is at %d, the log at %d", a.seq, at.Seq)
	}
}
