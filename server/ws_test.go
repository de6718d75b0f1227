package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"nodest/internal/account"
	"nodest/internal/op"
	"nodest/store/storetest"
)

func TestMain(m *testing.M) {
	// The clock of regexp2 stops by itself a while after the last match.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"), goleak.Cleanup(storetest.Exit))
}

func TestHelloReportsTheStreamPosition(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	_, f := h.connect(map[string]any{"deviceId": "d-1", "client": "test"})
	if field[bool](t, f, "resumed") || field[string](t, f, "reason") != "new" {
		t.Errorf("a first hello is not resumed: %s", f.Data)
	}
	if field[string](t, f, "user") != h.user.ID || field[string](t, f, "server") != "nodest/test" {
		t.Errorf("hello: %s", f.Data)
	}
	if field[float64](t, f, "limits.frameBytes") != 262144 || field[float64](t, f, "pingS") != 25 {
		t.Errorf("limits: %s", f.Data)
	}
	if field[string](t, f, "epoch") == "" || field[[]any](t, f, "active") == nil {
		t.Errorf("epoch or active missing: %s", f.Data)
	}
}

func TestHelloReportsTheUsersOwnLimit(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	_, f := h.connect(nil)
	if got := field[float64](t, f, "limits.gensParallel"); got != 2 {
		t.Errorf("gensParallel %v, want the default", got)
	}
	five := 5
	_, err := h.accounts.UpdateUser(context.Background(), &account.Identity{User: h.user}, h.user.ID, account.UserPatch{Limits: &account.LimitsPatch{Generations: &five}})
	h.must(err)
	_, f = h.connect(nil)
	if got := field[float64](t, f, "limits.gensParallel"); got != 5 {
		t.Errorf("gensParallel %v, want the user's own", got)
	}
}

func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Origins = []string{"https://app.example"} })
	ctx := context.Background()
	ticket := func() string {
		secret, err := h.accounts.NewTicket(ctx, h.user.ID, account.PurposeWS)
		h.must(err)
		return "?ticket=" + secret
	}
	used := ticket()
	cookie := sessionCookie + "=" + h.token
	for _, c := range []struct {
		name   string
		token  string
		query  string
		origin string
		cookie string
		hello  string // token in hello
		status int    // status of the handshake, if refused
		closes int    // close code after hello
	}{
		{name: "a bearer token", token: h.token},
		{name: "a wrong bearer token", token: "wrong", status: 401},
		{name: "a ticket", query: used},
		{name: "a ticket again", query: used, status: 401},
		{name: "a ticket that never was", query: "?ticket=x", status: 401},
		{name: "the token of hello", hello: h.token},
		{name: "a wrong token of hello", hello: "wrong", closes: closeAuth},
		{name: "no token at all", closes: closeAuth},
		{name: "a foreign origin", token: h.token, origin: "https://evil.example", status: 403},
		{name: "an allowed origin", token: h.token, origin: "https://app.example"},
		{name: "the own origin with a cookie", origin: "self", cookie: cookie},
		{name: "a cookie without an origin", cookie: cookie, closes: closeAuth},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{}
			switch c.origin {
			case "":
			case "self":
				header.Set("Origin", h.http.URL)
			default:
				header.Set("Origin", c.origin)
			}
			if c.cookie != "" {
				header.Set("Cookie", c.cookie)
			}
			p, res, err := h.dial(dialOptions{token: c.token, query: c.query, header: header, mayFail: true})
			if c.status != 0 {
				if err == nil || res.StatusCode != c.status {
					t.Fatalf("handshake: %v, %+v; want %d", err, res, c.status)
				}
				if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
					t.Errorf("content type %q", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.closes != 0 {
				p.send("hello", "", map[string]any{"protocol": 1, "token": c.hello})
				p.wantClose(c.closes)
				return
			}
			p.ok("hello", "", map[string]any{"protocol": 1, "token": c.hello})
		})
	}
	if strings.Contains(h.log.String(), strings.TrimPrefix(used, "?ticket=")) {
		t.Error("the log has a ticket")
	}
}

