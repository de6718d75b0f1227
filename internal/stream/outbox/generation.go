package outbox

import (
	"math"
	"time"
	"unicode/utf8"

	"nodest/internal/stream"
)

// generation is how far the text of one generation was sent to the connection.
type generation struct {
	id, message string
	phase       phase
	next        int   // end of the text that was queued, in code points; -1 = nothing yet
	missed      int   // end of the text that was dropped
	attached    bool  // the client attached: it gets the deltas whatever it subscribed to
	version     int   // changes when text that was read before is outdated
	tail        *Item // its last item, where that is a delta
	sent        time.Time
}

func newGeneration(id string) *generation {
	return &generation{id: id, phase: unknown, next: -1}
}

// phase of a generation, as the connection sees it.
type phase uint8

const (
	same     phase = iota // in transitions only: the phase does not change
	unknown               // nothing of it was sent; it is not kept
	awaiting              // its deltas begin when the client has attached
	live                  // its deltas are queued as they come
	behind                // text was dropped: it is caught up with when the queue is empty
	final                 // behind, but message.updated with the whole text was queued since
	phases
)

// event is what happens to a generation.
type event uint8

const (
	started event = iota // gen.started
	text                 // a delta that continues what was queued
	full                 // the same, but the queue is too full for it
	held                 // a delta that comes while deltas are held back
	gap                  // a delta whose text begins after what was queued
	lost                 // a delta of a conversation that is not subscribed, or its text cannot be read: the client attaches if it wants the rest
	part                 // a delta that is not text: reasoning, a tagged block
	aside                // another short-lived event: gen.block, gen.stage, gen.tool
	rewound              // gen.rewind
	updated              // message.updated
	ended                // gen.done or gen.failed
	named                // hello named it as running
	reached              // its text was read and queued, with all that was dropped
	short                // the same, but more was dropped since
	current              // nothing needs to be sent: message.updated has the text, or will have it
	events
)

type transition struct {
	to phase
	do func(*Outbox, *generation, *stream.Event)
}

// transitions says what each event does in each phase. Where nothing is said,
// nothing changes.
var transitions = [events][phases]transition{
	started: {unknown: {live, start}, awaiting: {same, start}, live: {same, start}, behind: {same, start}, final: {same, start}},

	text: {unknown: {live, queue}, awaiting: {same, miss}, live: {same, queue}, behind: {same, miss}, final: {behind, miss}},
	full: {unknown: {behind, fallBehind}, awaiting: {same, miss}, live: {behind, fallBehind}, behind: {same, miss}, final: {behind, miss}},
	held: {unknown: {behind, miss}, awaiting: {same, miss}, live: {behind, miss}, behind: {same, miss}, final: {behind, miss}},
	gap:  {unknown: {same, miss}, awaiting: {same, miss}, live: {behind, miss}, behind: {same, miss}, final: {behind, miss}},

	lost:    {live: {unknown, nil}, behind: {unknown, nil}, final: {unknown, nil}},
	part:    {live: {same, queue}, final: {behind, nil}},
	aside:   {unknown: {same, pass}, awaiting: {same, pass}, live: {same, pass}},
	rewound: {unknown: {same, rewind}, awaiting: {same, rewind}, live: {same, rewind}, behind: {same, rewind}, final: {same, rewind}},

	updated: {behind: {final, nil}},
	ended:   {unknown: {same, leave}, awaiting: {unknown, leave}, live: {unknown, leave}, behind: {unknown, leave}, final: {unknown, leave}},

	named:   {unknown: {awaiting, nil}},
	reached: {unknown: {live, nil}, awaiting: {live, nil}, behind: {live, nil}, final: {live, nil}},
	short:   {unknown: {behind, nil}, awaiting: {behind, nil}, live: {behind, nil}},
	current: {behind: {live, settle}, final: {live, settle}},
}

