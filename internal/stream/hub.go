package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// HubOptions tune a Hub. The zero value fits one process on its own database.
type HubOptions struct {
	// Poll is how often the logs of joined users are checked for events that
	// another process wrote; 0 = there is no other process.
	Poll  time.Duration
	Relay Relay // to the other processes; nil = there are none
	// Stored is told that another process has stored something of a user, and Asked that another process asks for
	// what this one has of a user to be stored. They must not block.
	Stored, Asked func(userID string)
	Log           *slog.Logger // default slog.Default()
}

// maxHeld bounds the short-lived events that wait, per user, behind a durable one that is
// late. More are dropped: clients find a missing delta by its offset.
const maxHeld = 1024

// Hub hands the events of each user to the Sinks that joined. It remembers
// nothing but how far each user's sinks are; what is missing it reads from the
// Store. It is safe for concurrent use.
//
// Events may be committed in another order than Committed is called: an event
// that comes too early waits until those before it have been delivered. A gap
// that nobody fills (another process wrote those events) is read from the Store.
type Hub struct {
	store Store
	opts  HubOptions

	mu    sync.Mutex
	rooms map[string]*room

	gaps   chan struct{} // something is in late
	lateMu sync.Mutex
	late   map[*room]struct{} // rooms whose log is ahead of what was delivered

	stop context.CancelFunc
	done chan struct{}
}

// room is one user's place in the hub.
type room struct {
	user string

	// Guarded by Hub.mu:
	users int    // joined and joining
	stop  func() // ends following the user

	mu    sync.Mutex
	sinks []Sink
	known bool // epoch and last are known
	epoch string
	last  int64            // delivered up to here
	seen  int64            // the log goes at least to here
	early map[int64]*Event // committed, but not yet their turn
	held  []heldEvent      // short-lived events behind those
}

type heldEvent struct {
	after int64
	event *Event
}

// NewHub returns a hub; Close ends it.
func NewHub(store Store, opts HubOptions) *Hub {
	opts.Log = cmp.Or(opts.Log, slog.Default())
	ctx, cancel := context.WithCancel(context.Background())
	h := &Hub{
		store: store, opts: opts, rooms: map[string]*room{}, late: map[*room]struct{}{},
		gaps: make(chan struct{}, 1), stop: cancel, done: make(chan struct{}),
	}
	if opts.Relay != nil {
		opts.Relay.Receive(h.receive)
	}
	go h.run(ctx)
	return h
}

// Close stops filling gaps and waits for the hub's goroutine. Sinks may still
// leave afterwards.
func (h *Hub) Close() {
	h.stop()
	<-h.done
}

// Committed takes events that are in the user's log now: Seq and At are set. It
// does not block on sinks or the database.
func (h *Hub) Committed(userID string, events []*Event) {
	if len(events) > 0 {
		h.send(Message{UserID: userID, Seq: events[len(events)-1].Seq})
	}
	r := h.room(userID)
	if r == nil {
		return
	}
	r.mu.Lock()
	for _, e := range events {
		r.seen = max(r.seen, e.Seq)
		if !r.known || e.Seq > r.last {
			r.early[e.Seq] = e
			r.advance()
		}
	}
	late := r.known && r.last < r.seen
	r.mu.Unlock()
	if late {
		h.fill(r)
	}
}

// Transient delivers an event that is not stored. It comes after every durable
// event of the user that was committed before.
func (h *Hub) Transient(e *Event) {
	h.deliver(e)
	h.send(Message{UserID: e.UserID, Event: e})
}

// Stored tells the other processes that something of the user is stored that is no event.
func (h *Hub) Stored(userID string) { h.send(Message{UserID: userID}) }

// Ask asks the other processes to store what they have of the user, and to look whether they may go on.
func (h *Hub) Ask(userID string) { h.send(Message{UserID: userID, Ask: true}) }

