package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"nodest/internal/account"
	"nodest/internal/op"
)

// sseEvent is one server-sent event.
type sseEvent struct {
	frame
	kind, id string
}

// sseStream reads a response of server-sent events.
type sseStream struct {
	t      testing.TB
	res    *http.Response
	lines  chan string
	cancel context.CancelFunc
}

// openStream makes a request that accepts events; the response may be another one.
func (h *testServer) openStream(method, path, body string, header ...string) *sseStream {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, h.http.URL+"/api/v1"+path, strings.NewReader(body))
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Accept", "text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := h.http.Client().Do(req)
	h.must(err)
	l := &sseStream{t: h.t, res: res, lines: make(chan string, 10_000), cancel: cancel}
	h.t.Cleanup(func() { res.Body.Close() })
	go func() {
		defer close(l.lines)
		in := bufio.NewScanner(res.Body)
		in.Buffer(nil, 4<<20)
		for in.Scan() {
			l.lines <- in.Text()
		}
	}()
	return l
}

// next returns the next event; nil at the end of the stream.
func (l *sseStream) next() *sseEvent {
	l.t.Helper()
	e := &sseEvent{}
	for {
		line, ok := l.line()
		if !ok {
			return nil
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "event":
			e.kind = value
		case "id":
			e.id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.frame); err != nil {
				l.t.Fatalf("%s: %v", line, err)
			}
		case "":
			if e.kind != "" { // else a comment
				return e
			}
		}
	}
}

func (l *sseStream) line() (string, bool) {
	l.t.Helper()
	select {
	case line, ok := <-l.lines:
		return line, ok
	case <-time.After(testTimeout):
		l.t.Fatal("no more events")
		return "", false
	}
}

// remaining reads to the end of the stream.
func (l *sseStream) remaining() []*sseEvent {
	var all []*sseEvent
	for e := l.next(); e != nil; e = l.next() {
		all = append(all, e)
	}
	return all
}

func kinds(events []*sseEvent) string {
	var list []string
	for _, e := range events {
		if e.kind != "gen.delta" && e.kind != "gen.stage" {
			list = append(list, e.kind)
		}
	}
	return strings.Join(list, " ")
}

func textOf(t *testing.T, events []*sseEvent) string {
	t.Helper()
	text := ""
	for _, e := range events {
		if e.kind == "gen.delta" {
			if e.Off != len([]rune(text)) {
				t.Errorf("delta at %d of a text of %d", e.Off, len([]rune(text)))
			}
			text += field[string](t, &e.frame, "text")
		}
	}
	return text
}

func TestAReplyIsStreamedAsEvents(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	gate := make(chan struct{})
	h.model.enqueue(&script{pieces: []string{"Good ", "morning, ", "旅人"}, gate: gate})
	l := h.openStream("POST", "/conversations/"+chat+"/messages", `{"text":"Hi"}`, "Idempotency-Key: k-1")
	if got := l.res.Header.Get("Content-Type"); l.res.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%d %s", l.res.StatusCode, got)
	}
	var events []*sseEvent
	for e := l.next(); e != nil; e = l.next() {
		if events = append(events, e); e.kind == "gen.context" {
			close(gate) // a reply that ends before the stream starts has no deltas
		}
	}
	want := "message.created message.created gen.started gen.context message.updated gen.done"
	if got := kinds(events); got != want {
		t.Errorf("events %s", got)
	}
	if got := textOf(t, events); got != "Good morning, 旅人" {
		t.Errorf("text %q", got)
	}
	for _, e := range events {
		if (e.Seq > 0) != (e.id != "") || (e.Seq > 0 && !strings.HasSuffix(e.id, fmt.Sprintf(":%d", e.Seq))) {
			t.Errorf("%s has seq %d and id %q", e.kind, e.Seq, e.id)
		}
	}

	again := h.openStream("POST", "/conversations/"+chat+"/messages", `{"text":"Hi"}`, "Idempotency-Key: k-1").remaining()
	if got := kinds(again); got != "message.updated gen.done" || textOf(t, again) != "Good morning, 旅人" {
		t.Errorf("again: %s, text %q", got, textOf(t, again))
	}
	gen := events[len(events)-1].Gen
	later := h.openStream("GET", "/generations/"+gen+"?off=5", "").remaining()
	if len(later) == 0 || later[0].Off != 5 || field[string](t, &later[0].frame, "text") != "morning, 旅人" {
		t.Errorf("from the middle: %s", kinds(later))
	}
}

