package outbound

import "net/netip"

// network is a range of addresses that is not part of the public Internet, or that
// leads to addresses of another range (IPv4 inside IPv6).
type network struct {
	prefix netip.Prefix
	kind   string
}

// The networks of IANA's registries of special addresses. The IPv4 networks for
// documentation are not here: nobody routes them, and tests use them as public ones.
// Of IPv6 only 2000::/3 is public at all.
var (
	special4 = []network{
		{netip.MustParsePrefix("0.0.0.0/8"), "local"},
		{netip.MustParsePrefix("10.0.0.0/8"), "private"},
		{netip.MustParsePrefix("100.64.0.0/10"), "carrier-private"},
		{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
		{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
		{netip.MustParsePrefix("172.16.0.0/12"), "private"},
		{netip.MustParsePrefix("192.0.0.0/24"), "special"},
		{netip.MustParsePrefix("192.88.99.0/24"), "6to4"},
		{netip.MustParsePrefix("192.168.0.0/16"), "private"},
		{netip.MustParsePrefix("198.18.0.0/15"), "test network"},
		{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
		{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	}
	public6  = netip.MustParsePrefix("2000::/3")
	special6 = []network{
		{netip.MustParsePrefix("::/128"), "local"},
		{netip.MustParsePrefix("::1/128"), "loopback"},
		{netip.MustParsePrefix("::ffff:0:0/96"), "IPv4-mapped"},
		{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
		{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64"},
		{netip.MustParsePrefix("fc00::/7"), "private"},
		{netip.MustParsePrefix("fe80::/10"), "link-local"},
		{netip.MustParsePrefix("ff00::/8"), "multicast"},
		{netip.MustParsePrefix("2001::/23"), "special"}, // Teredo among them
		{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
		{netip.MustParsePrefix("2002::/16"), "6to4"},
		{netip.MustParsePrefix("3fff::/20"), "documentation"},
	}
)

// special returns why an address may not be reached, or "" for a public one.
func special(a netip.Addr) string {
	nets := special4
	if !a.Is4() {
		nets = special6
	}
	a = a.WithZone("") // no prefix contains an address with a zone
	for _, n := range nets {
		if n.prefix.Contains(a) {
			return n.kind
		}
	}
	if !a.Is4() && !public6.Contains(a) {
		return "reserved"
	}
	return ""
}
