package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/internal/stream/outbox"
	"nodest/nodest"
	"nodest/server/api"
)

// sse is an event stream over plain HTTP. It lives in the goroutine of its
// request and has the same outbox as a WebSocket.
type sse struct {
	*socket
	w     http.ResponseWriter
	ctl   *http.ResponseController
	ready chan struct{}
	epoch string

	// Only for a stream that follows one generation:
	until    string   // the generation, whose end ends the stream
	messages []string // whose events belong to it
	off      int      // where its text begins for the client, in code points

	of   string      // the research that the stream follows, whose end ends it; "" = none
	gone func() bool // reports whether that was removed
}

// newSSE makes a stream for a user; run serves it.
func (s *Server) newSSE(c echo.Context, who *account.Identity) *sse {
	t := &sse{
		socket: newSocket(s, nil, who), w: c.Response(), ctl: http.NewResponseController(c.Response()),
		ready: make(chan struct{}, 1),
	}
	t.device = "sse-" + t.id
	if paced, ok := c.Response().Writer.(*pacedWriter); ok {
		paced.within = s.opts.WriteWithin
	}
	t.queue(func() { t.ready <- struct{}{} }) // never blocks: only one pump is asked for at a time
	return t
}

// start sends the head of the answer: from here on there are events only.
func (t *sse) start() {
	h := t.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not collect events
	t.w.WriteHeader(http.StatusOK)
	_ = t.ctl.Flush() // a client that is gone shows at the next write
}

// run writes events until the client goes, the stream ends or the server closes
// it. It must be called after start.
func (t *sse) run(ctx context.Context) {
	t.greeted.Store(true)
	t.seen.Store(time.Now().UnixNano())
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.ready:
		}
		if !t.out.Pump(ctx, t) {
			return
		}
	}
}

// enlist makes the stream known, so that it ends with its token and with the
// server. It takes one of the places of the process and of the user, until remove is called.
func (t *sse) enlist(cancel context.CancelFunc) (remove func(), err error) {
	k := &t.s.sockets
	t.place = holder{user: t.userID()}
	if err := k.reserve(t.place); err != nil {
		return nil, err
	}
	t.cutEarly = cancel
	if !k.add(t.socket, nil) {
		k.release(t.place)
		return nil, errFull()
	}
	k.enter(t.socket)
	return func() { k.remove(t.socket) }, nil
}

// Write sends items as events, one each.
func (t *sse) Write(items []*outbox.Item) error {
	var b []byte
	for _, it := range items {
		b = t.appendItem(b, it)
		if it.Ping && t.of != "" && t.gone() {
			t.out.Close(closeNormal, "", true)
			break
		}
		if e := it.Event; e != nil && (t.until != "" && e.GenerationID == t.until && terminal(e.Type) || t.of != "" && endsRun(e.Type)) {
			t.out.Close(closeNormal, "", true)
			break
		}
	}
	if _, err := t.w.Write(b); err != nil {
		return err
	}
	return t.ctl.Flush()
}

// appendItem writes one event in the form of SSE. JSON has no line breaks.
func (t *sse) appendItem(b []byte, it *outbox.Item) []byte {
	switch {
	case it.Ping:
		return append(b, ": ping\n\n"...)
	case it.Skip > 0:
		b = append(b, "event: skip\nid: "+t.idOf(it.Skip)+"\n"...)
	case it.Event != nil:
		b = append(b, "event: "+it.Event.Type+"\n"...)
		if it.Event.Durable() {
			b = append(b, "id: "+t.idOf(it.Event.Seq)+"\n"...)
		}
	default:
		b = append(b, "event: hello\n"...)
	}
	b = append(b, "data: "...)
	b = append(b, it.JSON()...)
	return append(b, "\n\n"...)
}

func (t *sse) idOf(seq int64) string { return t.epoch + ":" + strconv.FormatInt(seq, 10) }

// Finish ends the stream; run returns then.
func (t *sse) Finish(int, string) { close(t.goodbye) }

func terminal(kind string) bool { return kind == "gen.done" || kind == "gen.failed" }

