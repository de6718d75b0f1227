package server

import (
	"strconv"
	"sync"
	"time"

	"nodest/stream"
)

// outbox holds what waits to be sent to one connection, and decides what a slow
// one goes without. It is the stream.Sink of the connection: Deliver never
// blocks. One goroutine at a time empties it (pump).
//
// Bounded by bytes and frames, its fullness decides:
//
//	under 25 %: deltas wait as they came, or merged for deltaEvery
//	above 25 %: a delta is joined to the one of its generation that waits
//	above 75 %: deltas are dropped; gen.behind is told once, and when nothing
//	            waits any more one delta brings the text up to date
//	full:       the connection is closed; the client resumes by seq
//
// While events from the past are replayed, durable ones that happen now are read
// from the log in their turn.
type outbox struct {
	maxBytes, maxFrames int
	wake                func() // something may be written; called with mu held

	mu      sync.Mutex
	items   []*item
	bytes   int
	hurried int              // items that are not deltas: nothing before them may wait
	tails   map[string]*item // last item of each generation, where that is a delta
	gens    map[string]*genState
	filter  filter
	batch   bool // several items may be written as one frame
	midway  bool // deltas may begin in the middle of a text: this client cannot attach
	// deltaEvery is how often deltas of a generation are sent at most; 0 = as they come.
	deltaEvery time.Duration
	pos        int64 // durable events up to here were queued, replayed or left out
	target     int64 // while replaying: the replay goes on to here
	holding    bool  // nothing but replies is queued: hello is not answered yet
	replays    bool
	writing    bool // somebody pumps
	timer      *time.Timer
	ending     *ending
}

// ending says how a connection ends.
type ending struct {
	code   int
	reason string
}

// item is one frame that waits.
type item struct {
	event *stream.Event // nil for replies, skips and pings
	frame []byte        // of a reply
	skip  int64         // seq of a skip frame
	ping  bool
	delta *waitingDelta
	size  int
}

// waitingDelta is a delta that may still grow.
type waitingDelta struct {
	off, runes int
	part       string
	text       []byte // of more than one event; nil = the event's own
	due        time.Time
}

// genState is how far one generation was sent to the connection.
type genState struct {
	message string
	next    int // end of the text that was queued, in code points; -1 = nothing yet
	missed  int // end of the text that was dropped
	behind  bool
	asked   bool // the client attaches just now
	wanted  bool // the client attached: it gets the deltas whatever it subscribed to
	awaited bool // hello named it: its deltas begin when the client attaches
	final   bool // message.updated was seen and no delta after it
	sent    time.Time
}

const (
	itemOverhead = 160 // about what the frame of an event has beside its data, in bytes
	deltaType    = "gen.delta"
)

// Deliver takes an event of the stream.
func (o *outbox) Deliver(e *stream.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	if e.Durable() {
		o.durable(e)
	} else {
		o.transient(e)
	}
	o.stir()
}

func (o *outbox) durable(e *stream.Event) {
	o.note(e)
	if o.holding || o.replays {
		o.target = max(o.target, e.Seq)
		return
	}
	if e.Seq <= o.pos {
		return
	}
	o.pos = e.Seq
	o.putDurable(e)
}

// putDurable queues an event of the log, or a skip in its place.
func (o *outbox) putDurable(e *stream.Event) {
	if o.filter.passes(e) {
		o.put(&item{event: e, size: len(e.Data) + itemOverhead})
		return
	}
	if o.filter.silent {
		return
	}
	if n := len(o.items); n > 0 && o.items[n-1].skip > 0 {
		o.items[n-1].skip = e.Seq
		return
	}
	o.put(&item{skip: e.Seq, size: 40})
}

// note keeps track of the generations that the events tell of.
func (o *outbox) note(e *stream.Event) {
	switch e.Type {
	case "gen.started":
		o.state(e.GenerationID).message = e.MessageID
	case "gen.done", "gen.failed":
		delete(o.gens, e.GenerationID)
	case "message.updated":
		for _, g := range o.gens {
			if g.message == e.MessageID {
				g.final = true
			}
		}
	}
	if e.GenerationID != "" {
		delete(o.tails, e.GenerationID)
	}
}

func (o *outbox) state(generationID string) *genState {
	g := o.gens[generationID]
	if g == nil {
		if o.gens == nil {
			o.gens = map[string]*genState{}
		}
		g = &genState{next: -1}
		o.gens[generationID] = g
	}
	return g
}

