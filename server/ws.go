package server

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/fault"
)

// Close codes of the protocol, as asyncapi.yaml lists them.
const (
	closeNormal   = websocket.CloseNormalClosure
	closeGone     = websocket.CloseGoingAway
	closeTooBig   = websocket.CloseMessageTooBig
	closeInternal = websocket.CloseInternalServerErr
	closeRestart  = websocket.CloseServiceRestart
	closeProtocol = 4400
	closeAuth     = 4401
	closeSlow     = 4408 // also "replaced"
	closeTwice    = 4409
	closeVersion  = 4426
	closeRate     = 4429
)

const subprotocol = "nodest.v1"

// Sizes of the buffers of a connection. The one for writing is borrowed for the time of a frame.
const (
	readBuffer  = 1 << 10
	writeBuffer = 4 << 10
)

const (
	helloBytes  = 4 << 10          // the first frame of a connection that has not signed in
	queueFrames = 512              // frames that wait for one connection
	pingEvery   = 25 * time.Second // silence before a ping
)

// streamRoutes serves the WebSocket and SSE.
func (s *Server) streamRoutes(e *echo.Echo) {
	e.GET(base+"/ws", s.upgrade)
	e.GET(base+"/events", s.signedIn(only(s.events)))
}

var writeBuffers sync.Pool

// upgrade opens a WebSocket. Errors are answered as plain HTTP, before the upgrade. The connection
// lives on in a goroutine of its own, so that the HTTP server can give up its buffers.
func (s *Server) upgrade(c echo.Context) error {
	r := c.Request()
	if !websocket.IsWebSocketUpgrade(r) {
		return fault.New(fault.BadRequest, "this URL accepts WebSocket connections only")
	}
	if !s.originAllowed(r) {
		return foreignOrigin()
	}
	if s.draining.Load() {
		return fault.New(fault.ShuttingDown, "the server is shutting down").After(time.Second)
	}
	who, place, err := s.admit(r)
	if err != nil {
		return err
	}
	up := websocket.Upgrader{
		HandshakeTimeout: 10 * time.Second, ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer,
		WriteBufferPool: &writeBuffers, Subprotocols: []string{subprotocol},
		CheckOrigin: func(*http.Request) bool { return true }, // it was checked above
		Error:       func(http.ResponseWriter, *http.Request, int, error) {},
	}
	ws, err := up.Upgrade(c.Response(), r, nil)
	if err != nil {
		s.sockets.release(place)
		return fault.Wrap(err, fault.BadRequest, "invalid WebSocket handshake")
	}
	k := newSocket(s, ws, who)
	k.place = place
	if !s.sockets.add(k, k.read) {
		s.sockets.release(place)
		_ = ws.Close()
		return nil
	}
	if offered := websocket.Subprotocols(r); len(offered) > 0 && !slices.Contains(offered, subprotocol) {
		k.out.Close(closeVersion, "this server speaks nodest.v1", false)
	}
	return nil
}

// errFull is the answer when no more connections are taken.
func errFull() error {
	return fault.New(fault.ShuttingDown, "connection limit reached").After(5 * time.Second)
}

// admit identifies the user who opens a connection, nil = the first frame has the token, and
// reserves a place for it. A ticket is used up only when there is a place.
func (s *Server) admit(r *http.Request) (who *account.Identity, place holder, err error) {
	who, ticket, err := s.upgradeIdentity(r)
	if err != nil {
		return nil, place, err
	}
	place = holder{network: s.clientNetwork(r)}
	if who != nil {
		place = holder{user: who.User.ID}
	}
	if err := s.sockets.reserve(place); err != nil {
		return nil, place, err
	}
	if ticket != "" {
		if who, err = s.Accounts.TakeTicket(r.Context(), account.PurposeWS, ticket); err != nil {
			s.sockets.release(place)
		}
	}
	return who, place, err
}

// upgradeIdentity identifies the user who opens a connection; nil = the first frame has
// the token. It does not use up the ticket, if that says who it is.
func (s *Server) upgradeIdentity(r *http.Request) (who *account.Identity, ticket string, err error) {
	if _, ok := bearer(r); ok {
		who, err = s.authenticate(r)
	} else if ticket = r.URL.Query().Get("ticket"); ticket != "" {
		who, err = s.Accounts.PeekTicket(r.Context(), account.PurposeWS, ticket)
	} else if _, none := r.Cookie(sessionCookie); none == nil && r.Header.Get("Origin") != "" {
		who, err = s.authenticate(r)
	}
	return who, ticket, err
}

// sockets knows who is connected: WebSockets, and the open event streams of SSE.
type sockets struct {
	s *Server

	mu        sync.Mutex
	open      int            // reserved places
	places    map[holder]int // the same by holder
	closed    bool           // no new connections
	all       map[*socket]struct{}
	users     map[string][]*socket // signed in, oldest first
	strangers map[string][]*socket // not signed in, by network, oldest first
}

func (k *sockets) init(s *Server) {
	k.s, k.all, k.places = s, map[*socket]struct{}{}, map[holder]int{}
	k.users, k.strangers = map[string][]*socket{}, map[string][]*socket{}
}

// waiting is how many places a user may have per allowed connection: connections before hello,
// and replaced ones that are closing, take places too.
const waiting = 4

// reserve takes one of the process's places; release gives it back. A quarter of them is kept for
// those who are signed in. When a network has as many as it may have, its oldest connection before
// hello is closed, so that one client does not keep out the others behind the same address.
func (k *sockets) reserve(who holder) error {
	oldest, err := k.tryReserve(who)
	if oldest != nil {
		oldest.drop()
	}
	return err
}

