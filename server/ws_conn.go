package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"nodest/internal/account"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/internal/stream/outbox"
	"nodest/nodest"
)

// socket is one WebSocket connection. Its goroutines: read, which runs as long as the connection
// and does its commands one after the other, and write, which exists only while something is to be
// written. Nothing else writes, but for control frames that answer the client's.
type socket struct {
	s   *Server
	ws  *websocket.Conn // nil: an event stream of SSE
	id  string          // session
	out *outbox.Outbox

	mu        sync.Mutex
	who       *account.Identity // nil until signed in
	expiring  bool              // auth.expiring was sent for who
	lingering bool              // the read deadline is set for the last time

	place    holder      // whom its place is counted for; guarded by sockets
	dropped  bool        // it has lost its place before hello; guarded by sockets
	device   string      // set by hello, before the socket is entered
	greeted  atomic.Bool // hello was answered
	rate     bucket      // belongs to the reading goroutine
	refused  int         // commands in a row; of the reading goroutine
	leave    func()      // the hub; of the reading goroutine
	left     bool        // the client sent a close frame; of the reading goroutine
	seen     atomic.Int64
	pinged   int64 // belongs to the beat
	goodbye  chan struct{}
	cutEarly func() // ends an event stream of SSE
}

func newSocket(s *Server, ws *websocket.Conn, who *account.Identity) *socket {
	c := &socket{s: s, ws: ws, id: op.NewID(), who: who, goodbye: make(chan struct{})}
	c.rate = bucket{burst: float64(s.opts.Burst), perSecond: float64(s.opts.CommandsPer10s) / 10}
	c.queue(func() { s.wg.Go(c.pump) })
	return c
}

// queue makes the outbox; wake starts a goroutine that pumps, or wakes it.
func (c *socket) queue(wake func()) {
	c.out = outbox.New(outbox.Options{
		MaxBytes: c.s.opts.QueueBytes, MaxFrames: queueFrames, Wake: wake,
		Slow:       outbox.Close{Code: closeSlow, Reason: "slow_consumer"},
		Unreadable: outbox.Close{Code: closeInternal, Reason: "the event log cannot be read"},
	})
}

func (c *socket) identity() *account.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who
}

// userID is "" until the client has signed in.
func (c *socket) userID() string {
	if who := c.identity(); who != nil {
		return who.User.ID
	}
	return ""
}

// read is the life of the connection.
func (c *socket) read() {
	defer c.s.sockets.remove(c)
	defer c.end()
	limit := c.s.opts.FrameBytes
	if c.identity() == nil {
		limit = helloBytes
	}
	c.ws.SetReadLimit(limit)
	c.ws.SetPongHandler(func(string) error { c.alive(); return nil })
	c.deadline(c.s.opts.HelloWithin)
	for {
		kind, data, err := c.ws.ReadMessage()
		if err != nil {
			c.lost(err)
			return
		}
		c.alive()
		switch {
		case c.out.Ended(): // the close frame is sent: wait for the client
		case kind != websocket.TextMessage:
			c.out.Close(closeProtocol, "binary frames are reserved", false)
		default:
			c.aside(func() { c.frame(data) })
		}
	}
}

// aside runs f in a goroutine of its own and waits for it: what a command needs
// of stack does not stay with an idle connection.
func (c *socket) aside(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				c.s.opts.Log.Error("handling a WebSocket frame failed", "session", c.id, "err", panicked(r))
				c.out.Close(closeInternal, "internal error", false)
			}
		}()
		f()
	}()
	<-done
}

// alive notes a sign of life.
func (c *socket) alive() {
	c.seen.Store(time.Now().UnixNano())
	if c.greeted.Load() {
		c.deadline(2*pingEvery + 5*time.Second)
	}
}

// deadline is when the client must have shown life; after the close frame it stays what it is.
func (c *socket) deadline(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lingering {
		_ = c.ws.SetReadDeadline(time.Now().Add(d)) // a closed connection fails at the next read
	}
}

// lost closes the connection after a failed read.
func (c *socket) lost(err error) {
	var closed *websocket.CloseError
	var slow net.Error
	switch {
	case errors.As(err, &closed):
		c.left = true
		c.out.Close(closeNormal, "", true)
	case errors.Is(err, websocket.ErrReadLimit):
		c.out.Close(closeTooBig, "the frame is too large", false)
	case errors.As(err, &slow) && slow.Timeout() && !c.greeted.Load():
		c.out.Close(closeAuth, "no hello received", false)
	case errors.As(err, &slow) && slow.Timeout():
		c.out.Close(closeGone, "ping timeout", true)
	default:
		c.out.Close(closeGone, "connection lost", true)
		c.cut()
	}
}

// end waits for the writer, gives a client that is still sending time to read the
// close frame, and closes the connection.
func (c *socket) end() {
	if c.leave != nil {
		c.leave()
	}
	<-c.goodbye
	if !c.left {
		_, _ = io.Copy(io.Discard, c.ws.NetConn()) // bounded by the deadline of Finish
	}
	_ = c.ws.Close()
}

