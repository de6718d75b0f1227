package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"nodest/internal/account"
)

// Limits, heartbeats, tokens and shutdown.

func TestTooManyCommands(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Burst, o.CommandsPer10s = 3, 1 })
	p, _ := h.connect(nil)
	var ids []string
	for range 3 + mostRefused {
		ids = append(ids, p.send("ping", "", nil))
	}
	for i, id := range ids {
		f := p.answer(id)
		if *f.OK != (i < 3) {
			t.Fatalf("command %d: %+v", i, f)
		}
		if e := f.Error; e != nil && (e.Code != "rate_limited" || e.RetryAfterMs == nil || *e.RetryAfterMs <= 0 || e.Retry != "later") {
			t.Errorf("error %+v", e)
		}
	}
	p.wantClose(closeRate)
}

func TestPingIsAnswered(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(nil)
	p.sendText(`{"cmd":"ping"}`)
	if f := p.event("pong", ""); f.Now == 0 {
		t.Error("pong without now")
	}
}

func TestASilentConnectionIsPinged(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Tick = time.Millisecond })
	pinged := make(chan struct{}, 100)
	p, _, _ := h.dial(dialOptions{token: h.token, noRead: true})
	p.ws.SetPingHandler(func(s string) error {
		select {
		case pinged <- struct{}{}:
		default:
		}
		return p.ws.WriteControl(websocket.PongMessage, []byte(s), time.Now().Add(testTimeout))
	})
	go p.read()
	p.ok("hello", "", map[string]any{"protocol": 1})
	for _, c := range h.server.sockets.list() {
		c.seen.Store(0) // silent since 1970
	}
	await(t, pinged, "a ping")
}

func TestTheOldestConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.PerDevice, o.PerUser = 2, 3 })
	hello := func(device string) *wsClient {
		p, _ := h.connect(map[string]any{"deviceId": device})
		return p
	}
	a1, a2, b1 := hello("a"), hello("a"), hello("b")
	a3 := hello("a")
	if code, reason := a1.closeError(); code != closeSlow || reason != "replaced" {
		t.Errorf("the oldest of the device: %d %q", code, reason)
	}
	c1 := hello("c")
	if code, reason := a2.closeError(); code != closeSlow || reason != "replaced" {
		t.Errorf("the oldest of the user: %d %q", code, reason)
	}
	for _, p := range []*wsClient{b1, a3, c1} {
		p.ok("ping", "", nil)
	}
}

func TestTheConnectionLimit(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Connections = 1 })
	p, _ := h.connect(nil)
	_, res, err := h.dial(dialOptions{token: h.token, mayFail: true})
	if err == nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Fatalf("%v, %+v", err, res)
	}
	p.ok("ping", "", nil)
}

func TestARevokedTokenClosesItsSocketsAtOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ctx := context.Background()
	secret, token, err := h.accounts.CreateToken(ctx, &account.Identity{User: h.user}, "phone", 0)
	h.must(err)
	p, _, _ := h.dial(dialOptions{token: secret})
	p.ok("hello", "", map[string]any{"protocol": 1})
	other, _ := h.connect(nil)
	h.must(h.accounts.RevokeToken(ctx, h.user.ID, token.ID))
	p.wantClose(closeAuth)
	other.ok("ping", "", nil)
	_, res, err := h.dial(dialOptions{token: secret, mayFail: true})
	if err == nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the revoked token connects: %v", err)
	}
}

func TestATokenRevokedBeforeHello(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ctx := context.Background()
	secret, token, err := h.accounts.CreateToken(ctx, &account.Identity{User: h.user}, "phone", 0)
	h.must(err)
	p, _, _ := h.dial(dialOptions{token: secret})
	_, err = h.db.DeleteToken(ctx, h.user.ID, token.ID) // as if between authentication and upgrade
	h.must(err)
	p.fails("unauthenticated", "hello", "", map[string]any{"protocol": 1})
	p.wantClose(closeAuth)
}

func TestARevokedTokenClosesTheSocketsOfItsTickets(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ctx := context.Background()
	secret, token, err := h.accounts.CreateToken(ctx, &account.Identity{User: h.user}, "page", 0)
	h.must(err)
	ticket := func() string {
		answer := h.rest("POST", "/ws/tickets", "", "Authorization: Bearer "+secret)
		if answer.status != http.StatusCreated {
			t.Fatalf("%d %s", answer.status, answer.body)
		}
		return "?ticket=" + answer.object(t)["ticket"].(string)
	}
	p, _, _ := h.dial(dialOptions{query: ticket()})
	p.ok("hello", "", map[string]any{"protocol": 1})
	unused := ticket()
	h.must(h.accounts.RevokeToken(ctx, h.user.ID, token.ID))
	p.wantClose(closeAuth)
	_, res, err := h.dial(dialOptions{query: unused, mayFail: true})
	if err == nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the ticket of the revoked token connects: %v", err)
	}
}

func TestATokenRevokedByAnotherProcess(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Recheck = time.Millisecond })
	ctx := context.Background()
	secret, token, err := h.accounts.CreateToken(ctx, &account.Identity{User: h.user}, "phone", 0)
	h.must(err)
	p, _, _ := h.dial(dialOptions{token: secret})
	p.ok("hello", "", map[string]any{"protocol": 1})
	_, err = h.db.DeleteToken(ctx, h.user.ID, token.ID) // as another process would: the server gets no notice
	h.must(err)
	p.wantClose(closeAuth)
}

