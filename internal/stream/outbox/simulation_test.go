package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/stream"
)

// simulation is a user's log, an engine that writes replies, a hub that delivers late,
// and a client that checks everything it receives.
type simulation struct {
	t         testing.TB
	out       *simConn
	opts      Options
	set       Settings
	exact     bool // no rewinds: the client always has a prefix of the text
	replies   []*simReply
	log       []*stream.Event
	published []*stream.Event // not delivered yet
	joined    bool
	connected bool

	attaching bool
	position  int64    // the client's place in the log
	during    []action // run while the connection writes or reads
	sent      []string
	closed    int
	pings     int
}

// simReply is a reply as the engine has it and as the client has it.
type simReply struct {
	id, conversation, message string
	state                     int // 0 = not started, 1 = running, 2 = ended
	text                      []rune

	received     []rune
	midway       bool // the first delta may start anywhere
	awaitsAttach bool // hello listed it: no delta before the client attaches
	mayMiss      bool // the client unsubscribed and may miss deltas
	attached     bool
	ended        bool // the client has seen its end
}

// action is one step of a simulation.
type action struct {
	name   string
	n      int
	during []action
}

func newSimulation(t testing.TB, opts Options, set Settings) *simulation {
	w := &simulation{t: t, opts: opts, set: set}
	for i := range 3 {
		w.replies = append(w.replies, &simReply{
			id: fmt.Sprint("g", i), message: fmt.Sprint("m", i), conversation: fmt.Sprint("c", i%2),
		})
	}
	w.out = &simConn{sim: w}
	opts.Wake = func() { w.out.woken = true }
	w.out.Outbox = New(opts)
	return w
}

func (w *simulation) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format+"\nsent: %s", append(args, strings.Join(w.sent[max(0, len(w.sent)-12):], "\n      "))...)
}

func (w *simulation) publish(e *stream.Event, durable bool, r *simReply) {
	e.At, e.By = time.Now(), "server"
	if r != nil {
		e.ConversationID, e.MessageID = r.conversation, r.message
		if e.Type != "message.updated" {
			e.GenerationID = r.id
		}
	}
	if durable {
		e.Seq = int64(len(w.log) + 1)
		w.log = append(w.log, e)
	}
	w.published = append(w.published, e)
}

func (w *simulation) flush(n int) {
	for ; n > 0 && len(w.published) > 0; n-- {
		e := w.published[0]
		w.published = w.published[1:]
		if w.joined {
			w.out.Deliver(e)
		}
	}
}

func (w *simulation) do(d action) {
	r := w.replies[d.n%len(w.replies)]
	n := d.n / len(w.replies)
	durable := func(kind string, of *simReply, size int) {
		w.publish(&stream.Event{Type: kind, Data: []byte(`{"x":"` + strings.Repeat("x", size) + `"}`)}, true, of)
	}
	switch d.name {
	case "start":
		if r.state == 0 {
			r.state = 1
			durable("gen.started", r, 0)
		}
	case "finish":
		if r.state == 1 {
			r.state = 2
			durable("message.updated", r, len(r.text))
			durable([]string{"gen.done", "gen.failed"}[n%2], r, 0)
		}
	case "edit": // the message is edited while it is being written
		if r.state == 1 {
			durable("message.updated", r, 0)
		}
	case "chat":
		durable("chat.updated", nil, n%3*200)
	case "memory":
		durable("memory.written", nil, 10)
	case "flush":
		w.flush(n%5 + 1)
	case "drain":
		w.during = d.during
		w.out.drain()
		w.runDuring(len(w.during))
	case "attach", "fail":
		w.attach(r, d, n)
	case "subscribe", "unsubscribe":
		if _, ok := w.out.Subscribe([]string{r.conversation}, d.name == "subscribe"); !ok {
			w.failf("cannot %s", d.name)
		}
		for _, r := range w.replies {
			r.mayMiss = r.mayMiss || !r.attached
		}
	case "reply":
		w.out.Reply([]byte(`{"id":"x"}`))
	case "ping":
		w.out.Ping()
	case "tell":
		w.out.Tell(&stream.Event{Type: "auth.expiring", At: time.Now()})
	case "sleep":
		time.Sleep(time.Duration(n%60) * time.Millisecond) // virtual
		synctest.Wait()
	case "close":
		w.out.Close(1000, "", n%2 == 0)
	default:
		if r.state == 1 {
			w.generate(r, d.name, n)
		}
	}
}

