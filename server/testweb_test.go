package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"nodest/internal/outbound"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/websearch"
	"nodest/websearch/provider"
	"nodest/websearch/provider/providertest"
	"nodest/websearch/reader"
)

// testWeb is a search engine and a few pages, on hosts with addresses that look public.
type testWeb struct {
	search providertest.Server

	mu      sync.Mutex
	mini    *outbound.Options // another web that takes its place; nil = none
	handler http.Handler      // serves all pages; nil = no host is known
	address string            // address of the server behind them
	closed  string            // an address that refuses connections
	fetched []string          // host and path
}

// serve makes handler answer for every host.
func (w *testWeb) serve(t testing.TB, handler http.Handler) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		w.mu.Lock()
		if req.URL.Path != "/robots.txt" {
			w.fetched = append(w.fetched, req.Host+req.URL.Path)
		}
		w.mu.Unlock()
		handler.ServeHTTP(out, req)
	}))
	t.Cleanup(server.Close)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler, w.address = handler, server.Listener.Addr().String()
}

func (w *testWeb) read() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.fetched...)
}

// pages serves an HTML page per host.
func (w *testWeb) pages(t testing.TB, byHost map[string]string) {
	w.serve(t, http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		page, ok := byHost[req.Host]
		if !ok || req.URL.Path == "/robots.txt" {
			http.NotFound(out, req)
			return
		}
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = out.Write([]byte(page))
	}))
}

// service is web search with SearXNG as its only provider.
func (w *testWeb) service(t testing.TB, store websearch.Store, log *slog.Logger) *websearch.Service {
	t.Helper()
	engine := httptest.NewServer(&w.search)
	guard, err := outbound.New(outbound.Options{Resolve: w.resolve, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := provider.New(provider.Config{Names: []string{provider.SearXNG}, BaseURL: engine.URL, Client: engine.Client()})
	if err != nil {
		t.Fatal(err)
	}
	pages := reader.New(guard, reader.Config{})
	t.Cleanup(func() {
		_ = chain.Close()
		pages.Close()
		engine.Close()
	})
	return websearch.New(store, websearch.Options{Chain: chain, Reader: pages, Embedder: offlineEmbedder, ReadTime: testTimeout, Log: log})
}

func offlineEmbedder(context.Context, string) (llm.Embedder, error) { return offline.Embedder{}, nil }

func (w *testWeb) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mini != nil {
		return w.mini.Resolve(ctx, host)
	}
	if w.handler == nil || strings.HasPrefix(host, "unknown.") {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
}

// refuse makes connections to an address fail.
func (w *testWeb) refuse(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = address
}

func (w *testWeb) dial(ctx context.Context, network, to string) (net.Conn, error) {
	w.mu.Lock()
	mini, address, closed := w.mini, w.address, w.closed == to
	w.mu.Unlock()
	if mini != nil {
		return mini.Dial(ctx, network, to)
	}
	if closed {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
