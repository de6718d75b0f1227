// Package outbound has the HTTP client for every address that a user, a card, a page or
// a model can choose. It reaches public addresses only.
//
// The guard sits in the dialer: it resolves the host, checks all addresses, and connects
// to one of those it has checked. So it also covers every redirect, and an answer of the
// name server that changes between two lookups has no effect. A host with both public
// and private addresses is refused. No proxy is used, whatever the environment says.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrRefused marks requests that the guard has stopped: a private address, a port other
// than 80, 443, 8080 and 8443, or user info in the URL. The text of an error that wraps
// it is safe to show; it does not contain the addresses of a host.
var ErrRefused = errors.New("address refused")

// ErrRedirects marks requests that were redirected too often.
var ErrRedirects = errors.New("too many redirects")

const (
	connectTime = 5 * time.Second // to resolve the host and to connect
	tlsTime     = 5 * time.Second
	headerTime  = 10 * time.Second // from the request to the header of the response
	headerBytes = 64 << 10
	maxAttempts = 4 // addresses of one host that are tried
)

var ports = []string{"80", "443", "8080", "8443"}

// Options configure a Guard. The zero value is ready to use.
type Options struct {
	// Allow names hosts ("models.lan"), addresses and networks ("10.0.0.0/8") that may
	// be reached although they are private, and on any port.
	Allow []string

	// Resolve looks up the addresses of a host; the default is the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)

	// Dial connects to an address that was checked; the default is a net.Dialer. Tests
	// translate addresses here.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Guard decides which addresses may be reached. It is safe for concurrent use.
type Guard struct {
	hosts   []string
	nets    []netip.Prefix
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a guard, or an error if an entry of o.Allow cannot be read.
func New(o Options) (*Guard, error) {
	g := &Guard{resolve: o.Resolve, dial: o.Dial}
	if g.resolve == nil {
		g.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if g.dial == nil {
		g.dial = (&net.Dialer{}).DialContext
	}
	for _, entry := range o.Allow {
		if err := g.allow(strings.TrimSpace(entry)); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Guard) allow(entry string) error {
	if p, err := netip.ParsePrefix(entry); err == nil {
		g.nets = append(g.nets, p.Masked())
		return nil
	}
	if a, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		a = a.Unmap()
		g.nets = append(g.nets, netip.PrefixFrom(a, a.BitLen()))
		return nil
	}
	if entry == "" || strings.ContainsAny(entry, "/:@ *") {
		return fmt.Errorf("%q is not a host, an address or a network", entry)
	}
	g.hosts = append(g.hosts, hostName(entry))
	return nil
}

// Allows reports whether a host, or the network of an address, is named by Options.Allow.
func (g *Guard) Allows(host string) bool {
	host = strings.Trim(host, "[]")
	if a, err := netip.ParseAddr(host); err == nil {
		return g.named(a.Unmap())
	}
	return slices.Contains(g.hosts, hostName(host))
}

func (g *Guard) named(a netip.Addr) bool {
	return slices.ContainsFunc(g.nets, func(p netip.Prefix) bool { return p.Contains(a) })
}

func hostName(s string) string { return strings.TrimSuffix(strings.ToLower(s), ".") }

// Use is how a client is used.
type Use struct {
	Redirects int           // that are followed; with 0 a redirect is returned as the response
	Timeout   time.Duration // for the whole exchange; 0 = no limit, as for streams
	Patient   bool          // waits for the response as long as the context allows, instead of 10 s
}

// Client returns an HTTP client behind the guard, with connections of its own. It never
// decompresses. Headers of a response may have 64 KB.
func (g *Guard) Client(u Use) *http.Client {
	t := &http.Transport{
		DialContext:            g.connect,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           64,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    tlsTime,
		ResponseHeaderTimeout:  headerTime,
		MaxResponseHeaderBytes: headerBytes,
		DisableCompression:     true, // a compressed stream arrives in lumps
	}
	if u.Patient {
		t.ResponseHeaderTimeout = 0
	}
	return &http.Client{
		Transport: guarded{t},
		Timeout:   u.Timeout,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if u.Redirects == 0 {
				return http.ErrUseLastResponse
			}
			if len(via) > u.Redirects {
				return ErrRedirects
			}
			return nil
		},
	}
}

// guarded checks the URL of every request, also of those that follow a redirect.
type guarded struct{ *http.Transport }

func (t guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkURL(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return t.Transport.RoundTrip(req)
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("unsupported scheme %q", u.Scheme)
	case u.User != nil:
		return fmt.Errorf("%w: the URL contains a user name", ErrRefused)
	}
	return nil
}

// connect resolves the host, checks all of its addresses and connects to one of them.
func (g *Guard) connect(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := g.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	if err := g.check(host, port, addrs); err != nil {
		return nil, err
	}
	addrs = addrs[:min(len(addrs), maxAttempts)]
	for i, addr := range addrs {
		var conn net.Conn
		conn, err = g.try(ctx, network, net.JoinHostPort(addr.String(), port), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// try connects to one address, in its share of the time that is left.
func (g *Guard) try(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return g.dial(ctx, network, address)
}

// addresses returns the addresses of a host, IPv4 ones never in their IPv6 form.
func (g *Guard) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := g.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	for i := range addrs { // the system's resolver mixes both forms
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

// check refuses a host unless all of its addresses may be reached on the port.
func (g *Guard) check(host, port string, addrs []netip.Addr) error {
	if slices.Contains(g.hosts, hostName(host)) {
		return nil
	}
	for _, a := range addrs {
		if g.named(a) {
			continue
		}
		if kind := special(a); kind != "" {
			return fmt.Errorf("%w: %s has a %s address", ErrRefused, host, kind)
		}
		if !slices.Contains(ports, port) {
			return fmt.Errorf("%w: port %s of %s", ErrRefused, port, host)
		}
	}
	return nil
}
