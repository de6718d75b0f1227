package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"nodest/internal/account"
)

// clientAddress is the address of the client: the one that connected, or, if that is a trusted
// proxy, the last one in X-Forwarded-For that is not. The addresses before that one come from
// the client and may be forged.
func (s *Server) clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	addr, bad := netip.ParseAddr(host)
	if err != nil || bad != nil {
		return r.RemoteAddr
	}
	if r.Header.Get("X-Forwarded-For") != "" && !s.trusted(addr) {
		s.proxyHint.Do(func() {
			s.opts.Log.Warn("ignoring X-Forwarded-For from an address that is not in NODEST_TRUSTED_PROXIES; if it is your proxy, add it; otherwise all its clients share one limit", "address", host)
		})
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !s.trusted(addr) {
			break
		}
		next, err := forwarded(hop)
		if err != nil {
			break
		}
		addr = next
	}
	return addr.Unmap().String()
}

// trusted reports whether an address belongs to a trusted proxy.
func (s *Server) trusted(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(s.opts.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// forwarded parses an address as proxies write it; some add a port.
func forwarded(hop string) (netip.Addr, error) {
	hop = strings.TrimSpace(hop)
	if with, err := netip.ParseAddrPort(hop); err == nil {
		return with.Addr(), nil
	}
	return netip.ParseAddr(strings.Trim(hop, "[]"))
}

// clientNetwork identifies a client that has not signed in, to count what it takes.
func (s *Server) clientNetwork(r *http.Request) string { return account.Network(s.clientAddress(r)) }