// on lets an event happen to a generation. e is what is queued or read by the
// action.
func (o *Outbox) on(g *generation, ev event, e *stream.Event) {
	t := transitions[ev][g.phase]
	if t.do != nil {
		t.do(o, g, e)
	}
	if t.to == same || o.ending != nil {
		return
	}
	if g.phase = t.to; g.phase == unknown {
		delete(o.gens, g.id)
		return
	}
	if o.gens == nil {
		o.gens = map[string]*generation{}
	}
	o.gens[g.id] = g
}

func start(_ *Outbox, g *generation, e *stream.Event) { g.message = e.MessageID }

// miss drops text until the queue is empty.
func miss(_ *Outbox, g *generation, e *stream.Event) {
	if g.next < 0 {
		g.next = e.Off
	}
	g.missed = max(g.missed, e.Off+e.Delta().Runes)
}

// fallBehind drops text until the queue is empty, and tells the client.
func fallBehind(o *Outbox, g *generation, e *stream.Event) {
	miss(o, g, e)
	b := copyOf(e)
	b.Type = "gen.behind"
	o.putEvent(b)
}

func pass(o *Outbox, g *generation, e *stream.Event) {
	g.tail = nil
	o.putEvent(e)
}

// rewind lets the text go on at an earlier place.
func rewind(o *Outbox, g *generation, e *stream.Event) {
	g.next, g.missed = min(g.next, e.Off), min(g.missed, e.Off)
	g.version++
	g.tail = nil
	had := g.attached || g.phase == awaiting || o.attaching == g // the client may have what is taken back
	if o.wants(g, e) && (had || !o.gated()) {
		o.putEvent(e)
	}
}

// leave lets the answer to gen.attach be the last that is sent of it.
func leave(o *Outbox, g *generation, _ *stream.Event) {
	if o.attaching == g {
		o.attaching = nil
	}
}

func settle(_ *Outbox, g *generation, _ *stream.Event) { g.missed = 0 }

// queue queues a delta, without what the connection has already.
func queue(o *Outbox, g *generation, e *stream.Event) {
	d := e.Delta()
	off, text, runes := e.Off, d.Text, d.Runes
	if d.Part == "text" {
		if known := g.next - off; known > 0 {
			off, text, runes = g.next, fromRune(text, known), runes-known
		}
		g.next = off + runes
	}
	if t := g.tail; t != nil && t.delta.part == d.Part && t.delta.off+t.delta.runes == off &&
		(o.set.DeltaEvery > 0 || o.fullness() > 25) {
		t.delta.add(t.Event, text, runes)
		t.size += len(text)
		o.bytes += len(text)
		o.bound()
		return
	}
	w := &waitingDelta{of: g, off: off, runes: runes, part: d.Part}
	if off != e.Off {
		w.text = []byte(text)
	}
	if o.set.DeltaEvery > 0 {
		w.due = g.sent.Add(o.set.DeltaEvery)
	}
	g.tail = &Item{Event: e, delta: w, size: len(text) + itemOverhead}
	o.put(g.tail)
}

