// Package outbox is the send queue of one connection: it decides what is sent,
// in which order, and what a slow client misses for a while.
//
// An Outbox is the stream.Sink of its connection. Deliver never blocks; one
// goroutine at a time writes the queue (Pump). The queue is bounded by bytes
// and frames. How full it is determines what happens to the text of generations:
//
//	under 25 %: deltas are queued as they arrive, or merged for Settings.DeltaEvery
//	above 25 %: a delta is merged into its generation's queued delta
//	above 75 %: deltas are dropped; gen.behind is sent once, and when the queue
//	            is empty one delta brings the text up to date
//	full:       the connection is closed; the client resumes by seq
//
// Durable events are never dropped. Events that occur during a replay are read from
// the log in their turn. generation.go has the state machine that tracks how much of
// each generation was sent.
package outbox

import (
	"strconv"
	"sync"
	"time"

	"nodest/internal/stream"
)

// Options are fixed for the life of an Outbox.
type Options struct {
	MaxBytes, MaxFrames int    // bounds of the queue
	Wake                func() // starts one Pump; called with the outbox locked
	Slow                Close  // how a connection ends that is too slow
	Unreadable          Close  // how it ends when the event log cannot be read
}

// Settings are what the client chose.
type Settings struct {
	Filter     Filter
	Batch      bool          // several items may be written as one frame
	DeltaEvery time.Duration // how often deltas of a generation are sent at most; 0 = as they come
	Midway     bool          // deltas may begin in the middle of a text: this client cannot attach
}

// Close says how a connection ends.
type Close struct {
	Code   int
	Reason string
}

// Outbox is the send queue of one connection. It is safe for concurrent use.
type Outbox struct {
	opts Options

	mu        sync.Mutex
	set       Settings
	items     []*Item
	bytes     int
	urgent    int // items that are not deltas: nothing before them may wait
	gens      map[string]*generation
	attaching *generation     // its text is being read for gen.attach
	pos       int64           // durable events up to here were queued, replayed or left out
	target    int64           // the replay ends here
	ahead     []*stream.Event // events of the log, read for the replay and not queued yet
	holding   bool            // until Begin nothing but replies is queued
	replaying bool
	writing   bool // Wake was called, and Pump has not run out of work since
	timer     *time.Timer
	ending    *Close
}

// New returns an outbox that holds events back until Begin.
func New(opts Options) *Outbox { return &Outbox{opts: opts, holding: true} }

// Item is one frame that waits.
type Item struct {
	Event *stream.Event // nil for replies, skips and pings
	Skip  int64         // seq of a skip frame
	Ping  bool

	reply []byte
	delta *waitingDelta
	size  int
}

// itemOverhead is about what the frame of an event has beside its data, in bytes.
const itemOverhead = 160

// JSON is the frame of an item that is not a ping.
func (it *Item) JSON() []byte {
	switch {
	case it.reply != nil:
		return it.reply
	case it.Skip > 0:
		return append(strconv.AppendInt([]byte(`{"ev":"skip","seq":`), it.Skip, 10), '}')
	case it.delta != nil && it.delta.text != nil:
		e := copyOf(it.Event)
		e.Off = it.delta.off
		e.Say(string(it.delta.text), it.delta.part)
		return e.Frame()
	}
	return it.Event.Frame()
}

// Deliver takes an event of the stream.
func (o *Outbox) Deliver(e *stream.Event) {
	o.locked(func() {
		if e.Durable() {
			o.durable(e)
		} else {
			o.transient(e)
		}
	})
}

// Reply queues the answer to a command.
func (o *Outbox) Reply(frame []byte) {
	o.locked(func() { o.putReply(frame) })
}

// Tell queues an event for this connection alone.
func (o *Outbox) Tell(e *stream.Event) {
	o.locked(func() { o.putEvent(e) })
}

// Ping queues a ping, unless something waits that shows life as well.
func (o *Outbox) Ping() {
	o.locked(func() {
		if len(o.items) == 0 {
			o.put(&Item{Ping: true})
		}
	})
}