func (k *sockets) tryReserve(who holder) (oldest *socket, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, each := k.s.opts.Connections, waiting*k.s.opts.PerUser
	if who.user == "" {
		all, each = all-all/4, k.s.opts.PerNetwork
	}
	if k.open >= all {
		return nil, errFull()
	}
	if k.places[who] >= each {
		if len(k.strangers[who.network]) == 0 {
			return nil, fault.New(fault.RateLimited, "too many connections, limit %d", each).After(5 * time.Second)
		}
		oldest = k.strangers[who.network][0]
		oldest.dropped = true
		k.vacate(oldest)
	}
	k.occupy(who, 1)
	return oldest, nil
}

func (k *sockets) release(who holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.occupy(who, -1)
}

// vacate gives the place of a connection back; the caller has locked k.
func (k *sockets) vacate(c *socket) {
	k.occupy(c.place, -1)
	if c.place.user == "" {
		without(k.strangers, c.place.network, c)
	}
}

// without removes a connection from the list of a key.
func without(lists map[string][]*socket, key string, c *socket) {
	list := slices.DeleteFunc(lists[key], func(o *socket) bool { return o == c })
	if len(list) == 0 {
		delete(lists, key)
	} else {
		lists[key] = list
	}
}

// occupy changes the number of places of a holder; the caller has locked k.
func (k *sockets) occupy(who holder, by int) {
	k.open += by
	if k.places[who] += by; k.places[who] == 0 {
		delete(k.places, who)
	}
}

// add registers a connection and starts run, which may be nil, in a goroutine
// that Drain waits for. It returns false when the server has ended.
func (k *sockets) add(c *socket, run func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.all[c] = struct{}{}
	if c.place.user == "" {
		k.strangers[c.place.network] = append(k.strangers[c.place.network], c)
	}
	if run != nil {
		k.s.wg.Go(run)
	}
	return true
}

// enter registers a connection that has signed in, a WebSocket or an event stream. If the
// device or the user then has too many, the oldest one is closed.
func (k *sockets) enter(c *socket) {
	k.mu.Lock()
	if c.dropped { // just now
		k.mu.Unlock()
		return
	}
	user := c.userID()
	k.vacate(c)
	c.place = holder{user: user}
	k.occupy(c.place, 1)
	list := append(slices.Clip(k.users[user]), c)
	var replaced []*socket
	ofDevice := slices.DeleteFunc(slices.Clone(list), func(o *socket) bool { return o.device != c.device })
	if over := len(ofDevice) - k.s.opts.PerDevice; over > 0 {
		replaced = ofDevice[:over]
	} else if over := len(list) - k.s.opts.PerUser; over > 0 {
		replaced = list[:over]
	}
	replaced = slices.Clone(replaced)
	k.users[user] = slices.DeleteFunc(list, func(o *socket) bool { return slices.Contains(replaced, o) })
	k.mu.Unlock()
	for _, old := range replaced {
		old.out.Close(closeSlow, "replaced", false)
	}
}

// remove forgets a connection and gives its place back.
func (k *sockets) remove(c *socket) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, c)
	if !c.dropped {
		k.vacate(c)
	}
	without(k.users, c.userID(), c)
}

func (k *sockets) list() []*socket {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.all))
}

// count returns how many connections are open.
func (k *sockets) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.all)
}

// taken returns how many places are taken, those of event streams included.
func (k *sockets) taken() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open
}

// revoked closes the connections of a token, or of a user (tokenID "").
func (k *sockets) revoked(userID, tokenID string) {
	for _, c := range k.list() {
		if who := c.identity(); who != nil && who.User.ID == userID && (tokenID == "" || who.TokenID == tokenID) {
			c.out.Close(closeAuth, "the token was revoked", true)
		}
	}
}

// goingAway tells every client that the server is about to restart, each with a different
// delay, so that they do not all reconnect at once.
func (k *sockets) goingAway() {
	for _, c := range k.list() {
		c.tell("server.going_away", map[string]int64{
			"inMs": k.s.opts.DrainNotice.Milliseconds(), "retryAfterMs": spread(5 * time.Second).Milliseconds(),
		})
	}
}

// closeAll closes every connection; none comes after it.
func (k *sockets) closeAll(code int, reason string) {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	for _, c := range k.list() {
		c.out.Close(code, reason, false)
	}
}

// cut ends connections that do not even read the close frame.
func (k *sockets) cut() {
	for _, c := range k.list() {
		c.cut()
	}
}

// beat checks all connections, so that none needs its own timer.
func (k *sockets) beat() { k.every(k.s.opts.Tick, (*socket).beat) }

// every calls f with each connection again and again until the server ends.
func (k *sockets) every(interval time.Duration, f func(c *socket, now time.Time)) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-k.s.ctx.Done():
			return
		case now := <-t.C:
			for _, c := range k.list() {
				f(c, now)
			}
		}
	}
}

// recheck looks at the tokens of all connections, because another process may have revoked one.
func (k *sockets) recheck() {
	k.every(k.s.opts.Recheck, func(c *socket, _ time.Time) {
		who := c.identity()
		if who == nil {
			return
		}
		err := k.s.Accounts.Check(k.s.ctx, who)
		if fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.TokenExpired) {
			c.out.Close(closeAuth, "the token was revoked", true)
		}
	})
}
