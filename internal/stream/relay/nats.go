// Package relay carries what processes tell each other about users through NATS; package store has the form that
// needs PostgreSQL alone. Both are a stream.Relay.
package relay

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"nodest/internal/stream"
)

// Options say how to reach NATS, and which database the processes share.
type Options struct {
	URL         string // "nats://…" or "tls://…", with user and password or a token; several with commas
	Credentials string // file with credentials; "" = none
	CA          string // file with the certificates that sign those of the server; "" = those of the system
	// Installation is the same for all processes on one database, and for them alone. Names of users go over NATS
	// as a hash with it.
	Installation string
	Measure      stream.RelayMeasure // its lag is between two clocks
	Log          *slog.Logger
}

// NATS is a relay through core NATS: what is sent while it is away is dropped.
type NATS struct {
	conn   *nats.Conn
	prefix string
	opts   Options
	take   func(stream.Message)
	heard  chan *nats.Msg
	close  context.CancelFunc
	closed <-chan struct{}

	mu       sync.Mutex
	followed map[string]*following
}

// following is a subscription that several users of the relay share.
type following struct {
	sub   *nats.Subscription
	users int
}

const (
	waiting   = 64 << 10 // messages that may wait to be read; more are dropped
	reconnect = 500 * time.Millisecond
)

// NewNATS returns a relay. It does not wait for NATS: it connects when NATS is there, again and again.
//
// Errors: an address or file that cannot be read.
func NewNATS(o Options) (*NATS, error) {
	n := &NATS{opts: o, heard: make(chan *nats.Msg, waiting), followed: map[string]*following{}}
	ctx, end := context.WithCancel(context.Background())
	n.close, n.closed = end, ctx.Done()
	n.prefix = "nodest." + n.hash("") + "."
	settings := []nats.Option{
		nats.Name("nodest"), nats.NoEcho(), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnect),
		nats.ReconnectBufSize(-1), // messages that waited for NATS would come too late
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { o.Log.Info("connected to NATS") }),
		nats.ReconnectHandler(func(*nats.Conn) { o.Log.Info("connected to NATS again") }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log.Warn("connection to NATS lost: replies of other processes are seen late", "err", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if sub == nil {
				o.Log.Warn("NATS", "err", err)
				return
			}
			n.drop(1)
		}),
	}
	if o.Credentials != "" {
		settings = append(settings, nats.UserCredentials(o.Credentials))
	}
	if o.CA != "" {
		settings = append(settings, nats.RootCAs(o.CA))
	}
	conn, err := nats.Connect(o.URL, settings...)
	if err != nil {
		return nil, fmt.Errorf("NODEST_NATS_URL: %w", withoutURL(err))
	}
	n.conn = conn
	return n, nil
}

// withoutURL leaves an address, which may hold a password, out of an error.
func withoutURL(err error) error {
	if bad, ok := errors.AsType[*url.Error](err); ok {
		return bad.Err
	}
	return err
}

// hash names a user in a subject. Nobody who reads the subject can tell who it is.
func (n *NATS) hash(userID string) string {
	h := hmac.New(sha256.New, []byte(n.opts.Installation))
	h.Write([]byte(userID))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:15])
}

// Receive implements stream.Relay.
func (n *NATS) Receive(take func(stream.Message)) {
	n.take = take
	go n.read()
}

func (n *NATS) read() {
	for {
		var m *nats.Msg
		select {
		case m = <-n.heard:
		case <-n.closed:
			return
		}
		message, err := stream.ReadMessage(m.Data)
		if err != nil || n.prefix+n.hash(message.UserID) != m.Subject { // a newer version, or somebody else
			n.opts.Log.Debug("message of NATS not understood", "err", err)
			n.drop(1)
			continue
		}
		n.opts.Measure.Count(n.opts.Measure.Received, 1)
		if message.Event != nil && n.opts.Measure.Lag != nil {
			n.opts.Measure.Lag(max(0, time.Since(message.Event.At)))
		}
		n.take(message)
	}
}

func (n *NATS) drop(count int) { n.opts.Measure.Count(n.opts.Measure.Dropped, count) }

// Send implements stream.Relay.
func (n *NATS) Send(m stream.Message) {
	if err := n.conn.Publish(n.prefix+n.hash(m.UserID), stream.AppendMessage(nil, m)); err != nil {
		n.drop(1)
		return
	}
	n.opts.Measure.Count(n.opts.Measure.Sent, 1)
}

// Follow implements stream.Relay. All subscriptions share one channel, so that they cost no goroutine each.
func (n *NATS) Follow(userID string) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.followed[userID]
	if f == nil {
		sub, err := n.conn.ChanSubscribe(n.prefix+n.hash(userID), n.heard)
		if err != nil { // closed
			return func() {}
		}
		f = &following{sub: sub}
		n.followed[userID] = f
	}
	f.users++
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if f.users--; f.users == 0 {
			delete(n.followed, userID)
			_ = f.sub.Unsubscribe() // fails only if the connection is closed
		}
	})
}

// Close implements stream.Relay.
func (n *NATS) Close() error {
	n.conn.Close()
	n.close()
	return nil
}
