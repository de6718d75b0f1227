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

	"nodest/stream"
)

// world is a user's log, an engine that writes replies, a hub that delivers late,
// and a client that believes what it is sent and complains when it cannot.
type world struct {
	t       testing.TB
	out     *driven
	opts    Options
	set     Settings
	exact   bool // text is never taken back: the client always has a beginning of it
	replies []*said
	log     []*stream.Event
	hub     []*stream.Event // published, not delivered yet
	joined  bool
	begun   bool

	attaching bool
	last      int64  // the client's position in the log
	within    []deed // happen while the connection writes or reads
	sent      []string
	closed    int
	pings     int
}

// said is a reply: as the engine has it, and as the client has it.
type said struct {
	id, conversation, message string
	state                     int // 0 = not begun, 1 = running, 2 = ended
	text                      []rune

	has      []rune
	mid      bool // the client waits for its first delta, wherever it begins
	awaits   bool // hello named it: no delta before the client attaches
	loose    bool // the client unsubscribed: it may have missed some
	attached bool
	over     bool // its end was seen
}

// deed is one thing that happens.
type deed struct {
	what   string
	n      int
	within []deed
}

func newWorld(t testing.TB, opts Options, set Settings) *world {
	w := &world{t: t, opts: opts, set: set}
	for i := range 3 {
		w.replies = append(w.replies, &said{
			id: fmt.Sprint("g", i), message: fmt.Sprint("m", i), conversation: fmt.Sprint("c", i%2),
		})
	}
	w.out = &driven{w: w}
	opts.Wake = func() { w.out.woken = true }
	w.out.Outbox = New(opts)
	return w
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format+"\nsent: %s", append(args, strings.Join(w.sent[max(0, len(w.sent)-12):], "\n      "))...)
}

func (w *world) publish(e *stream.Event, durable bool, r *said) {
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
	w.hub = append(w.hub, e)
}

func (w *world) flush(n int) {
	for ; n > 0 && len(w.hub) > 0; n-- {
		e := w.hub[0]
		w.hub = w.hub[1:]
		if w.joined {
			w.out.Deliver(e)
		}
	}
}

func (w *world) do(d deed) {
	r := w.replies[d.n%len(w.replies)]
	n := d.n / len(w.replies)
	durable := func(kind string, of *said, size int) {
		w.publish(&stream.Event{Type: kind, Data: []byte(`{"x":"` + strings.Repeat("x", size) + `"}`)}, true, of)
	}
	switch d.what {
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
	case "edit": // somebody changes the message while it is written
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
		w.within = d.within
		w.out.drain()
		w.happen(len(w.within))
	case "attach", "fail":
		w.attach(r, d, n)
	case "subscribe", "unsubscribe":
		if _, ok := w.out.Subscribe([]string{r.conversation}, d.what == "subscribe"); !ok {
			w.failf("cannot %s", d.what)
		}
		for _, r := range w.replies {
			r.loose = r.loose || !r.attached
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
			w.speak(r, d.what, n)
		}
	}
}

// speak is what a running generation does.
func (w *world) speak(r *said, what string, n int) {
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

func (w *world) attach(r *said, d deed, n int) {
	if !w.begun || w.closed != 0 || w.attaching {
		return
	}
	if r.loose {
		r.has = nil // it cannot tell what was taken back meanwhile
	}
	w.attaching = true
	defer func() { w.attaching = false }()
	first := n % (len(d.within) + 1)
	w.out.Attach(r.id, func() ([]byte, *Text) {
		w.within = d.within
		w.happen(first)
		t := w.read(r.id, len(r.has))
		w.happen(len(w.within))
		if d.what == "fail" || r.state == 0 {
			return []byte(`{"id":"failed"}`), nil
		}
		frame, _ := json.Marshal(map[string]any{"id": r.id, "off": t.Off, "running": !t.Ended})
		return frame, t
	})
}

// happen does the next n things that happen meanwhile.
func (w *world) happen(n int) {
	for ; n > 0 && len(w.within) > 0; n-- {
		d := w.within[0]
		w.within = w.within[1:]
		w.do(d)
	}
}

func (w *world) read(id string, off int) *Text {
	i := slices.IndexFunc(w.replies, func(r *said) bool { return r.id == id })
	r := w.replies[i]
	off = min(off, len(r.text))
	return &Text{
		GenerationID: r.id, ConversationID: r.conversation, MessageID: r.message,
		Off: off, Text: string(r.text[off:]), Ended: r.state == 2,
	}
}

// begin connects the client: it has a part of what was said and of the log.
func (w *world) begin(n int) {
	w.begun = true
	var running []Text
	for _, r := range w.replies {
		r.loose = w.set.Filter.Chats != nil && !w.set.Filter.Chats[r.conversation]
		switch {
		case w.set.Midway:
			r.mid = r.state > 0
		case r.state == 1:
			r.has, r.awaits = slices.Clone(r.text[:n%(len(r.text)+1)]), true
			running = append(running, *w.read(r.id, 0))
		case r.state == 2:
			r.loose = true // the client has loaded its message
		}
	}
	w.last = int64(n % (len(w.log) + 1))
	w.out.Begin([]byte(`{"id":"hello"}`), w.last, int64(len(w.log)), running...)
}

// frames is what the client is sent.
func (w *world) frames(list []string) {
	for _, frame := range list {
		w.sent = append(w.sent, frame)
		w.take(frame)
	}
	w.happen(1)
}

func (w *world) take(frame string) {
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
		case f.ID == r.id && !f.Running: // it has ended, and the reply has its text
			r.loose = true
		case f.ID == r.id && f.Off > len(r.has): // text was taken back since it asked: it asks again
			r.attached, r.awaits, r.loose = true, false, true
		case f.ID == r.id: // gen.attach was answered
			r.has = r.has[:f.Off]
			r.attached, r.awaits, r.loose, r.mid = true, false, false, false
		case f.GenerationID != r.id:
		case f.Ev == "gen.done" || f.Ev == "gen.failed":
			r.over = true
		case f.Ev == "gen.rewind":
			r.has = r.has[:min(len(r.has), f.Off)]
		case f.Ev == "gen.delta" && f.Data.Part == "text":
			w.delta(r, f.Off, []rune(f.Data.Text))
		}
	}
}

