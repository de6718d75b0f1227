package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestTheClientBehindATrustedProxy(t *testing.T) {
	t.Parallel()
	s := &Server{opts: Options{Log: slog.New(slog.DiscardHandler), TrustedProxies: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("fd00::/8"),
	}}}
	for _, c := range []struct {
		name, from string
		forwarded  []string
		want       string
	}{
		{"no proxy", "203.0.113.9:50", nil, "203.0.113.9"},
		{"a client that forges the header", "203.0.113.9:50", []string{"1.1.1.1"}, "203.0.113.9"},
		{"a proxy", "127.0.0.1:50", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a proxy, mapped", "[::ffff:127.0.0.1]:50", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a client that forges the header behind a proxy", "127.0.0.1:50", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"a forged trusted address", "127.0.0.1:50", []string{"10.0.0.7, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "127.0.0.1:50", []string{"1.1.1.1, 203.0.113.9, 10.1.2.3"}, "203.0.113.9"},
		{"several headers", "127.0.0.1:50", []string{"1.1.1.1", "203.0.113.9", "10.1.2.3"}, "203.0.113.9"},
		{"with ports", "[fd00::1]:50", []string{"203.0.113.9:4711, [fd00::2]:99"}, "203.0.113.9"},
		{"IPv6", "[fd00::1]:50", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"nothing but proxies", "127.0.0.1:50", []string{"10.0.0.1, 10.0.0.2"}, "10.0.0.1"},
		{"a proxy that says nothing", "127.0.0.1:50", nil, "127.0.0.1"},
		{"something that is no address", "127.0.0.1:50", []string{"203.0.113.9, unknown"}, "127.0.0.1"},
		{"no address at all", "@", nil, "@"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.from
		r.Header["X-Forwarded-For"] = c.forwarded
		if got := s.clientAddress(r); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAProxyThatIsNotNamedIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for listed, want := range map[string]int{"": 1, "10.0.0.0/8": 1, "127.0.0.0/8": 0} {
		h := newTestServer(t, func(o *Options) {
			if listed != "" {
				o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(listed)}
			}
		})
		for range 2 {
			h.rest("POST", "/auth/login", `{"username":"nobody","password":"guess"}`, "Authorization: ", "X-Forwarded-For: 203.0.113.7").refuses(t, 401, "unauthenticated")
		}
		if n := strings.Count(h.log.String(), "NODEST_TRUSTED_PROXIES"); n != want {
			t.Errorf("proxies %q: logged %d times, want %d", listed, n, want)
		}
	}
}