func (o *outbox) transient(e *stream.Event) {
	switch e.Type {
	case deltaType:
		o.putDelta(e)
		return
	case "gen.rewind":
		o.rewind(e)
		return
	}
	if o.holding || o.replays || !o.filter.passes(e) {
		return
	}
	if g := o.gens[e.GenerationID]; g != nil && g.behind {
		return
	}
	delete(o.tails, e.GenerationID)
	o.put(&item{event: e, size: len(e.Data) + itemOverhead})
}

// putDelta queues a delta if it continues what the connection has. One that
// joined in the middle of a generation gets its deltas from gen.attach on.
func (o *outbox) putDelta(e *stream.Event) {
	d := e.Delta()
	if d.Runes == 0 {
		return
	}
	g, passes := o.gens[e.GenerationID], o.filter.passes(e)
	switch {
	case g == nil && (!passes || d.Part != "text" || (e.Off > 0 && !o.midway)):
		return
	case g == nil:
		g = o.state(e.GenerationID)
	case g.awaited:
		return
	case !passes && !g.wanted:
		delete(o.gens, e.GenerationID) // who wants it later attaches
		return
	}
	g.final = false
	if d.Part != "text" {
		if !o.holding && !o.replays && !g.behind && !g.asked {
			o.join(g, e, e.Off, d.Text, d.Runes)
		}
		return
	}
	off, text, end := e.Off, d.Text, e.Off+d.Runes
	switch {
	case o.holding || o.replays || g.behind || g.asked:
		g.miss(off, end)
		return
	case g.next >= 0 && end <= g.next:
		return // was in the text that gen.attach gave
	case g.next >= 0 && off > g.next:
		g.miss(off, end)
		return
	case g.next > off:
		text = fromRune(text, g.next-off)
		off = g.next
	}
	if o.fullness() > 75 {
		g.miss(off, end)
		o.put(&item{event: behindEvent(e), size: itemOverhead})
		return
	}
	g.next = end
	o.join(g, e, off, text, end-off)
}

// rewind lets the text of a generation go on at an earlier place.
func (o *outbox) rewind(e *stream.Event) {
	g := o.gens[e.GenerationID]
	if g != nil {
		g.next, g.missed = min(g.next, e.Off), min(g.missed, e.Off)
		delete(o.tails, e.GenerationID)
	}
	told := g != nil && !g.awaited && (g.wanted || o.filter.passes(e))
	if !o.holding && !o.replays && (told || g == nil && o.filter.passes(e)) {
		o.put(&item{event: e, size: itemOverhead})
	}
}

// miss marks text that the connection goes without for now.
func (g *genState) miss(off, end int) {
	if g.next < 0 {
		g.next = off
	}
	g.behind, g.missed = true, max(g.missed, end)
}

func behindEvent(e *stream.Event) *stream.Event {
	return &stream.Event{
		UserID: e.UserID, Type: "gen.behind", ConversationID: e.ConversationID, MessageID: e.MessageID,
		GenerationID: e.GenerationID, At: e.At, By: e.By,
	}
}

// join queues a delta, or adds it to the one of its generation that waits.
func (o *outbox) join(g *genState, e *stream.Event, off int, text string, runes int) {
	part := e.Delta().Part
	if t := o.tails[e.GenerationID]; t != nil && t.delta.part == part && t.delta.off+t.delta.runes == off &&
		(o.deltaEvery > 0 || o.fullness() > 25) {
		t.delta.add(t.event, text, runes)
		t.size += len(text)
		o.bytes += len(text)
		o.overflow()
		return
	}
	w := &waitingDelta{off: off, runes: runes, part: part}
	if off != e.Off {
		w.text = []byte(text)
	}
	if o.deltaEvery > 0 {
		w.due = g.sent.Add(o.deltaEvery)
	}
	it := &item{event: e, delta: w, size: len(text) + itemOverhead}
	if o.tails == nil {
		o.tails = map[string]*item{}
	}
	o.tails[e.GenerationID] = it
	o.put(it)
}

func (w *waitingDelta) add(first *stream.Event, text string, runes int) {
	if w.text == nil {
		w.text = append(make([]byte, 0, 256), first.Delta().Text...)
	}
	w.text = append(w.text, text...)
	w.runes += runes
}

