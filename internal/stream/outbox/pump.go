package outbox

import (
	"context"
	"errors"
	"time"

	"nodest/internal/stream"
)

const (
	batchFrames = 200     // events of one batch
	batchBytes  = 256_000 // and about their size
)

// Conn is the connection, and where the outbox reads what it did not keep.
type Conn interface {
	// Write sends items; one goroutine at a time calls it.
	Write(items []*Item) error
	// Finish ends the connection; nothing is written after it.
	Finish(code int, reason string)
	// Since returns events of the log with after < seq <= upTo, in order.
	Since(ctx context.Context, after, upTo int64, limit int) ([]*stream.Event, error)
	// Text returns the text of a generation from an offset on.
	Text(ctx context.Context, generationID string, off int) (*Text, error)
}

// step is what Pump does next; the zero step is: nothing for now.
type step struct {
	items   []*Item
	ending  *Close
	replay  bool
	behind  *generation // to bring up to date
	off     int
	version int
}

// Pump writes what waits until there is nothing to write now. It returns false
// when the connection has ended. It runs once for each call of Options.Wake.
func (o *Outbox) Pump(ctx context.Context, c Conn) bool {
	for {
		switch s := o.next(); {
		case len(s.items) > 0:
			if err := c.Write(s.items); err != nil {
				o.Close(o.opts.Slow.Code, o.opts.Slow.Reason, true)
			}
		case s.ending != nil:
			c.Finish(s.ending.Code, s.ending.Reason)
			return false
		case s.replay:
			if err := o.replay(ctx, c); err != nil {
				o.Close(o.opts.Unreadable.Code, o.opts.Unreadable.Reason, true)
			}
		case s.behind != nil:
			o.catchUp(ctx, c, s)
		default:
			return true
		}
	}
}

// next takes what can be written, and sets writing to false when there is
// nothing to do.
func (o *Outbox) next() step {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.take(time.Now())
	switch {
	case len(items) > 0:
		return step{items: items}
	case o.ending != nil:
		return step{ending: o.ending}
	case len(o.items) > 0:
		o.wakeAt(o.items[0].delta.due)
	case o.replaying:
		return step{replay: true}
	case !o.holding:
		if g := o.late(); g != nil {
			return step{behind: g, off: max(g.next, 0), version: g.version}
		}
	}
	o.writing = false
	return step{}
}

// late returns the first generation, by id, that the connection is to be brought up to date with;
// nil = none.
func (o *Outbox) late() (first *generation) {
	for _, g := range o.gens {
		if (g.phase == behind || g.phase == final) && g != o.attaching && (first == nil || g.id < first.id) {
			first = g
		}
	}
	return first
}

// take removes the items that can be written in one go.
func (o *Outbox) take(now time.Time) []*Item {
	batch := 1
	if o.set.Batch {
		batch = batchFrames
	}
	n, size := 0, 0
	for n < min(len(o.items), batch) && (n == 0 || size+o.items[n].size <= batchBytes) {
		it := o.items[n]
		switch d := it.delta; {
		case d == nil:
			o.urgent--
		case o.urgent == 0 && o.ending == nil && now.Before(d.due):
			return o.remove(n, size)
		default:
			d.of.sent = now
			if d.of.tail == it {
				d.of.tail = nil
			}
		}
		size += it.size
		n++
	}
	return o.remove(n, size)
}

// remove takes the first n items, of this size, from the queue.
func (o *Outbox) remove(n, size int) []*Item {
	if n == 0 {
		return nil
	}
	taken := append([]*Item(nil), o.items[:n]...)
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
func (o *Outbox) wakeAt(at time.Time) {
	if o.timer == nil {
		o.timer = time.AfterFunc(time.Until(at), func() {
			o.locked(func() {})
		})
		return
	}
	o.timer.Reset(time.Until(at))
}

// replay queues the next events of the log, about batchBytes of them. What was read beyond that is
// kept: each event is read once, and a page of the log is bounded.
func (o *Outbox) replay(ctx context.Context, c Conn) error {
	o.mu.Lock()
	list, after, upTo := o.ahead, o.pos, o.target
	o.mu.Unlock()
	if len(list) == 0 {
		var err error
		if list, err = c.Since(ctx, after, upTo, batchFrames); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return errors.New("the event log ends before its newest event")
	}
	o.locked(func() {
		size := 0
		for len(list) > 0 && (size == 0 || size+len(list[0].Data) <= batchBytes) {
			size += len(list[0].Data) + itemOverhead
			o.putDurable(list[0])
			list = list[1:]
		}
		o.ahead, o.replaying = list, o.pos < o.target
	})
	return nil
}

// catchUp sends a generation that the connection is behind with its text up to
// now.
func (o *Outbox) catchUp(ctx context.Context, c Conn, s step) {
	g := s.behind
	t, err := c.Text(ctx, g.id, s.off)
	o.locked(func() {
		switch {
		case o.gens[g.id] != g || g.version != s.version: // it ended, was rewound or attached to meanwhile
		case err != nil:
			o.on(g, lost, nil)
		case t.Ended || t.Text == "" || g.phase == final:
			o.on(g, current, nil)
		case !o.wants(g, t.Delta()):
			o.on(g, lost, nil)
		default:
			o.give(g, t)
		}
	})
}