// durable checks that no event of the log that the client wants was left out or
// sent again.
func (w *world) durable(seq int64, kind string) {
	if seq <= w.last || seq > int64(len(w.log)) {
		w.failf("position %d after %d", seq, w.last)
	}
	for _, e := range w.log[w.last : seq-1] {
		if w.set.Filter.passes(e) || !w.set.Filter.Silent && kind != "skip" {
			w.failf("%s at %d was left out", e.Type, e.Seq)
		}
	}
	if passes := w.set.Filter.passes(w.log[seq-1]); passes == (kind == "skip") {
		w.failf("%s for %s", kind, w.log[seq-1].Type)
	}
	w.last = seq
}

func (w *world) delta(r *said, off int, text []rune) {
	if r.mid {
		r.has, r.mid = make([]rune, off), false
		copy(r.has, r.text)
	}
	if off != len(r.has) && r.loose {
		return // the client attaches if it wants the rest
	}
	if r.awaits || r.over || off != len(r.has) {
		w.failf("%s at %d, client has %d (awaits %v, over %v)", r.id, off, len(r.has), r.awaits, r.over)
	}
	r.has = append(r.has, text...)
	if w.exact && !strings.HasPrefix(string(r.text), string(r.has)) {
		w.failf("%s: %q is not a beginning of %q", r.id, string(r.has), string(r.text))
	}
}

// settle lets everything arrive, and checks that the client knows it.
func (w *world) settle() {
	quiet := func() {
		for range 3 {
			w.flush(len(w.hub))
			w.out.drain()
			time.Sleep(time.Minute) // virtual
			synctest.Wait()
		}
	}
	quiet()
	w.upToDate()
	if w.closed != 0 || w.set.Midway {
		return
	}
	for i, r := range w.replies {
		if r.state == 1 && (r.awaits || r.loose) {
			w.attach(r, deed{what: "attach"}, i)
		}
	}
	quiet()
	w.upToDate()
}

func (w *world) upToDate() {
	if w.closed != 0 {
		return
	}
	skipped := w.set.Filter.Silent || w.last == int64(len(w.log))
	if !skipped {
		w.failf("the client is at %d, the log at %d", w.last, len(w.log))
	}
	for _, r := range w.replies {
		if r.state == 1 && !r.awaits && !r.loose && !r.mid && string(r.has) != string(r.text) {
			w.failf("%s: the client has %q, the text is %q", r.id, string(r.has), string(r.text))
		}
	}
}

// story is a random sequence of deeds; the words are those that may happen.
func story(rng *rand.Rand, length int, words []string, within []string) []deed {
	list := make([]deed, length)
	for i := range list {
		list[i] = deed{what: words[rng.IntN(len(words))], n: rng.IntN(10_000)}
		if len(within) > 0 && slices.Contains([]string{"drain", "attach", "fail"}, list[i].what) {
			list[i].within = story(rng, rng.IntN(4), within, nil)
		}
	}
	return list
}

// play lets a story happen around the client's hello.
func (w *world) play(rng *rand.Rand, before, between, after []deed) {
	for _, d := range before {
		w.do(d)
	}
	w.flush(rng.IntN(len(w.hub) + 1))
	w.joined = true
	w.out.Configure(w.set)
	for _, d := range between {
		w.do(d)
		w.out.check()
	}
	w.begin(rng.IntN(10_000))
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

// driven is an Outbox whose pump runs when the world says so.
type driven struct {
	*Outbox
	w     *world
	woken bool
}

func (d *driven) drain() {
	d.mu.Lock() // the timer wakes it, too
	woken := d.woken
	d.woken = false
	d.mu.Unlock()
	if woken {
		d.Pump(context.Background(), d)
	}
}

func (d *driven) Write(items []*Item) error {
	var list []string
	for _, it := range items {
		if it.Ping {
			list = append(list, "ping")
		} else {
			list = append(list, string(it.JSON()))
		}
	}
	d.w.frames(list)
	return nil
}

func (d *driven) Finish(code int, _ string) { d.w.closed = code }

func (d *driven) Since(_ context.Context, after, upTo int64, limit int) ([]*stream.Event, error) {
	d.w.happen(1)
	return d.w.since(after, upTo, limit), nil
}

func (w *world) since(after, upTo int64, limit int) []*stream.Event {
	return w.log[after:min(upTo, after+int64(limit))]
}

func (d *driven) Text(_ context.Context, id string, off int) (*Text, error) {
	return d.w.text(id, off), nil
}

// text is read by the connection, while other things happen.
func (w *world) text(id string, off int) *Text {
	w.happen(1)
	t := w.read(id, off)
	w.happen(1)
	return t
}

// check holds the outbox against its bounds.
func (d *driven) check() {
	w := d.w
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
