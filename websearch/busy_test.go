package websearch_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/outbound"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/reader"
)

// A user whose pages do not come has a share of what is read at once; others go on.
func TestPagesOfOneUserDoNotHoldUpThoseOfOthers(t *testing.T) {
	t.Parallel()
	const share = 32
	asked, end := make(chan struct{}, share), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Host == "slow.test" {
			asked <- struct{}{}
			<-end
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>Mill</h1><p>The mill at the bend of the river was built in 1802 by two brothers who could not agree."))
	}))
	t.Cleanup(server.Close)
	guard, err := outbound.New(outbound.Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := reader.New(guard, reader.Config{Wait: 50 * time.Millisecond, Timeout: time.Minute})
	t.Cleanup(pages.Close)
	db := storetest.Open(t)
	one, other := storetest.User(t, db), storetest.User(t, db)
	svc := websearch.New(db.WebSearch(), websearch.Options{Reader: pages})

	answers := make(chan error, share)
	for i := range share {
		go func() {
			_, err := svc.Read(t.Context(), one, "http://slow.test/"+strconv.Itoa(i), "")
			answers <- err
		}()
	}
	for range share {
		<-asked
	}
	_, err = svc.Read(t.Context(), one, "http://mill.test/", "")
	if !fault.Is(err, fault.RateLimited) {
		t.Fatal(err)
	}
	if got := fault.Public(err).RetryAfter; got != time.Second {
		t.Errorf("fault.Public(err).RetryAfter is %d, want %d", got, time.Second)
	}
	page, err := svc.Read(t.Context(), other, "http://mill.test/", "Who built the mill?")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.Markdown, "two brothers") {
		t.Errorf("page.Markdown is %q, want it with %q", page.Markdown, "two brothers")
	}
	close(end)
	for range share { // some have waited too long for the work on others
		if err := <-answers; err != nil {
			if !fault.Is(err, fault.RateLimited) {
				t.Fatal(err)
			}
		}
	}
	_, err = svc.Read(t.Context(), one, "http://mill.test/", "")
	if err != nil {
		t.Fatalf("the share is free again: %v", err)
	}
}