func TestAFailureBeforeTheFirstEventIsAPlainResponse(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	for path, want := range map[string]int{
		"/conversations/" + op.NewID() + "/messages": 404,
		"/conversations/" + chat + "/messages":       400,
	} {
		l := h.openStream("POST", path, `{"txt":"Hi"}`)
		if path != "/conversations/"+chat+"/messages" {
			l = h.openStream("POST", path, `{"text":"Hi"}`)
		}
		if got := l.res.Header.Get("Content-Type"); l.res.StatusCode != want || got != "application/problem+json" {
			t.Errorf("%s: %d %s", path, l.res.StatusCode, got)
		}
	}
}

func TestAFailedReplyEndsItsStream(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	h.model.enqueue(&script{pieces: []string{"Well"}, fails: fmt.Errorf("the provider broke")})
	events := h.openStream("POST", "/conversations/"+chat+"/messages", `{"text":"Hi"}`).remaining()
	last := events[len(events)-1]
	if last.kind != "gen.failed" || field[string](t, &last.frame, "error.code") == "" {
		t.Errorf("the last event is %s %s", last.kind, last.Data)
	}
	if strings.Contains(string(last.Data), "broke") {
		t.Error("the cause of the failure is shown")
	}
}

func TestAGenerationIsFollowedFromTheMiddle(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	gate := make(chan struct{})
	h.model.enqueue(&script{pieces: []string{"one ", "two ", "three"}, gate: gate})
	p, _ := h.connect(nil)
	sent := p.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Count"})
	gen := field[string](t, sent, "generationId")
	gate <- struct{}{}
	p.event("gen.delta", gen)
	l := h.openStream("GET", "/generations/"+gen+"?off=0", "")
	first := l.next() // white space at the end of a piece may be delayed
	if first.kind != "gen.delta" || strings.TrimSpace(field[string](t, &first.frame, "text")) != "one" {
		t.Fatalf("first: %s %s", first.kind, first.Data)
	}
	gate <- struct{}{}
	gate <- struct{}{}
	events := append([]*sseEvent{first}, l.remaining()...)
	if got := textOf(t, events); got != "one two three" || kinds(events) != "message.updated gen.done" {
		t.Errorf("text %q, events %s", got, kinds(events))
	}
}

func TestClosingARequestDoesNotCancelTheReply(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(nil)
	for name, header := range map[string]string{"streamed": "Accept: text/event-stream", "waited for": "Accept: application/json"} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan struct{})
			s := h.model.enqueue(&script{pieces: []string{"still ", "here"}, gate: gate})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.http.URL+"/api/v1/conversations/"+chat+"/messages", strings.NewReader(`{"text":"Hi"}`))
			h.must(err)
			req.Header.Set("Authorization", "Bearer "+h.token)
			req.Header.Set("Content-Type", "application/json")
			kind, value, _ := strings.Cut(header, ": ")
			req.Header.Set(kind, value)
			gone := make(chan error, 1)
			go func() {
				res, err := h.http.Client().Do(req)
				if err == nil {
					res.Body.Close()
				}
				gone <- err
			}()
			await(t, s.requested, "the provider's request")
			cancel()
			await(t, gone, "the end of the request")
			gate <- struct{}{}
			gate <- struct{}{}
			await(t, s.ended, "the end of the provider's request")
			p.waitFrame("the stored reply", func(f *frame) bool {
				return f.Ev == "message.updated" && field[string](t, f, "message.text") == "still here"
			})
			p.mu.Lock()
			p.frames = nil
			p.mu.Unlock()
		})
	}
}