func TestAnExpiringTokenIsRenewed(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Tick = time.Millisecond })
	ctx := context.Background()
	short, _, err := h.accounts.CreateToken(ctx, &account.Identity{User: h.user}, "short", 59*time.Second)
	h.must(err)
	p, _, _ := h.dial(dialOptions{token: short})
	p.ok("hello", "", map[string]any{"protocol": 1})
	p.event("auth.expiring", "")
	p.fails("unauthenticated", "auth.refresh", "", map[string]any{"token": "wrong"})
	p.fails("forbidden", "auth.refresh", "", map[string]any{"token": h.newMember("bob")})
	p.ok("auth.refresh", "", map[string]any{"token": h.token})
	p.ok("ping", "", nil)
}

func TestAnExpiredTokenClosesTheSocket(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Tick = time.Millisecond })
	p, _ := h.connect(nil)
	for _, c := range h.server.sockets.list() {
		c.mu.Lock()
		expired, past := *c.who, time.Now().Add(-time.Second)
		expired.ExpiresAt = &past
		c.who = &expired
		c.mu.Unlock()
	}
	p.wantClose(closeAuth)
}

func TestDrainingAnnouncesItselfAndClosesConnections(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(nil)
	finished := false
	h.must(h.server.Drain(context.Background(), func(ctx context.Context) error {
		if f := p.event("server.going_away", ""); field[float64](t, f, "inMs") != 10_000 {
			t.Errorf("going away: %s", f.Data)
		}
		p.fails("shutting_down", "chat.send", "k", map[string]any{"conversationId": "x", "text": "hi"})
		_, res, err := h.dial(dialOptions{token: h.token, mayFail: true})
		if err == nil || res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a connection while draining: %v", err)
		}
		finished = true
		return nil
	}))
	if !finished {
		t.Error("the generations got no time to finish")
	}
	p.wantClose(closeRestart)
}

// A quarter of the places is kept for users.
func TestStrangersCannotTakeAllPlaces(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Connections = 4 })
	for i := range 4 {
		_, _, err := h.dial(dialOptions{mayFail: true})
		if got := err == nil; got != (i < 3) {
			t.Errorf("stranger %d: %t", i, got)
		}
	}
	p, _ := h.connect(nil)
	p.ok("ping", "", nil)
}

// An address has few connections before it signs in, and one client cannot keep them from the
// others behind the same address.
func TestTheOldestStrangerMakesRoom(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.PerNetwork = 3 })
	held := func() (open, strangers int) {
		k := &h.server.sockets
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.open, len(k.strangers)
	}
	var all []*wsClient
	for i := range 6 {
		p, _, _ := h.dial(dialOptions{})
		all = append(all, p)
		eventually(t, "the server knows the connection", func() bool { // after its answer
			k := &h.server.sockets
			k.mu.Lock()
			defer k.mu.Unlock()
			return len(slices.Concat(slices.Collect(maps.Values(k.strangers))...)) == min(i+1, 3)
		})
	}
	for i, p := range all {
		if i < 3 {
			if code, reason := p.closeError(); code != closeSlow || reason != "replaced" {
				t.Errorf("stranger %d: %d %q", i, code, reason)
			}
		} else {
			p.ok("hello", "", map[string]any{"protocol": 1, "token": h.token, "deviceId": fmt.Sprint(i)})
		}
	}
	if open, strangers := held(); open != 3 || strangers != 0 {
		t.Errorf("%d places are taken, %d networks have strangers", open, strangers)
	}
	for _, p := range all {
		_ = p.ws.Close()
	}
	eventually(t, "no place is taken", func() bool { open, _ := held(); return open == 0 })
}

// A ticket that was not used for want of a place is still valid.
func TestARefusedConnectionKeepsItsTicket(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.Connections = 1 })
	query := "?ticket=" + stringAt(h.rest("POST", "/ws/tickets", "").wants(t, 201), "ticket")
	p, _ := h.connect(nil)
	if _, res, err := h.dial(dialOptions{query: query, mayFail: true}); err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("%v, %+v", err, res)
	}
	_ = p.ws.Close()
	eventually(t, "the place is free", func() bool { return h.server.sockets.count() == 0 })
	late, _, _ := h.dial(dialOptions{query: query})
	late.ok("hello", "", map[string]any{"protocol": 1})
	if _, res, err := h.dial(dialOptions{query: query, mayFail: true}); err == nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a ticket opens two sockets: %v, %+v", err, res)
	}
}

// A stranger that signs in gives its place among strangers to the next one.
func TestAPlaceIsTheUsersAfterHello(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.PerNetwork = 1 })
	for range 3 {
		p, _, _ := h.dial(dialOptions{})
		p.ok("hello", "", map[string]any{"protocol": 1, "token": h.token})
	}
	k := &h.server.sockets
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.places) != 1 || k.places[holder{user: h.user.ID}] != 3 || k.open != 3 {
		t.Errorf("places %v", k.places)
	}
}

// One user cannot take the places of others with connections that never say hello.
func TestAUsersPlacesAreBounded(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, func(o *Options) { o.PerUser = 1 })
	for i := range waiting + 1 {
		_, res, err := h.dial(dialOptions{token: h.token, mayFail: true})
		if got := err == nil; got != (i < waiting) {
			t.Errorf("connection %d: %v, %+v", i, err, res)
		}
	}
	h.rest("GET", "/events", "").refuses(t, 429, "rate_limited")
}