func TestBadFramesEndTheConnection(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	deep := func(n int) string { // a frame nested n deep
		return `{"id":"1","cmd":"card.lint","data":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	for _, c := range []struct {
		name  string
		frame string
		kind  int
		code  int
	}{
		{name: "not JSON", frame: `{"id":`, code: closeProtocol},
		{name: "not an object", frame: `42`, code: closeProtocol},
		{name: "no id", frame: `{"cmd":"chat.history"}`, code: closeProtocol},
		{name: "an id that is no string", frame: `{"id":7,"cmd":"ping"}`, code: closeProtocol},
		{name: "an id of 65 characters", frame: `{"id":"` + strings.Repeat("x", 65) + `","cmd":"ping"}`, code: closeProtocol},
		{name: "invalid UTF-8", frame: "{\"id\":\"1\",\"cmd\":\"\xff\"}", code: closeProtocol},
		{name: "a binary frame", frame: `{"id":"1","cmd":"ping"}`, kind: websocket.BinaryMessage, code: closeProtocol},
		{name: "33 deep", frame: deep(33), code: closeProtocol},
		{name: "a batch that was not agreed", frame: `[{"id":"1","cmd":"ping"}]`, code: closeProtocol},
		{name: "hello twice", frame: `{"id":"1","cmd":"hello","data":{"protocol":1}}`, code: closeTwice},
		{name: "257 KiB", frame: `{"id":"1","cmd":"` + strings.Repeat("x", 257<<10) + `"}`, code: closeTooBig},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := h.connect(nil)
			kind := c.kind
			if kind == 0 {
				kind = websocket.TextMessage
			}
			_ = p.ws.WriteMessage(kind, []byte(c.frame)) // the server may close first
			p.wantClose(c.code)
		})
	}
	t.Run("32 deep is fine", func(t *testing.T) {
		p, _ := h.connect(nil)
		p.sendText(deep(32))
		if f := p.answer("1"); f.Error != nil && f.Error.Code == "internal" {
			t.Errorf("%+v", f.Error)
		}
	})
}

func TestFramesBeforeHello(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	t.Run("a command", func(t *testing.T) {
		p, _, _ := h.dial(dialOptions{token: h.token})
		p.fails("bad_request", "chat.history", "", map[string]any{})
		p.wantClose(closeProtocol)
	})
	t.Run("5 KiB without a token", func(t *testing.T) {
		p, _, _ := h.dial(dialOptions{})
		p.send("hello", "", map[string]any{"protocol": 1, "client": strings.Repeat("x", 5<<10)})
		p.wantClose(closeTooBig)
	})
	t.Run("another version", func(t *testing.T) {
		p, _, _ := h.dial(dialOptions{token: h.token})
		p.fails("invalid_field", "hello", "", map[string]any{"protocol": 2})
		p.wantClose(closeVersion)
	})
	t.Run("another subprotocol", func(t *testing.T) {
		p, _, _ := h.dial(dialOptions{token: h.token, subprotocols: []string{"nodest.v9"}})
		p.wantClose(closeVersion)
	})
	t.Run("our subprotocol is chosen", func(t *testing.T) {
		p, _, _ := h.dial(dialOptions{token: h.token, subprotocols: []string{"other", "nodest.v1"}})
		if got := p.ws.Subprotocol(); got != "nodest.v1" {
			t.Errorf("subprotocol %q", got)
		}
	})
}

func TestAMissingHelloTimesOut(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.HelloWithin = time.Millisecond })
	p, _, _ := h.dial(dialOptions{token: h.token})
	p.wantClose(closeAuth)
}

func TestInvalidCommands(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(nil)
	send := func(change map[string]any) map[string]any {
		data := map[string]any{"conversationId": chat, "text": "hi"}
		for k, v := range change {
			data[k] = v
		}
		return data
	}
	fieldOf := func(f *frame, want string) {
		t.Helper()
		if len(f.Error.Errors) == 0 || f.Error.Errors[0].Field != want {
			t.Errorf("fields %+v, want %s", f.Error.Errors, want)
		}
	}
	p.fails("unknown_command", "chat.dance", "", nil)
	fieldOf(p.fails("invalid_field", "chat.send", "", send(nil)), "key")
	fieldOf(p.fails("invalid_field", "chat.send", "k1", send(map[string]any{"text": 7})), "text")
	fieldOf(p.fails("invalid_field", "chat.send", "k2", send(map[string]any{"colour": "red"})), "colour")
	fieldOf(p.fails("invalid_field", "chat.send", "k3", send(map[string]any{"options": map[string]any{"temperature": "hot"}})), "options.temperature")
	fieldOf(p.fails("invalid_field", "chat.send", "k4", send(map[string]any{"options": map[string]any{"stop": []any{"a", 1}}})), "options.stop[1]")
	p.fails("not_found", "chat.send", "k5", send(map[string]any{"conversationId": op.NewID()}))
	p.fails("too_large", "chat.send", "k6", send(map[string]any{"text": strings.Repeat("茶", 32_001)}))
	p.fails("not_found", "gen.attach", "", map[string]any{"generationId": op.NewID()})
	p.fails("invalid_field", "gen.attach", "", map[string]any{"generationId": "x", "off": -1})

	p.sendText(`{"id":"odd","cmd":"chat.history","more":1}`)
	if f := p.answer("odd"); f.Error == nil || f.Error.Code != "invalid_field" {
		t.Errorf("an unknown member of the frame: %+v", f)
	}
	stranger := h.newMember("mallory")
	q, _, _ := h.dial(dialOptions{token: stranger})
	q.ok("hello", "", map[string]any{"protocol": 1})
	q.fails("not_found", "chat.send", "k7", send(nil))
	q.fails("not_found", "chat.history", "", map[string]any{"conversationId": chat})

	got := p.ok("chat.history", "", map[string]any{"conversationId": chat})
	if items := field[[]any](t, got, "items"); len(items) != 1 {
		t.Errorf("%d messages are stored, want the greeting alone", len(items))
	}
}

func TestBatchesAreAcceptedWhenAgreed(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"batch": true})
	p.sendText(`[{"id":"a","cmd":"ping"},{"id":"b","cmd":"nonsense"}, {"id":"c","cmd":"ping"}]`)
	for id, ok := range map[string]bool{"a": true, "b": false, "c": true} {
		if f := p.answer(id); *f.OK != ok {
			t.Errorf("%s: %+v", id, f)
		}
	}
}

// TestAReplyFromEndToEnd follows one message and its reply on two devices.
func TestAReplyFromEndToEnd(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(map[string]any{"deviceId": "d-one"})
	q, _ := h.connect(map[string]any{"deviceId": "d-two"})
	h.model.enqueue(&script{pieces: []string{"Wel", "come, ", "旅人"}})

	sent := p.ok("chat.send", "k-1", map[string]any{"conversationId": chat, "text": "Hello?", "clientMsgId": "mine"})
	gen, msg := field[string](t, sent, "generationId"), field[string](t, sent, "message.id")
	if field[string](t, sent, "userMessage.clientMsgId") != "mine" || field[string](t, sent, "message.status") != "pending" {
		t.Errorf("answer: %s", sent.Data)
	}
	done := p.event("gen.done", gen)
	q.waitSeq(done.Seq)
	for _, d := range []*wsClient{p, q} {
		assertReply(t, d.all(), gen, msg, "Welcome, 旅人")
	}
	if a, b := sequence(p.all()), sequence(q.all()); a != b {
		t.Errorf("two devices saw\n%s\n%s", a, b)
	}
	again := p.ok("chat.send", "k-1", map[string]any{"conversationId": chat, "text": "Hello?", "clientMsgId": "mine"})
	if !again.Replay || string(again.Data) != string(sent.Data) {
		t.Errorf("again: %v %s\nfirst: %s", again.Replay, again.Data, sent.Data)
	}
	p.fails("key_reused", "chat.send", "k-1", map[string]any{"conversationId": chat, "text": "Other"})
}

// assertReply checks the deltas and the final text of a message, and their order.
func assertReply(t *testing.T, frames []*frame, gen, msg, want string) {
	t.Helper()
	text, updated, started, done := "", "", false, false
	for _, f := range frames {
		switch {
		case f.Ev == "gen.started" && f.Gen == gen:
			started = true
		case f.Ev == "gen.delta" && f.Gen == gen:
			if !started || updated != "" {
				t.Errorf("a delta outside gen.started … message.updated")
			}
			if f.Off != len([]rune(text)) {
				t.Errorf("delta at %d, the text has %d", f.Off, len([]rune(text)))
			}
			text += field[string](t, f, "text")
		case f.Ev == "message.updated" && f.Msg == msg:
			updated = field[string](t, f, "message.text")
		case f.Ev == "gen.done" && f.Gen == gen:
			done = true
			if updated == "" {
				t.Error("gen.done before message.updated")
			}
		}
	}
	if text != want || updated != want || !done {
		t.Errorf("deltas %q, stored %q, done %v; want %q", text, updated, done, want)
	}
}

// sequence lists the durable events in the order in which they arrived.
func sequence(frames []*frame) string {
	var b strings.Builder
	for _, f := range frames {
		if f.Seq > 0 && f.Ev != "" {
			fmt.Fprintf(&b, "%d %s %s\n", f.Seq, f.Ev, f.Msg)
		}
	}
	return b.String()
}

func TestCancelKeepsTheTextSoFar(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(nil)
	s := h.model.enqueue(&script{pieces: []string{"Once upon"}, hangs: true})
	sent := p.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Tell me"})
	gen := field[string](t, sent, "generationId")
	p.event("gen.delta", gen)
	if f := p.ok("gen.cancel", "", map[string]any{"generationId": gen}); field[string](t, f, "status") != "cancelled" {
		t.Errorf("cancel: %s", f.Data)
	}
	await(t, s.ended, "the end of the provider's request")
	f := p.event("message.updated", "")
	if field[string](t, f, "message.text") != "Once upon" || field[string](t, f, "message.status") != "cancelled" {
		t.Errorf("message: %s", f.Data)
	}
	if f := p.ok("gen.cancel", "", map[string]any{"generationId": gen}); field[string](t, f, "status") != "cancelled" {
		t.Errorf("cancel again: %s", f.Data)
	}
}

func TestLosingTheSocketDoesNotCancelTheReply(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, first := h.connect(nil)
	gate := make(chan struct{})
	h.model.enqueue(&script{pieces: []string{"one ", "two ", "three"}, gate: gate})
	sent := p.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Count"})
	gen, msg := field[string](t, sent, "generationId"), field[string](t, sent, "message.id")
	gate <- struct{}{}
	text := field[string](t, p.event("gen.delta", gen), "text")
	last := p.event("gen.context", gen).Seq
	p.ws.NetConn().Close()
	gate <- struct{}{}

	q, f := h.connect(map[string]any{"resume": map[string]any{"epoch": field[string](t, first, "epoch"), "seq": last}})
	if !field[bool](t, f, "resumed") {
		t.Fatalf("not resumed: %s", f.Data)
	}
	active := field[[]any](t, f, "active")
	if len(active) != 1 || active[0].(map[string]any)["generationId"] != gen {
		t.Fatalf("active: %s", f.Data)
	}
	a := q.ok("gen.attach", "", map[string]any{"generationId": gen, "off": len(text)})
	if off := field[float64](t, a, "off"); int(off) != len(text) {
		t.Errorf("attached at %v", off)
	}
	gate <- struct{}{}
	q.event("gen.done", gen)
	for _, f := range q.all() {
		if f.Ev == "gen.delta" {
			if f.Off != len(text) {
				t.Errorf("delta at %d, the text has %d", f.Off, len(text))
			}
			text += field[string](t, f, "text")
		}
	}
	up := q.event("message.updated", "")
	if text != "one two three" || field[string](t, up, "message.text") != text || up.Msg != msg {
		t.Errorf("text %q, stored %s", text, up.Data)
	}
}

func TestResumeReplaysMissedEvents(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.ReplayMax = 50 })
	p, first := h.connect(nil)
	epoch, start := field[string](t, first, "epoch"), int64(field[float64](t, first, "seq"))
	chat := h.newChat()
	for i := range 20 {
		p.ok("chat.update", h.newKey(), map[string]any{"conversationId": chat, "title": fmt.Sprint("title ", i)})
	}
	at, _, err := h.db.Position(context.Background(), h.user.ID)
	h.must(err)
	last := at.Seq
	p.waitSeq(last)
	for name, c := range map[string]struct {
		resume  map[string]any
		resumed bool
		reason  string
	}{
		"nothing missed":         {map[string]any{"epoch": epoch, "seq": last}, true, ""},
		"all missed":             {map[string]any{"epoch": epoch, "seq": start}, true, ""},
		"another epoch":          {map[string]any{"epoch": "other", "seq": start}, false, "epoch"},
		"a seq that never was":   {map[string]any{"epoch": epoch, "seq": last + 5}, false, "epoch"},
		"no position":            {nil, false, "new"},
		"a batch client, missed": {map[string]any{"epoch": epoch, "seq": start + 3}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hello := map[string]any{"batch": strings.HasPrefix(name, "a batch")}
			if c.resume != nil {
				hello["resume"] = c.resume
			}
			q, f := h.connect(hello)
			if field[bool](t, f, "resumed") != c.resumed || field[string](t, f, "reason") != c.reason {
				t.Fatalf("hello: %s", f.Data)
			}
			if !c.resumed {
				return
			}
			from := c.resume["seq"].(int64)
			if from < last {
				q.waitSeq(last)
			}
			want := from + 1
			for _, f := range q.all() {
				if f.Seq > 0 {
					if f.Seq != want {
						t.Fatalf("event %d, want %d", f.Seq, want)
					}
					want++
				}
			}
			if want != last+1 {
				t.Errorf("replayed up to %d, want %d", want-1, last)
			}
		})
	}
	for i := range 60 {
		p.ok("chat.update", h.newKey(), map[string]any{"conversationId": chat, "title": fmt.Sprint("more ", i)})
	}
	_, f := h.connect(map[string]any{"resume": map[string]any{"epoch": epoch, "seq": start}})
	if field[string](t, f, "reason") != "too_old" {
		t.Errorf("hello: %s", f.Data)
	}
}

func TestFilteredEventsLeaveNoGaps(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	quiet, _ := h.connect(map[string]any{"quiet": true, "want": []string{}})
	noDeltas, _ := h.connect(map[string]any{"want": []string{"memory"}})
	otherChat, _ := h.connect(map[string]any{"subscribe": []string{"another"}})
	p, _ := h.connect(nil)
	sent := p.ok("chat.send", "k", map[string]any{"conversationId": chat, "text": "Hi"})
	done := p.event("gen.done", field[string](t, sent, "generationId"))
	quiet.waitFrame("skip", func(f *frame) bool { return f.Ev == "skip" && f.Seq >= done.Seq })
	noDeltas.waitSeq(done.Seq)
	otherChat.waitSeq(done.Seq)
	for _, f := range quiet.all() {
		if f.Ev != "" && f.Ev != "skip" {
			t.Errorf("a quiet client got %s", f.Ev)
		}
	}
	for _, d := range []*wsClient{noDeltas, otherChat} {
		for _, f := range d.all() {
			if f.Ev == "gen.delta" || f.Ev == "gen.stage" {
				t.Errorf("a client that wants no deltas got %s", f.Ev)
			}
		}
	}
	otherChat.ok("subscribe", "", map[string]any{"conversationIds": []string{chat}})
	sent = p.ok("chat.send", "k2", map[string]any{"conversationId": chat, "text": "Again"})
	gen := field[string](t, sent, "generationId")
	otherChat.event("gen.delta", gen)
	otherChat.event("gen.done", gen)
	otherChat.ok("unsubscribe", "", map[string]any{"conversationIds": []string{chat}})
	sent = p.ok("chat.send", "k3", map[string]any{"conversationId": chat, "text": "Once more"})
	gen = field[string](t, sent, "generationId")
	otherChat.event("gen.done", gen)
	for _, f := range otherChat.all() {
		if f.Ev == "gen.delta" && f.Gen == gen {
			t.Error("a delta after unsubscribe")
		}
	}
	p.ok("unsubscribe", "", map[string]any{"conversationIds": []string{chat}})
	sent = p.ok("chat.send", "k4", map[string]any{"conversationId": chat, "text": "And again"})
	gen = field[string](t, sent, "generationId")
	p.event("gen.done", gen)
	for _, f := range p.all() {
		if f.Ev == "gen.delta" && f.Gen == gen {
			t.Error("a delta of an unsubscribed conversation")
		}
	}
}

func (p *wsClient) waitFrame(what string, ok func(*frame) bool) *frame {
	p.t.Helper()
	return waitFor(p, what, func(frames []*frame) *frame {
		for _, f := range frames {
			if ok(f) {
				return f
			}
		}
		return nil
	})
}

func TestTypingReachesOtherDevices(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(map[string]any{"deviceId": "d-one"})
	q, _ := h.connect(map[string]any{"deviceId": "d-two"})
	p.ok("typing", "", map[string]any{"conversationId": chat})
	if f := q.event("typing", ""); f.Conv != chat || f.By != "d-one" || f.Seq != 0 {
		t.Errorf("typing: %+v", f)
	}
	p.fails("not_found", "typing", "", map[string]any{"conversationId": op.NewID()})
}

func TestAnAckIsSentToAllDevices(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	p, _ := h.connect(map[string]any{"deviceId": "d-one"})
	got := p.ok("chat.history", "", map[string]any{"conversationId": chat})
	msg := field[[]any](t, got, "items")[0].(map[string]any)["id"].(string)
	p.ok("ack", "", map[string]any{"seq": 1, "read": map[string]string{chat: msg}})
	f := p.event("chat.read", "")
	var data struct {
		DeviceID string            `json:"deviceId"`
		Read     map[string]string `json:"read"`
	}
	if err := json.Unmarshal(f.Data, &data); err != nil || data.DeviceID != "d-one" || data.Read[chat] != msg {
		t.Errorf("chat.read: %s %v", f.Data, err)
	}
	p.fails("invalid_field", "ack", "", map[string]any{"read": map[string]any{chat: 7}})
}