// generate runs a step of a running generation.
func (w *simulation) generate(r *simReply, what string, n int) {
	switch what {
	case "say":
		e := &stream.Event{Off: len(r.text), At: time.Now(), By: "server", ConversationID: r.conversation, MessageID: r.message, GenerationID: r.id}
		for range n%7 + 1 {
			r.text = append(r.text, []rune("abcdefg旅人<é")[(len(r.text)*7+n)%11])
		}
		e.Say(string(r.text[e.Off:]), "text")
		w.publish(e, false, r)
	case "think":
		e := &stream.Event{Off: n, At: time.Now(), By: "server", ConversationID: r.conversation, MessageID: r.message, GenerationID: r.id}
		e.Say("hm", "reasoning")
		w.publish(e, false, r)
	case "block":
		w.publish(&stream.Event{Type: "gen.block", Data: []byte(`{}`)}, false, r)
	case "rewind":
		r.text = r.text[:n%(len(r.text)+1)]
		w.publish(&stream.Event{Type: "gen.rewind", Off: len(r.text), Data: []byte(`{}`)}, false, r)
	}
}

func (w *simulation) attach(r *simReply, d action, n int) {
	if !w.connected || w.closed != 0 || w.attaching {
		return
	}
	if r.mayMiss {
		r.received = nil // it may have missed a rewind
	}
	w.attaching = true
	defer func() { w.attaching = false }()
	first := n % (len(d.during) + 1)
	w.out.Attach(r.id, func() ([]byte, *Text) {
		w.during = d.during
		w.runDuring(first)
		t := w.read(r.id, len(r.received))
		w.runDuring(len(w.during))
		if d.name == "fail" || r.state == 0 {
			return []byte(`{"id":"failed"}`), nil
		}
		frame, _ := json.Marshal(map[string]any{"id": r.id, "off": t.Off, "running": !t.Ended})
		return frame, t
	})
}

// runDuring runs the next n steps of during.
func (w *simulation) runDuring(n int) {
	for ; n > 0 && len(w.during) > 0; n-- {
		d := w.during[0]
		w.during = w.during[1:]
		w.do(d)
	}
}

func (w *simulation) read(id string, off int) *Text {
	i := slices.IndexFunc(w.replies, func(r *simReply) bool { return r.id == id })
	r := w.replies[i]
	off = min(off, len(r.text))
	return &Text{
		GenerationID: r.id, ConversationID: r.conversation, MessageID: r.message,
		Off: off, Text: string(r.text[off:]), Ended: r.state == 2,
	}
}

// connect connects a client that already has a part of the texts and of the log.
func (w *simulation) connect(n int) {
	w.connected = true
	var running []Text
	for _, r := range w.replies {
		r.mayMiss = w.set.Filter.Chats != nil && !w.set.Filter.Chats[r.conversation]
		switch {
		case w.set.Midway:
			r.midway = r.state > 0
		case r.state == 1:
			r.received, r.awaitsAttach = slices.Clone(r.text[:n%(len(r.text)+1)]), true
			running = append(running, *w.read(r.id, 0))
		case r.state == 2:
			r.mayMiss = true // the client has loaded the message
		}
	}
	w.position = int64(n % (len(w.log) + 1))
	w.out.Begin([]byte(`{"id":"hello"}`), w.position, int64(len(w.log)), running...)
}

// frames delivers frames to the client.
func (w *simulation) frames(list []string) {
	for _, frame := range list {
		w.sent = append(w.sent, frame)
		w.receive(frame)
	}
	w.runDuring(1)
}

