package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/idna"

	"nodest/internal/fault"
)

// allowed are the web origins that may call, each in the form of webOrigin.
type allowed struct {
	public string   // that of the public URL; "" without one
	others []string // those of other sites
	hosts  []string // the hosts of all these, without ports
}

func newAllowed(opts Options) allowed {
	a := allowed{}
	if opts.PublicURL != "" {
		a.public = webOrigin(opts.PublicURL)
	}
	for _, one := range opts.Origins {
		a.others = append(a.others, webOrigin(one))
	}
	for _, origin := range append(a.others, a.public) {
		if u, err := url.Parse(origin); err == nil {
			a.hosts = append(a.hosts, hostName(u.Host))
		}
	}
	return a
}

// hosted refuses requests to other hosts than ours, if it knows which one is: a page of another site whose name
// was made to lead to this server (DNS rebinding) would be of the same origin for its browser.
func (s *Server) hosted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if probed := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"; !probed && !s.hostAllowed(r) {
			return fault.New(fault.Forbidden, "this server does not answer for the host %.100q; if it is an address of this server, its operator sets NODEST_PUBLIC_URL to it or adds it to NODEST_ORIGINS", r.Host)
		}
		return next(c)
	}
}

// hostAllowed reports whether the Host header names this server: the host of the public URL or of an origin
// that may call, a loopback address, or the address that the connection came to. Ports do not count.
func (s *Server) hostAllowed(r *http.Request) bool {
	name := hostName(r.Host)
	if s.origins.public == "" || name != "" && slices.Contains(s.origins.hosts, name) || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	if err != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return addr.Unmap().IsLoopback() || local != nil && addr.Unmap() == local.AddrPort().Addr().Unmap().WithZone("")
}

// hostName is a host in the form of webHost, without its port.
func hostName(hostPort string) string {
	u := url.URL{Host: strings.TrimSuffix(hostPort, ".")}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return webHost("", host)
}

// originAllowed checks the Origin header of a browser: our own origins and the configured
// ones are allowed. Without the header there is no browser.
func (s *Server) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || s.ownOrigin(r) || slices.Contains(s.origins.others, webOrigin(origin))
}

// ownOrigin reports whether the Origin header names this server: it is the origin of the
// public URL, or has the host that the request was sent to. A proxy may send another Host than
// the browser did, and may take TLS away; so the public URL counts whatever the Host, and the
// scheme does not count where the hosts are equal.
func (s *Server) ownOrigin(r *http.Request) bool {
	origin := webOrigin(r.Header.Get("Origin"))
	scheme, host, ok := strings.Cut(origin, "://")
	return ok && host != "" && (origin == s.origins.public || host == webHost(scheme, r.Host))
}

func foreignOrigin() error {
	return fault.New(fault.Forbidden, "requests from this origin are not allowed; if it is the address of this server, its operator sets NODEST_PUBLIC_URL to it, and for another site NODEST_ORIGINS")
}

// overTLS reports whether the client speaks TLS, to this server or to a proxy in front of it. A
// proxy does not have to say so: the browser names the scheme in its Origin.
func (s *Server) overTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") ||
		strings.HasPrefix(webOrigin(r.Header.Get("Origin")), "https://") && s.ownOrigin(r)
}

// webOrigin is the origin of a URL in the one form that browsers send: lower case, the host in
// ASCII, without the port that the scheme implies and without a path. Texts other than http and
// https URLs, such as null and capacitor://localhost, only lose their case and a slash at the end.
func webOrigin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return strings.ToLower(strings.TrimSuffix(address, "/"))
	}
	return u.Scheme + "://" + webHost(u.Scheme, u.Host)
}

// webHost is a host, with its port unless the scheme implies it.
func webHost(scheme, hostPort string) string {
	u := url.URL{Host: hostPort}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		if strings.Contains(host, ":") { // IPv6
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, port)
}