// Attend has this process hear what others ask for and store of the user, though no sink has joined, until leave is
// called.
func (h *Hub) Attend(userID string) (leave func()) {
	if h.opts.Relay == nil {
		return func() {}
	}
	return h.opts.Relay.Follow(userID)
}

func (h *Hub) send(m Message) {
	if h.opts.Relay != nil {
		h.opts.Relay.Send(m)
	}
}

// receive takes a message of another process. What that has stored is read from the log: this may be ahead of it.
func (h *Hub) receive(m Message) {
	switch {
	case m.Event != nil:
		h.deliver(m.Event)
	case m.Ask:
		if h.opts.Asked != nil {
			h.opts.Asked(m.UserID)
		}
	default:
		if r := h.room(m.UserID); r != nil && m.Seq > 0 && r.goesTo(m.Seq) {
			h.fill(r)
		}
		if h.opts.Stored != nil {
			h.opts.Stored(m.UserID)
		}
	}
}

// goesTo notes that the log goes at least to seq, and reports whether this room is behind.
func (r *room) goesTo(seq int64) (late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = max(r.seen, seq)
	return r.known && r.last < r.seen
}

// deliver gives an event that is not stored to those who joined.
func (h *Hub) deliver(e *Event) {
	r := h.room(e.UserID)
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.known && r.last >= r.seen:
		r.deliver(e)
	case len(r.held) < maxHeld:
		r.held = append(r.held, heldEvent{r.seen, e})
	}
}

// Join adds a sink. Every durable event after the returned position will reach
// it, in order and without a gap, until leave is called; oldest is the first seq
// that the log still has. After leave returns the sink gets nothing more.
func (h *Hub) Join(ctx context.Context, userID string, sink Sink) (at Position, oldest int64, leave func(), err error) {
	r := h.enter(userID)
	newest, oldest, err := h.store.Position(ctx, userID)
	if err != nil {
		h.exit(r)
		return Position{}, 0, nil, err
	}
	r.mu.Lock()
	if !r.known {
		// Whatever is committed from here on comes through Committed, because the
		// room was there before the position was read.
		r.known, r.epoch, r.last = true, newest.Epoch, newest.Seq
		maps.DeleteFunc(r.early, func(seq int64, _ *Event) bool { return seq <= r.last })
	}
	r.seen = max(r.seen, newest.Seq)
	r.advance()
	r.sinks = append(r.sinks, sink)
	at = Position{r.epoch, r.last}
	late := r.last < r.seen
	r.mu.Unlock()
	if late {
		h.fill(r)
	}
	var once sync.Once
	leave = func() {
		once.Do(func() {
			r.mu.Lock()
			r.sinks = slices.DeleteFunc(slices.Clone(r.sinks), func(s Sink) bool { return s == sink })
			r.mu.Unlock()
			h.exit(r)
		})
	}
	return at, oldest, leave, nil
}

// Since returns at most limit events with after < seq <= upTo, in order.
func (h *Hub) Since(ctx context.Context, userID string, after, upTo int64, limit int) ([]*Event, error) {
	events, err := h.store.Events(ctx, userID, after, limit)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if e.Seq > upTo {
			return events[:i], nil
		}
	}
	return events, nil
}

// Position returns the newest position of a user's log and the oldest seq that
// it still has.
func (h *Hub) Position(ctx context.Context, userID string) (Position, int64, error) {
	return h.store.Position(ctx, userID)
}

// advance delivers everything whose turn has come.
func (r *room) advance() {
	if !r.known {
		return
	}
	r.release()
	for {
		e, ok := r.early[r.last+1]
		if !ok {
			return
		}
		delete(r.early, e.Seq)
		r.last = e.Seq
		r.seen = max(r.seen, r.last)
		r.deliver(e)
		r.release()
	}
}