func (w *simulation) receive(frame string) {
	if frame == "ping" {
		w.pings++
		return
	}
	var f struct {
		ID, Ev       string
		Seq          int64
		GenerationID string
		Off          int
		Running      bool
		Data         struct{ Text, Part string }
	}
	if err := json.Unmarshal([]byte(frame), &f); err != nil {
		w.failf("%s: %v", frame, err)
	}
	if f.Seq > 0 {
		w.durable(f.Seq, f.Ev)
	}
	for _, r := range w.replies {
		switch {
		case f.ID == r.id && !f.Running: // the generation has ended, and the answer has its text
			r.mayMiss = true
		case f.ID == r.id && f.Off > len(r.received): // a rewind since the request: the client attaches again
			r.attached, r.awaitsAttach, r.mayMiss = true, false, true
		case f.ID == r.id: // the answer to gen.attach
			r.received = r.received[:f.Off]
			r.attached, r.awaitsAttach, r.mayMiss, r.midway = true, false, false, false
		case f.GenerationID != r.id:
		case f.Ev == "gen.done" || f.Ev == "gen.failed":
			r.ended = true
		case f.Ev == "gen.rewind":
			r.received = r.received[:min(len(r.received), f.Off)]
		case f.Ev == "gen.delta" && f.Data.Part == "text":
			w.delta(r, f.Off, []rune(f.Data.Text))
		}
	}
}

// durable checks that no event that the client wants was left out or sent twice.
func (w *simulation) durable(seq int64, kind string) {
	if seq <= w.position || seq > int64(len(w.log)) {
		w.failf("position %d after %d", seq, w.position)
	}
	for _, e := range w.log[w.position : seq-1] {
		if w.set.Filter.passes(e) || !w.set.Filter.Silent && kind != "skip" {
			w.failf("%s at %d was left out", e.Type, e.Seq)
		}
	}
	if passes := w.set.Filter.passes(w.log[seq-1]); passes == (kind == "skip") {
		w.failf("%s for %s", kind, w.log[seq-1].Type)
	}
	w.position = seq
}

func (w *simulation) delta(r *simReply, off int, text []rune) {
	if r.midway {
		r.received, r.midway = make([]rune, off), false
		copy(r.received, r.text)
	}
	if off != len(r.received) && r.mayMiss {
		return // the client would have to attach for the rest
	}
	if r.awaitsAttach || r.ended || off != len(r.received) {
		w.failf("%s at %d, client has %d (awaits %v, over %v)", r.id, off, len(r.received), r.awaitsAttach, r.ended)
	}
	r.received = append(r.received, text...)
	if w.exact && !strings.HasPrefix(string(r.text), string(r.received)) {
		w.failf("%s: %q is not a prefix of %q", r.id, string(r.received), string(r.text))
	}
}

// settle delivers everything and checks that the client knows it.
func (w *simulation) settle() {
	quiet := func() {
		for range 3 {
			w.flush(len(w.published))
			w.out.drain()
			time.Sleep(time.Minute) // virtual
			synctest.Wait()
		}
	}
	quiet()
	w.checkUpToDate()
	if w.closed != 0 || w.set.Midway {
		return
	}
	for i, r := range w.replies {
		if r.state == 1 && (r.awaitsAttach || r.mayMiss) {
			w.attach(r, action{name: "attach"}, i)
		}
	}
	quiet()
	w.checkUpToDate()
}

func (w *simulation) checkUpToDate() {
	if w.closed != 0 {
		return
	}
	skipped := w.set.Filter.Silent || w.position == int64(len(w.log))
	if !skipped {
		w.failf("the client is at %d, the log at %d", w.position, len(w.log))
	}
	for _, r := range w.replies {
		if r.state == 1 && !r.awaitsAttach && !r.mayMiss && !r.midway && string(r.received) != string(r.text) {
			w.failf("%s: the client has %q, the text is %q", r.id, string(r.received), string(r.text))
		}
	}
}