// fromRune is s without its first n code points.
func fromRune(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

// put queues an item. A very large one counts as half of what may wait: it must
// go out, and what follows it too.
func (o *outbox) put(it *item) {
	it.size = min(it.size, o.maxBytes/2)
	o.items = append(o.items, it)
	o.bytes += it.size
	if it.delta == nil {
		o.hurried++
	}
	o.overflow()
}

// overflow closes the connection when too much waits.
func (o *outbox) overflow() {
	if o.bytes > o.maxBytes || len(o.items) > o.maxFrames {
		o.drop()
		o.end(closeSlow, "slow_consumer")
	}
}

// fullness is in percent of what may wait.
func (o *outbox) fullness() int {
	return max(o.bytes*100/o.maxBytes, len(o.items)*100/o.maxFrames)
}

// reply queues the answer to a command.
func (o *outbox) reply(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending == nil {
		o.put(&item{frame: frame, size: len(frame)})
		o.stir()
	}
}

// ping queues a ping, unless one waits already.
func (o *outbox) ping() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil || len(o.items) > 0 {
		return // what waits shows life as well
	}
	o.put(&item{ping: true})
	o.stir()
}

// tell queues an event for this connection alone.
func (o *outbox) tell(e *stream.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending == nil {
		o.put(&item{event: e, size: len(e.Data) + itemOverhead})
		o.stir()
	}
}

// close ends the connection after what waits was sent; at once leaves it out.
func (o *outbox) close(code int, reason string, atOnce bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	if atOnce {
		o.drop()
	}
	o.end(code, reason)
	o.stir()
}

func (o *outbox) end(code int, reason string) {
	if o.ending == nil {
		o.ending = &ending{code, reason}
	}
	o.gens, o.tails = nil, nil
	if o.timer != nil {
		o.timer.Stop()
	}
}

func (o *outbox) drop() {
	o.items, o.bytes, o.hurried = nil, 0, 0
	o.tails = nil
}

// ended says whether the connection is about to end.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending != nil
}

// tune sets what hello agreed.
func (o *outbox) tune(f filter, batch bool, deltaEvery time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.filter, o.batch, o.deltaEvery = f, batch, deltaEvery
}

// mid lets deltas begin in the middle of a text.
func (o *outbox) mid() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.midway = true
}

func (o *outbox) batching() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.batch
}

// subscribe changes the conversations whose deltas are wanted.
func (o *outbox) subscribe(ids []string, add bool) (named []string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.filter.subscribe(ids, add)
}

// begin lets events through: those after pos from the log, then the live ones.
// first is written before any of them; it names the running generations, whose
// deltas begin when the client attaches.
func (o *outbox) begin(first []byte, pos, newest int64, running ...activeText) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	if first != nil {
		o.put(&item{frame: first, size: len(first)})
	}
	for _, a := range running {
		*o.state(a.GenerationID) = genState{next: -1, message: a.MessageID, awaited: true}
	}
	o.holding = false
	o.pos, o.target = pos, max(o.target, newest)
	o.replays = o.pos < o.target
	o.stir()
}

// ask prepares for gen.attach: deltas of the generation are held back until
// answered. It returns whether the generation was known before.
func (o *outbox) ask(generationID string) (known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return false
	}
	_, known = o.gens[generationID]
	g := o.state(generationID)
	g.asked, g.awaited = true, false
	return known
}

// answered queues the reply to gen.attach and the text, and lets the deltas
// after it through. a is nil when attaching failed.
func (o *outbox) answered(generationID string, known bool, reply []byte, a *attached) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return
	}
	if reply != nil {
		o.put(&item{frame: reply, size: len(reply)})
	}
	o.resume(generationID, known, a)
	o.stir()
}

func (o *outbox) resume(generationID string, known bool, a *attached) {
	g := o.gens[generationID]
	if g == nil {
		return // it ended meanwhile: message.updated has the text
	}
	g.asked = false
	if a == nil || a.ended {
		if !known || a != nil {
			delete(o.gens, generationID)
		}
		return
	}
	g.message, g.wanted = a.MessageID, true
	g.continueAt(a)
	delete(o.tails, generationID)
	if a.Text != "" {
		o.put(&item{event: a.delta(), size: len(a.Text) + itemOverhead})
	}
}

// continueAt says that the connection has the text up to the end of a.
func (g *genState) continueAt(a *attached) {
	g.next = a.end()
	g.behind = g.missed > g.next
}

// busy says that somebody is about to pump.
func (o *outbox) busy() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = true
}

// stir wakes the writer.
func (o *outbox) stir() {
	if !o.writing {
		o.wake()
	}
}

func skipFrame(seq int64) []byte {
	return append(strconv.AppendInt([]byte(`{"ev":"skip","seq":`), seq, 10), '}')
}