func TestEventsOverSSE(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	l := h.openStream("GET", "/events", "")
	hello := l.next()
	if hello.kind != "hello" || field[bool](t, &hello.frame, "resumed") || field[string](t, &hello.frame, "reason") != "new" {
		t.Fatalf("first event: %s %s", hello.kind, hello.Data)
	}
	if a := h.rest("PATCH", "/conversations/"+chat, `{"title":"One"}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	one := l.next()
	if one.kind != "chat.updated" {
		t.Fatalf("event %s", one.kind)
	}
	l.cancel()
	for i := range 3 {
		h.rest("PATCH", "/conversations/"+chat, fmt.Sprintf(`{"title":"more %d"}`, i))
	}
	l = h.openStream("GET", "/events", "", "Last-Event-ID: "+one.id)
	if hello := l.next(); !field[bool](t, &hello.frame, "resumed") {
		t.Fatalf("hello: %s", hello.Data)
	}
	for i := range 3 {
		if e := l.next(); e.Seq != one.Seq+int64(i)+1 {
			t.Errorf("event %d after %d", e.Seq, one.Seq)
		}
	}
	l = h.openStream("GET", "/events", "", "Last-Event-ID: nonsense")
	if hello := l.next(); field[string](t, &hello.frame, "reason") != "epoch" {
		t.Errorf("hello: %s", hello.Data)
	}
}

func TestARevokedTokenEndsItsEvents(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	secret, token, err := h.accounts.CreateToken(context.Background(), &account.Identity{User: h.user}, "phone", 0)
	h.must(err)
	l := h.openStream("GET", "/events", "", "Authorization: Bearer "+secret)
	l.next()
	h.must(h.accounts.RevokeToken(context.Background(), h.user.ID, token.ID))
	if e := l.next(); e != nil {
		t.Errorf("%s after the token was revoked", e.kind)
	}
}

func TestSync(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	snap := h.rest("GET", "/sync", "").object(t)
	if len(snap["conversations"].([]any)) != 1 || len(snap["characters"].([]any)) != 1 {
		t.Fatalf("snapshot: %v", snap)
	}
	epoch, seq := snap["epoch"].(string), snap["seq"].(float64)
	for i := range 5 {
		h.rest("PATCH", "/conversations/"+chat, fmt.Sprintf(`{"title":"more %d"}`, i))
	}
	got := h.rest("GET", fmt.Sprintf("/sync?epoch=%s&since=%v&limit=3", epoch, seq), "").object(t)
	if events := got["events"].([]any); len(events) != 3 || got["more"] != true || got["seq"] != seq+3 {
		t.Errorf("first page: %v", got)
	}
	got = h.rest("GET", fmt.Sprintf("/sync?epoch=%s&since=%v", epoch, seq+3), "").object(t)
	if events := got["events"].([]any); len(events) != 2 || got["more"] != false || got["resumed"] != true {
		t.Errorf("second page: %v", got)
	}
	for query, reason := range map[string]string{"epoch=other&since=1": "epoch", "since=1": "epoch", fmt.Sprintf("epoch=%s&since=%v", epoch, seq+99): "epoch"} {
		if got := h.rest("GET", "/sync?"+query, "").object(t); got["resumed"] != false || got["reason"] != reason {
			t.Errorf("%s: %v", query, got)
		}
	}
	for _, query := range []string{"since=x", "since=-1", "since=1&limit=0", "since=1&limit=501", "sinze=1"} {
		if a := h.rest("GET", "/sync?"+query, ""); a.status != 400 {
			t.Errorf("%s: %d", query, a.status)
		}
	}
}