// randomSteps returns random steps with the given names.
func randomSteps(rng *rand.Rand, length int, names []string, during []string) []action {
	list := make([]action, length)
	for i := range list {
		list[i] = action{name: names[rng.IntN(len(names))], n: rng.IntN(10_000)}
		if len(during) > 0 && slices.Contains([]string{"drain", "attach", "fail"}, list[i].name) {
			list[i].during = randomSteps(rng, rng.IntN(4), during, nil)
		}
	}
	return list
}

// run runs steps before, during and after the client's hello.
func (w *simulation) run(rng *rand.Rand, before, between, after []action) {
	for _, d := range before {
		w.do(d)
	}
	w.flush(rng.IntN(len(w.published) + 1))
	w.joined = true
	w.out.Configure(w.set)
	for _, d := range between {
		w.do(d)
		w.out.check()
	}
	w.connect(rng.IntN(10_000))
	for _, d := range after {
		w.do(d)
		w.out.check()
		if w.closed != 0 {
			return
		}
	}
	w.settle()
	w.out.check()
	if w.closed == 0 {
		w.out.Close(1000, "", true)
		w.out.drain()
	}
}

func randomSettings(rng *rand.Rand) (Options, Settings) {
	opts := Options{
		MaxBytes: []int{1 << 20, 4000, 8000}[rng.IntN(3)], MaxFrames: []int{512, 12, 24}[rng.IntN(3)],
		Slow: Close{4408, "slow_consumer"}, Unreadable: Close{1011, "unreadable"},
	}
	set := Settings{Batch: rng.IntN(2) == 0, Midway: rng.IntN(8) == 0}
	if rng.IntN(3) == 0 {
		set.DeltaEvery = 50 * time.Millisecond
	}
	if rng.IntN(4) == 0 {
		set.Filter.Want = map[string]bool{"deltas": true, "circle": true}
	}
	if rng.IntN(6) == 0 {
		set.Filter.Chats = map[string]bool{"c0": true}
	}
	set.Filter.Quiet, set.Filter.Silent = rng.IntN(10) == 0, rng.IntN(10) == 0
	return opts, set
}

// simConn is an Outbox that the simulation pumps.
type simConn struct {
	*Outbox
	sim   *simulation
	woken bool
}

func (d *simConn) drain() {
	d.mu.Lock() // the timer wakes it, too
	woken := d.woken
	d.woken = false
	d.mu.Unlock()
	if woken {
		d.Pump(context.Background(), d)
	}
}

func (d *simConn) Write(items []*Item) error {
	var list []string
	for _, it := range items {
		if it.Ping {
			list = append(list, "ping")
		} else {
			list = append(list, string(it.JSON()))
		}
	}
	d.sim.frames(list)
	return nil
}

func (d *simConn) Finish(code int, _ string) { d.sim.closed = code }

func (d *simConn) Since(_ context.Context, after, upTo int64, limit int) ([]*stream.Event, error) {
	d.sim.runDuring(1)
	return d.sim.since(after, upTo, limit), nil
}

func (w *simulation) since(after, upTo int64, limit int) []*stream.Event {
	return w.log[after:min(upTo, after+int64(limit))]
}

func (d *simConn) Text(_ context.Context, id string, off int) (*Text, error) {
	return d.sim.text(id, off), nil
}

// text is read by the connection while other steps run.
func (w *simulation) text(id string, off int) *Text {
	w.runDuring(1)
	t := w.read(id, off)
	w.runDuring(1)
	return t
}

// check checks the counters and limits of the outbox.
func (d *simConn) check() {
	w := d.sim
	d.mu.Lock()
	defer d.mu.Unlock()
	size, urgent := 0, 0
	for _, it := range d.items {
		size += it.size
		if it.delta == nil {
			urgent++
		}
	}
	if size != d.bytes || urgent != d.urgent || size > w.opts.MaxBytes || len(d.items) > w.opts.MaxFrames {
		w.failf("%d items of %d bytes, counted %d, %d urgent, counted %d", len(d.items), size, d.bytes, urgent, d.urgent)
	}
	if len(d.gens) > len(w.replies) || d.ending != nil && d.gens != nil {
		w.failf("%d generations are kept", len(d.gens))
	}
}