// release delivers the short-lived events that waited for last.
func (r *room) release() {
	n := 0
	for n < len(r.held) && r.held[n].after <= r.last {
		r.deliver(r.held[n].event)
		n++
	}
	if n == len(r.held) {
		r.held = nil
	} else {
		r.held = r.held[n:]
	}
}

func (r *room) deliver(e *Event) {
	for _, s := range r.sinks {
		s.Deliver(e)
	}
}

func (h *Hub) room(userID string) *room {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rooms[userID]
}

func (h *Hub) enter(userID string) *room {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[userID]
	if r == nil {
		r = &room{user: userID, early: map[int64]*Event{}}
		h.rooms[userID] = r
	}
	r.users++
	if r.stop == nil {
		r.stop = h.Attend(userID)
	}
	return r
}

func (h *Hub) exit(r *room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.users--; r.users == 0 {
		delete(h.rooms, r.user)
		r.stop()
	}
}

// fill has the room's gap read from the store.
func (h *Hub) fill(r *room) {
	h.lateMu.Lock()
	h.late[r] = struct{}{}
	h.lateMu.Unlock()
	select {
	case h.gaps <- struct{}{}:
	default: // already signalled
	}
}

// run is the hub's goroutine: it fills gaps, and looks for what other processes
// wrote.
func (h *Hub) run(ctx context.Context) {
	defer close(h.done)
	var poll, again <-chan time.Time
	if h.opts.Poll > 0 {
		t := time.NewTicker(h.opts.Poll)
		defer t.Stop()
		poll = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.gaps:
		case <-again:
		case <-poll:
			if err := h.look(ctx); err != nil && ctx.Err() == nil {
				h.opts.Log.WarnContext(ctx, "polling for events of other processes failed", "err", err)
			}
		}
		again = nil
		if err := h.catchUp(ctx); err != nil && ctx.Err() == nil {
			h.opts.Log.WarnContext(ctx, "reading late events failed", "err", err)
			again = time.After(200 * time.Millisecond)
		}
	}
}

// look finds rooms whose log has grown without this process.
func (h *Hub) look(ctx context.Context) error {
	h.mu.Lock()
	rooms := make(map[string]*room, len(h.rooms))
	users := make([]string, 0, len(h.rooms))
	for user, r := range h.rooms {
		rooms[user] = r
		users = append(users, user)
	}
	h.mu.Unlock()
	var errs []error
	for part := range slices.Chunk(users, 500) {
		newest, err := h.store.Newest(ctx, part)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for user, seq := range newest {
			if r := rooms[user]; r.goesTo(seq) {
				h.fill(r)
			}
		}
	}
	return errors.Join(errs...)
}

// catchUp reads the gaps of all late rooms. A room whose read fails stays late.
func (h *Hub) catchUp(ctx context.Context) error {
	h.lateMu.Lock()
	late := h.late
	h.late = map[*room]struct{}{}
	h.lateMu.Unlock()
	var errs []error
	for r := range late {
		if err := h.catchUpRoom(ctx, r); err != nil {
			errs = append(errs, err)
			h.lateMu.Lock()
			h.late[r] = struct{}{}
			h.lateMu.Unlock()
		}
	}
	return errors.Join(errs...)
}

func (h *Hub) catchUpRoom(ctx context.Context, r *room) error {
	for {
		r.mu.Lock()
		after, upTo := r.last, r.seen
		r.mu.Unlock()
		if after >= upTo {
			return nil
		}
		events, err := h.store.Events(ctx, r.user, after, 200)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return errors.New("the event log of a user ends before its newest event")
		}
		r.mu.Lock()
		for _, e := range events {
			r.seen = max(r.seen, e.Seq)
			if e.Seq > r.last && r.early[e.Seq] == nil {
				r.early[e.Seq] = e
			}
		}
		r.advance()
		stuck := r.last == after // a publisher may have moved it during the read
		r.mu.Unlock()
		if stuck {
			return errors.New("the event log of a user has a gap")
		}
	}
}