// Close ends the connection after what waits was sent; at once drops it.
func (o *Outbox) Close(code int, reason string, atOnce bool) {
	o.locked(func() { o.end(Close{code, reason}, atOnce) })
}

// Configure sets what the client chose.
func (o *Outbox) Configure(s Settings) {
	o.locked(func() { o.set = s })
}

// Subscribe changes the conversations whose deltas are wanted: see
// Filter.subscribe.
func (o *Outbox) Subscribe(ids []string, add bool) (named []string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.set.Filter.subscribe(ids, add)
}

// Batching says whether the client agreed to batches.
func (o *Outbox) Batching() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.set.Batch
}

// Ended says whether the connection is about to end.
func (o *Outbox) Ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ending != nil
}

// Begin lets events through: those after pos from the log, then the live ones.
// first is written before any of them. Deltas of the running generations that it
// names begin when the client attaches.
func (o *Outbox) Begin(first []byte, pos, newest int64, running ...Text) {
	o.locked(func() {
		o.putReply(first)
		for _, t := range running {
			g := newGeneration(t.GenerationID)
			g.message = t.MessageID
			o.on(g, named, nil)
		}
		o.holding = false
		o.pos, o.target = pos, max(o.target, newest)
		o.replaying = o.pos < o.target
	})
}

// locked runs f unless the connection has ended, and wakes the writer.
func (o *Outbox) locked(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending == nil {
		f()
		o.wake()
	}
}

func (o *Outbox) wake() {
	if !o.writing {
		o.writing = true
		o.opts.Wake()
	}
}

// gated says that nothing but replies is sent: before Begin and while the past is
// replayed.
func (o *Outbox) gated() bool { return o.holding || o.replaying }

func (o *Outbox) durable(e *stream.Event) {
	o.note(e)
	if o.gated() {
		o.target = max(o.target, e.Seq)
	} else if e.Seq > o.pos {
		o.putDurable(e)
	}
}

// putDurable queues an event of the log, or a skip in its place.
func (o *Outbox) putDurable(e *stream.Event) {
	o.pos = e.Seq
	if o.set.Filter.passes(e) {
		o.putEvent(e)
		return
	}
	if o.set.Filter.Silent {
		return
	}
	if n := len(o.items); n > 0 && o.items[n-1].Skip > 0 {
		o.items[n-1].Skip = e.Seq
		return
	}
	o.put(&Item{Skip: e.Seq, size: 40})
}

func (o *Outbox) putReply(frame []byte) {
	if frame != nil {
		o.put(&Item{reply: frame, size: len(frame)})
	}
}

func (o *Outbox) putEvent(e *stream.Event) {
	o.put(&Item{Event: e, size: e.Size() + itemOverhead})
}

// put queues an item. A very large one counts as half of what may wait: it must
// be sent, and what follows it too.
func (o *Outbox) put(it *Item) {
	if o.ending != nil {
		return // the queue has just become too full
	}
	it.size = min(it.size, o.opts.MaxBytes/2)
	o.items = append(o.items, it)
	o.bytes += it.size
	if it.delta == nil {
		o.urgent++
	}
	o.bound()
}

// bound closes the connection when too much waits.
func (o *Outbox) bound() {
	if o.bytes > o.opts.MaxBytes || len(o.items) > o.opts.MaxFrames {
		o.end(o.opts.Slow, true)
	}
}

// fullness is in percent of what may wait.
func (o *Outbox) fullness() int {
	return max(o.bytes*100/o.opts.MaxBytes, len(o.items)*100/o.opts.MaxFrames)
}

func (o *Outbox) end(c Close, atOnce bool) {
	if atOnce {
		o.items, o.bytes, o.urgent = nil, 0, 0
	}
	o.ending, o.gens = &c, nil
	if o.timer != nil {
		o.timer.Stop()
	}
}
