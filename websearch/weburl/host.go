package weburl

import (
	"net/netip"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/publicsuffix"

	"nodest/internal/fault"
)

// Hostname returns the host of an address without a leading "www.", or "" if it cannot be parsed.
func Hostname(address string) string {
	host, _ := hostAndPath(address)
	return host
}

func hostAndPath(address string) (host, path string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	return withoutWWW(u.Hostname()), u.Pathname()
}

// NormalizeHostName returns the host that a user or a setting names, by its name or by an
// address on it.
func NormalizeHostName(s string) string {
	if host := Hostname(s); host != "" {
		return host
	}
	return strings.ToLower(strings.TrimPrefix(s, "www."))
}

// Site returns the registrable domain of a host: "bbc.co.uk" for "news.bbc.co.uk". Names below
// a suffix that many users share, such as github.io, are sites of their own. An IP address and a
// host without a domain are returned as they are.
func Site(host string) string {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return host
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return site
}

// withoutWWW keeps "www." if what follows is no domain.
func withoutWWW(host string) string {
	if rest, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(rest, ".") {
		return rest
	}
	return host
}

// checkHost rejects hosts and pages that are never read. Names that resolve to a private
// address are the dialer's business.
func checkHost(host, path string, allowPrivate func(host string) bool) error {
	switch {
	case host == "", host[0] == '.', host[len(host)-1] == '.', strings.Contains(host, ".."):
		return fault.New(fault.Invalid, "host is empty or has an empty label")
	case isWithin(host, "example.com"):
		return fault.New(fault.Invalid, "example.com is not a real site")
	case host == "google.com", host == "baidu.com" && path == "/s":
		return fault.New(fault.Invalid, "pages of search engines are not read")
	case isLocal(host) && (allowPrivate == nil || !allowPrivate(host)):
		return fault.New(fault.Invalid, "host is private or local")
	}
	return nil
}

func isWithin(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}

func isLocal(host string) bool {
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return isWithin(host, "localhost") || isWithin(host, "local") || isWithin(host, "internal")
	}
	for _, p := range notPublic {
		if p.Contains(addr) {
			return true
		}
	}
	return !addr.IsGlobalUnicast() || addr.IsPrivate()
}

// notPublic are the networks that netip takes for global addresses although they lead to no
// public host, or to one by an IPv4 address inside.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by customers of a provider
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),         // IPv4-compatible
	netip.MustParsePrefix("::ffff:0:0/96"), // IPv4-mapped
	netip.MustParsePrefix("64:ff9b::/96"),  // NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"), // Teredo
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("fec0::/10"),
}
