package server

import (
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"nodest/stream"
)

const (
	batchFrames = 200     // events of one batch
	batchBytes  = 256_000 // and about their size
)

// frames is the writing side of a connection; one goroutine at a time calls it.
type frames interface {
	write(items []*item) error
	// finish says goodbye; nothing is written after it.
	finish(code int, reason string)
}

// source is where the outbox gets what it did not keep.
type source interface {
	since(ctx context.Context, after, upTo int64, limit int) ([]*stream.Event, error)
	attach(ctx context.Context, generationID string, off int) (*attached, error)
}

// step is what the pump does next; the zero step is: nothing for now.
type step struct {
	items  []*item
	replay bool
	behind string // generation to bring up to date
	off    int
	ending *ending
}

// pump writes what waits until there is nothing to write now. It returns false
// when the connection has ended. Whoever calls it must have set o.writing.
func (o *outbox) pump(ctx context.Context, src source, w frames) bool {
	for {
		var err error
		switch s := o.next(); {
		case len(s.items) > 0:
			if err = w.write(s.items); err != nil {
				o.close(closeSlow, "slow_consumer", true)
			}
		case s.ending != nil:
			w.finish(s.ending.code, s.ending.reason)
			return false
		case s.replay:
			if err = o.replaySome(ctx, src); err != nil {
				o.close(closeInternal, "the event log cannot be read", true)
			}
		case s.behind != "":
			o.catchUp(ctx, src, s.behind, s.off)
		default:
			return true
		}
	}
}

// next takes what can be written, and sets writing to false when that is
// nothing.
func (o *outbox) next() step {
	o.mu.Lock()
	defer o.mu.Unlock()
	if items := o.take(time.Now()); len(items) > 0 {
		return step{items: items}
	}
	if o.ending != nil {
		return step{ending: o.ending}
	}
	if len(o.items) > 0 {
		o.writing = false
		o.wakeAt(o.items[0].delta.due)
		return step{}
	}
	if o.replays {
		return step{replay: true}
	}
	for id, g := range o.gens {
		if g.behind && !g.asked && !o.holding {
			return step{behind: id, off: g.next}
		}
	}
	o.writing = false
	return step{}
}

// take removes the items that can be written in one go.
func (o *outbox) take(now time.Time) []*item {
	batch := 1
	if o.batch {
		batch = batchFrames
	}
	n, size := 0, 0
	for n < len(o.items) && n < batch && (n == 0 || size+o.items[n].size <= batchBytes) {
		it := o.items[n]
		if it.delta != nil && o.hurried == 0 && o.ending == nil && now.Before(it.delta.due) {
			break
		}
		if it.delta == nil {
			o.hurried--
		} else {
			id := it.event.GenerationID
			if o.tails[id] == it {
				delete(o.tails, id)
			}
			if g := o.gens[id]; g != nil {
				g.sent = now
			}
		}
		size += it.size
		n++
	}
	if n == 0 {
		return nil
	}
	taken := append([]*item(nil), o.items[:n]...)
	rest := copy(o.items, o.items[n:])
	clear(o.items[rest:])
	o.items = o.items[:rest]
	if rest == 0 && cap(o.items) > 8 {
		o.items = nil // an idle connection keeps nothing
	}
	o.bytes -= size
	return taken
}

// wakeAt wakes the writer when a waiting delta is due.
func (o *outbox) wakeAt(at time.Time) {
	if o.timer == nil {
		o.timer = time.AfterFunc(time.Until(at), func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			if len(o.items) > 0 || o.ending != nil {
				o.stir()
			}
		})
		return
	}
	o.timer.Reset(time.Until(at))
}

// replaySome queues the next events of the log.
func (o *outbox) replaySome(ctx context.Context, src source) error {
	o.mu.Lock()
	after, upTo := o.pos, o.target
	o.mu.Unlock()
	events, err := src.since(ctx, after, upTo, batchFrames)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return errors.New("the event log ends before its newest event")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		return nil
	}
	size := 0
	for _, e := range events {
		if size > 0 && size+len(e.Data) > batchBytes {
			break // the rest is read again
		}
		size += len(e.Data) + itemOverhead
		o.pos = e.Seq
		o.putDurable(e)
	}
	o.replays = o.pos < o.target
	return nil
}

// catchUp sends a generation that the connection is behind with its text up to
// now.
func (o *outbox) catchUp(ctx context.Context, src source, generationID string, off int) {
	a, err := src.attach(ctx, generationID, max(off, 0))
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.gens[generationID]
	if g == nil || o.ending != nil {
		return
	}
	if err != nil || a.ended {
		delete(o.gens, generationID) // message.updated has the text
		return
	}
	if a.Text == "" || g.final { // nothing came since
		g.behind, g.missed = false, 0
		return
	}
	g.continueAt(a)
	o.put(&item{event: a.delta(), size: len(a.Text) + itemOverhead})
}

func (a *attached) end() int { return a.Off + utf8.RuneCountInString(a.Text) }

// delta is the text of a as an event.
func (a *attached) delta() *stream.Event {
	return &stream.Event{
		Type: deltaType, ConversationID: a.ConversationID, MessageID: a.MessageID, GenerationID: a.GenerationID,
		Off: a.Off, At: time.Now(), By: "server", Data: deltaData(a.Text, "text"),
	}
}

func deltaData(text, part string) json.RawMessage {
	b, err := json.Marshal(stream.Delta{Text: text, Part: part})
	if err != nil {
		return nil // strings can always be encoded
	}
	return b
}

// encoded is the frame of an item.
func (it *item) encoded() []byte {
	switch {
	case it.frame != nil:
		return it.frame
	case it.skip > 0:
		return skipFrame(it.skip)
	case it.delta != nil && it.delta.text != nil:
		e, d := it.event, it.delta
		merged := stream.Event{
			Type: deltaType, ConversationID: e.ConversationID, MessageID: e.MessageID, GenerationID: e.GenerationID,
			Off: d.off, At: e.At, By: e.By, Data: deltaData(string(d.text), d.part),
		}
		return merged.Frame()
	}
	return it.event.Frame()
}
