package server

import (
	"net"
	"net/http"
	"net/netip"
)

// clientAddress is the address that a request comes from.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// clientNetwork is what the bounds of an address are counted for: a client with IPv6
// usually has all addresses of a /64.
func clientNetwork(r *http.Request) string {
	address := clientAddress(r)
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	network, _ := ip.WithZone("").Prefix(64) // every address of IPv6 has one
	return network.String()
}
