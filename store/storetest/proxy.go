package storetest

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// Proxy stands between a store and PostgreSQL, and cuts connections as they send COMMIT.
type Proxy struct {
	listener net.Listener
	socket   string // socket of PostgreSQL
	before   atomic.Int64
	after    atomic.Int64
}

// PostgresProxy returns the URL of a schema of the test's own behind a proxy. Without
// NODEST_TEST_DATABASE_URL, or where that names no socket, the test is skipped.
func PostgresProxy(t testing.TB) (string, *Proxy) {
	t.Helper()
	u, err := url.Parse(PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("host") == "" {
		t.Skip("skipped: the proxy connects to PostgreSQL over a socket, which scripts/with-postgres has")
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, socket: filepath.Join(q.Get("host"), ".s.PGSQL.5432")}
	q.Del("host")
	u.Host, u.RawQuery = listener.Addr().String(), q.Encode()
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return u.String(), p
}

// CutBefore cuts the next n connections that send COMMIT; PostgreSQL never sees it.
func (p *Proxy) CutBefore(n int64) { p.before.Store(n) }

// CutAfter cuts the next n connections whose COMMIT PostgreSQL has answered; the answer is lost.
func (p *Proxy) CutAfter(n int64) { p.after.Store(n) }

func (p *Proxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // a connection of a test
	server, err := new(net.Dialer).DialContext(context.Background(), "unix", p.socket)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // a connection of a test
	var losing atomic.Bool
	go func() {
		defer client.Close() //nolint:errcheck // a connection of a test
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || losing.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
			if p.before.Add(-1) >= 0 {
				return
			}
			losing.Store(p.after.Add(-1) >= 0)
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}