// cut makes a blocked read or write return.
func (c *socket) cut() {
	if c.ws == nil {
		c.cutEarly()
		return
	}
	_ = c.ws.NetConn().SetDeadline(time.Now())
}

// drop ends a connection before hello without waiting for its client.
func (c *socket) drop() {
	text := websocket.FormatCloseMessage(closeSlow, "replaced")
	_ = c.ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second)) // the client may be gone
	_ = c.ws.Close()
}

// pump is the goroutine that writes what waits. It ends when nothing does.
func (c *socket) pump() { c.out.Pump(c.s.ctx, c) }

// Write sends items as one frame: an object, or a batch of them.
func (c *socket) Write(items []*outbox.Item) error {
	_ = c.ws.SetWriteDeadline(time.Now().Add(c.s.opts.WriteWithin)) // a closed connection fails at the write
	switch {
	case items[0].Ping: // it was the only one when it was queued
		if err := c.ws.WriteMessage(websocket.PingMessage, nil); err != nil || len(items) == 1 {
			return err
		}
		return c.Write(items[1:])
	case len(items) == 1:
		return c.ws.WriteMessage(websocket.TextMessage, items[0].JSON())
	}
	b := []byte{'['}
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it.JSON()...)
	}
	return c.ws.WriteMessage(websocket.TextMessage, append(b, ']'))
}

// Finish sends the close frame and sets the last deadline for the reader, which
// waits that long for the client to go.
func (c *socket) Finish(code int, reason string) {
	text := websocket.FormatCloseMessage(code, reason)
	_ = c.ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(time.Second)) // the client may be gone
	c.mu.Lock()
	c.lingering = true
	_ = c.ws.SetReadDeadline(time.Now().Add(linger))
	c.mu.Unlock()
	if half, ok := c.ws.NetConn().(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	close(c.goodbye)
}

// linger is how long a client may take to close after our close frame. Closing at once
// could make a client that is still sending lose the frame.
const linger = 2 * time.Second

// beat pings a connection that was silent for a while, and ends one whose token
// has expired. It must not block.
func (c *socket) beat(now time.Time) {
	who := c.identity()
	if who != nil && who.ExpiresAt != nil {
		c.beatExpiry(who)
	}
	if !c.greeted.Load() {
		return
	}
	silent := now.UnixNano() - max(c.seen.Load(), c.pinged)
	if silent >= int64(c.jittered(pingEvery)) {
		c.pinged = now.UnixNano()
		c.out.Ping()
	}
}

func (c *socket) beatExpiry(who *account.Identity) {
	left := who.ExpiresAt.Sub(c.s.Accounts.Now())
	if left <= 0 {
		c.out.Close(closeAuth, "the token has expired", false)
		return
	}
	c.mu.Lock()
	tell := left <= time.Minute && !c.expiring && c.who == who
	c.expiring = c.expiring || tell
	c.mu.Unlock()
	if tell {
		c.tell("auth.expiring", map[string]int64{"inMs": left.Milliseconds()})
	}
}

// jittered is d ± 10 %, always the same for one connection.
func (c *socket) jittered(d time.Duration) time.Duration {
	last := c.id[len(c.id)-1] // ids are random at their end
	return d*9/10 + d/5*time.Duration(last%16)/15
}

// spread is a random time up to most.
func spread(most time.Duration) time.Duration { return rand.N(most + 1) }

// tell sends an event to this connection alone.
func (c *socket) tell(kind string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		return // a bug of ours: the event says nothing
	}
	c.out.Tell(&stream.Event{Type: kind, At: time.Now(), By: "server", Data: body})
}

// Since and Text are what the outbox did not keep.
func (c *socket) Since(ctx context.Context, after, upTo int64, limit int) ([]*stream.Event, error) {
	return c.s.Hub.Since(ctx, c.userID(), after, upTo, limit)
}

func (c *socket) Text(ctx context.Context, generationID string, off int) (*outbox.Text, error) {
	a, err := c.s.Engine.Attach(ctx, c.userID(), generationID, off)
	if err != nil {
		return nil, err
	}
	return attachedText(a), nil
}

// attachedText is what the outbox needs of a generation.
func attachedText(a *nodest.Attached) *outbox.Text {
	g := a.Generation
	return &outbox.Text{
		GenerationID: g.ID, ConversationID: g.ConversationID, MessageID: g.MessageID,
		Off: a.Off, Text: a.Text, Ended: g.Ended(),
	}
}

// bucket limits how often something happens. The zero bucket with its rates set is full.
type bucket struct {
	burst, perSecond float64
	used             float64
	last             time.Time
}

// take uses one; wait is how long there is none.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	b.used = max(0, b.used-now.Sub(b.last).Seconds()*b.perSecond)
	b.last = now
	if b.used+1 > b.burst {
		return time.Duration((b.used + 1 - b.burst) / b.perSecond * float64(time.Second))
	}
	b.used++
	return 0
}