// waitingDelta is a delta that may still grow.
type waitingDelta struct {
	of         *generation
	off, runes int
	part       string
	text       []byte // text of more than one event; nil = the event's own
	due        time.Time
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

// generation returns what is known of a generation.
func (o *Outbox) generation(id string) *generation {
	if g := o.attaching; g != nil && g.id == id {
		return g
	}
	if g := o.gens[id]; g != nil {
		return g
	}
	return newGeneration(id)
}

// note keeps track of the generations that durable events are about.
func (o *Outbox) note(e *stream.Event) {
	switch e.Type {
	case "gen.started":
		o.on(o.generation(e.GenerationID), started, e)
	case "gen.done", "gen.failed":
		o.on(o.generation(e.GenerationID), ended, e)
	case "message.updated":
		for _, g := range o.gens {
			if g.message == e.MessageID {
				o.on(g, updated, e)
			}
		}
	}
	if g := o.gens[e.GenerationID]; g != nil {
		g.tail = nil
	}
}

func (o *Outbox) transient(e *stream.Event) {
	g := o.generation(e.GenerationID)
	switch {
	case e.Type == "gen.delta":
		o.delta(g, e)
	case e.Type == "gen.rewind":
		o.on(g, rewound, e)
	case !o.gated() && o.set.Filter.passes(e):
		o.on(g, aside, e)
	}
}

// delta says what a delta is to the connection.
func (o *Outbox) delta(g *generation, e *stream.Event) {
	d := e.Delta()
	holds := o.gated() || o.attaching == g
	switch {
	case d.Runes == 0:
	case !o.wants(g, e):
		o.on(g, lost, e)
	case d.Part != "text":
		if !holds {
			o.on(g, part, e)
		}
	case o.begins(g) < e.Off:
		o.on(g, gap, e)
	case holds:
		o.on(g, held, e)
	case e.Off+d.Runes <= g.next: // the client has it
	case o.fullness() > 75:
		o.on(g, full, e)
	default:
		o.on(g, text, e)
	}
}

// wants says whether the connection gets the deltas of a generation.
func (o *Outbox) wants(g *generation, e *stream.Event) bool {
	return g.attached || o.attaching == g || o.set.Filter.passes(e)
}

// begins is where the next delta of a generation must begin at the latest.
func (o *Outbox) begins(g *generation) int {
	switch {
	case g.next >= 0:
		return g.next
	case g.phase == unknown && !o.set.Midway:
		return 0
	}
	return math.MaxInt
}

// Text is a generation and its text from Off on, which counts code points.
type Text struct {
	GenerationID, ConversationID, MessageID string

	Off   int
	Text  string
	Ended bool
}

func (t *Text) end() int { return t.Off + utf8.RuneCountInString(t.Text) }

// Delta is the text as an event.
func (t *Text) Delta() *stream.Event {
	e := &stream.Event{
		ConversationID: t.ConversationID, MessageID: t.MessageID, GenerationID: t.GenerationID,
		Off: t.Off, At: time.Now(), By: "server",
	}
	e.Say(t.Text, "text")
	return e
}

// copyOf is an event of the same generation, without payload.
func copyOf(e *stream.Event) *stream.Event {
	return &stream.Event{
		UserID: e.UserID, Type: e.Type, ConversationID: e.ConversationID, MessageID: e.MessageID,
		GenerationID: e.GenerationID, At: e.At, By: e.By,
	}
}

// Attach answers gen.attach: it queues the reply and the text that read returns,
// and lets the deltas after it through; meanwhile they are held back. A nil text
// says that attaching failed. read is called again if the text was rewound while
// it was read. A connection attaches to one generation at a time.
func (o *Outbox) Attach(id string, read func() (reply []byte, t *Text)) {
	for {
		g, version := o.hold(id)
		reply, t := read()
		if o.answer(g, version, reply, t) {
			return
		}
	}
}

// hold holds the deltas of a generation back.
func (o *Outbox) hold(id string) (g *generation, version int) {
	o.locked(func() {
		g = o.generation(id)
		o.attaching, version = g, g.version
	})
	return g, version
}

func (o *Outbox) answer(g *generation, version int, reply []byte, t *Text) (done bool) {
	done = true
	o.locked(func() {
		if o.attaching != nil && t != nil && g.version != version {
			done = false
			return
		}
		over := o.attaching == nil
		o.attaching = nil
		o.putReply(reply)
		switch {
		case t == nil || over: // attaching failed, or it ended meanwhile: message.updated has the text
		case t.Ended: // the reply has the text; its last events are still to come, if it is kept
			g.next = t.end()
			o.on(g, current, nil)
		default:
			g.message, g.attached = t.MessageID, true
			o.give(g, t)
		}
	})
	return done
}

// give queues text that was read: the connection has the text up to its end.
func (o *Outbox) give(g *generation, t *Text) {
	g.next = t.end()
	g.version++
	g.tail = nil
	if t.Text != "" {
		o.putEvent(t.Delta())
	}
	if g.missed > g.next {
		o.on(g, short, nil)
	} else {
		o.on(g, reached, nil)
	}
}