// events is GET /events: the user's whole stream. Last-Event-ID resumes like
// hello.resume; the first event, hello, says whether that was possible.
func (s *Server) events(c echo.Context, who *account.Identity) error {
	if s.draining.Load() {
		return fault.New(fault.ShuttingDown, "the server is shutting down").After(time.Second)
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	t := s.newSSE(c, who)
	if device := c.Request().Header.Get("X-Device-Id"); op.IsClientID(device) {
		t.device = device
	}
	remove, err := t.enlist(cancel)
	if err != nil {
		return err
	}
	defer remove()
	t.out.Configure(outbox.Settings{Midway: true})
	r, err := s.join(ctx, t.socket, lastEventID(c.Request()))
	if err != nil {
		return err
	}
	defer r.leave()
	active, err := s.active(ctx, who.User.ID)
	if err != nil {
		return err
	}
	t.epoch = r.at.Epoch
	first, err := json.Marshal(struct {
		Ev   string `json:"ev"`
		Data any    `json:"data"`
	}{"hello", map[string]any{
		"epoch": r.at.Epoch, "seq": r.at.Seq, "resumed": r.reason == "", "reason": r.reason,
		"active": active, "now": time.Now().UnixMilli(),
	}})
	if err != nil {
		return err
	}
	t.start()
	t.out.Begin(first, r.from, r.at.Seq)
	t.run(ctx)
	return nil
}

// lastEventID reads the position that a client resumes from; nil = none.
func lastEventID(r *http.Request) *stream.Position {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		return nil
	}
	epoch, number, _ := strings.Cut(id, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 {
		return &stream.Position{Epoch: "unknown", Seq: 0} // not of ours: reload
	}
	return &stream.Position{Epoch: epoch, Seq: seq}
}

// stream runs an operation and streams the events of the generation that it begins or attaches to,
// until that ends. Where there is none, and where the operation fails, the answer is a plain one.
func (s *Server) stream(c echo.Context, who *account.Identity, o *api.Operation, call *op.Call, data []byte) error {
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	t := s.newSSE(c, who)
	t.out.Configure(outbox.Settings{Filter: outbox.Filter{Silent: true}})
	remove, err := t.enlist(cancel)
	if err != nil {
		return err
	}
	defer remove()
	at, _, leave, err := s.Hub.Join(ctx, call.UserID, t.out)
	if err != nil {
		return err
	}
	defer leave()
	t.epoch = at.Epoch
	result, err := s.perform(detached(ctx), ctx, o, call, data)
	if err != nil {
		return err
	}
	holdOf(c).release()
	switch got := result.(type) {
	case *api.Sent:
		t.until, t.messages = got.GenerationID, got.MessageIDs
	case *api.Attached:
		t.until, t.messages, t.off = got.GenerationID, []string{got.MessageID}, got.Off
		call.Replayed = true // its beginning lies in the past
	}
	if t.until == "" {
		return answer(c, 0, call, result)
	}
	t.out.Configure(outbox.Settings{Filter: outbox.Filter{Silent: true, Only: t.belongs}})
	if call.Replayed {
		if ended, err := t.past(ctx, call.UserID); err != nil || ended {
			return err
		}
	}
	t.start()
	t.out.Begin(nil, at.Seq, 0)
	t.run(ctx)
	return nil
}

func (t *sse) belongs(e *stream.Event) bool {
	return e.GenerationID == t.until || (e.MessageID != "" && slices.Contains(t.messages, e.MessageID))
}

// past brings a stream that missed the beginning of its generation up to date: the text so far
// comes as one delta. Of a generation that has ended, its end is told again and nothing follows;
// these events have no id, as their place in the log is not looked for.
func (t *sse) past(ctx context.Context, userID string) (ended bool, err error) {
	var a *nodest.Attached
	t.out.Attach(t.until, func() ([]byte, *outbox.Text) {
		if a, err = t.s.Engine.Attach(ctx, userID, t.until, t.off); err != nil {
			return nil, nil
		}
		return nil, attachedText(a)
	})
	if err != nil || !a.Generation.Ended() {
		return false, err
	}
	end, err := t.endOf(ctx, userID, a)
	if err != nil {
		return false, err
	}
	t.start()
	for _, e := range end {
		if t.Write([]*outbox.Item{{Event: e}}) != nil {
			return true, nil //nolint:nilerr // the client is gone
		}
	}
	return true, nil
}

// endOf are the last events of a generation, made again.
func (t *sse) endOf(ctx context.Context, userID string, a *nodest.Attached) ([]*stream.Event, error) {
	g := a.Generation
	event := func(kind string, data any) (*stream.Event, error) {
		body, err := json.Marshal(data)
		return &stream.Event{
			Type: kind, ConversationID: g.ConversationID, MessageID: g.MessageID, GenerationID: g.ID,
			At: time.Now(), By: "server", Data: body,
		}, err
	}
	var events []*stream.Event
	if a.Text != "" {
		events = append(events, attachedText(a).Delta())
	}
	if g.MessageID != "" {
		m, err := t.s.Chats.Message(ctx, userID, g.MessageID)
		var e *stream.Event
		switch {
		case fault.Is(err, fault.NotFound): // deleted since, or because it stayed empty
			e, err = event("message.deleted", map[string]any{"messageIds": []string{g.MessageID}})
		case err == nil:
			e, err = event("message.updated", map[string]any{"message": chat.WireMessage(m)})
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	last, data := "gen.done", map[string]any{"status": g.Status, "finish": g.Finish}
	if g.Usage != nil {
		data["usage"] = chat.WireUsage(g.Usage)
	}
	if g.Status == chat.GenFailed {
		last, data = "gen.failed", map[string]any{"error": op.FailureOf(fault.Public(api.FailedReply(g)))}
	}
	e, err := event(last, data)
	return append(events, e), err
}
