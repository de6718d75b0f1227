package websearch_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/outbound"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/reader"
)

// A host without https is read over http if the address has no scheme, or says http; never if it says
// https, also when it was asked with https before.
func TestAHostThatRefusesHTTPSIsAskedOverHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>Mill</h1><p>The mill at the bend of the river was built in 1802 by two brothers who could not agree."))
	}))
	t.Cleanup(server.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	secure := map[string]string{ // where port 443 of a host leads
		"203.0.113.1:443": closed.Addr().String(),          // refused.test
		"203.0.113.2:443": server.Listener.Addr().String(), // plain.test: no TLS there
	}
	guard, err := outbound.New(outbound.Options{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(map[string]string{"refused.test": "203.0.113.1", "plain.test": "203.0.113.2"}[host])}, nil
		},
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := secure[addr]
			if to == "" {
				to = server.Listener.Addr().String()
			}
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := reader.New(guard, reader.Config{})
	t.Cleanup(pages.Close)
	db := storetest.Open(t)
	user := storetest.User(t, db)
	svc := websearch.New(db.WebSearch(), websearch.Options{Reader: pages})
	for _, c := range []struct{ address, read string }{
		{"https://refused.test/a", ""},
		{"refused.test/b", "http://refused.test/b"},
		{"http://refused.test/c", "http://refused.test/c"},
		{"https://plain.test/a", ""},
		{" plain.test/b", "http://plain.test/b"},
		{"https://plain.test/c", ""},
	} {
		page, err := svc.Read(t.Context(), user, c.address, "")
		switch {
		case c.read == "" && !fault.Is(err, fault.PageUnreadable):
			t.Errorf("%s: %+v, error %v", c.address, page, err)
		case c.read != "" && (err != nil || page.URL != c.read || !strings.Contains(page.Markdown, "two brothers")):
			t.Errorf("%s: %+v, error %v", c.address, page, err)
		}
	}
	for _, address := range []string{"mailto:ann@example.org", "javascript:alert(1)", "", "localhost/a", "file:///etc/passwd"} {
		if _, err := svc.Read(t.Context(), user, address, ""); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: error %v", address, err)
		}
	}
}
