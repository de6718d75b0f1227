// Package miniweb serves a small closed web from a folder of saved pages, for tests and
// measurements of everything that reads the web. The pages are not part of the project;
// index.json in the folder has the routes and what a reader should make of them, and
// questions.json has questions with the results of an imagined search.
//
// All hosts seem to be at a public address, so that the guard of package outbound stays
// on; the dialer leads their connections to a server on loopback.
package miniweb

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nodest/internal/outbound"
	"nodest/internal/sharedtest"
)

// Address is the one that all hosts seem to have.
const Address = "203.0.113.7"

// Route is an address of the web and what to expect from reading it.
type Route struct {
	ID              string
	URL             string
	Host            string
	Path            string // with its query, if the route has one
	Status          int
	Headers         map[string]string
	ContentType     string `json:"content_type"`
	File            string
	Charset         string
	Lang            string
	Title           string
	Keep            []string
	Drop            []string
	Links           [][2]string // text and URL
	Canonical       string
	Published       string
	Final           string // target of a redirect
	Outcome         string
	OrElse          string `json:"outcome_alternative"`
	BlockedKind     string `json:"blocked_kind"`
	NearDuplicateOf string `json:"near_duplicate_of"`
	Generate        *Generated
	body            []byte
}

// Generated is a body that is made by the server.
type Generated struct {
	Kind              string // gzip_repeat, endless, drip, header_bytes or dns_failure
	Byte              byte
	DecompressedBytes int `json:"decompressed_bytes"`
	Chunk             string
	Count             int
}

// Question has an answer on one of the pages.
type Question struct {
	ID             string
	Lang           string
	Question       string
	ExpectedURL    string   `json:"expected_url"`
	ExpectedRoute  string   `json:"expected_route"`
	Quote          string   // is on the expected page
	AlsoAcceptable []string `json:"also_acceptable"` // routes with the same quote
	Serp           []Result
}

// Result is one of an imagined search.
type Result struct{ Title, URL, Description string }

// Web is a running server with the routes and questions of a folder.
type Web struct {
	Routes    []Route
	Questions []Question
	server    *httptest.Server
	hosts     map[string]bool // false for a host that cannot be resolved
}

// Start serves the folder data/miniweb of the shared test data until the test ends. The test
// is skipped without it.
func Start(tb testing.TB) *Web {
	tb.Helper()
	w, err := Open(sharedtest.Require(tb, "data/miniweb"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Close)
	return w
}

// Open serves a folder until Close is called.
func Open(dir string) (*Web, error) {
	w := &Web{hosts: map[string]bool{}}
	if err := load(filepath.Join(dir, "index.json"), w); err != nil {
		return nil, err
	}
	if err := load(filepath.Join(dir, "questions.json"), w); err != nil {
		return nil, err
	}
	for i := range w.Routes {
		r := &w.Routes[i]
		if r.File != "" {
			body, err := os.ReadFile(filepath.Join(dir, r.File))
			if err != nil {
				return nil, err
			}
			r.body = body
		}
		w.hosts[r.Host] = r.Generate == nil || r.Generate.Kind != "dns_failure"
	}
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	return w, nil
}

func load(path string, into *Web) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Close stops the server and its connections.
func (w *Web) Close() {
	w.server.CloseClientConnections()
	w.server.Close()
}

// Options let a guard reach the hosts of this web, and no other.
func (w *Web) Options() outbound.Options {
	return outbound.Options{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			switch {
			case w.hosts[host]:
				return []netip.Addr{netip.MustParseAddr(Address)}, nil
			case host == "localhost":
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(address); host != Address {
				return nil, fmt.Errorf("miniweb: a connection to %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
		},
	}
}

// Route returns the route with an id, or nil.
func (w *Web) Route(id string) *Route {
	for i := range w.Routes {
		if w.Routes[i].ID == id {
			return &w.Routes[i]
		}
	}
	return nil
}

// find returns the route of a request. A query that no route has is ignored.
func (w *Web) find(host, path, query string) *Route {
	var found *Route
	for i := range w.Routes {
		r := &w.Routes[i]
		if r.Host != host {
			continue
		}
		if query != "" && r.Path == path+"?"+query {
			return r
		}
		if r.Path == path {
			found = r
		}
	}
	return found
}

func (w *Web) serve(out http.ResponseWriter, req *http.Request) {
	host := strings.TrimPrefix(req.Host, "www.")
	host, _, _ = strings.Cut(host, ":")
	r := w.find(host, req.URL.Path, req.URL.RawQuery)
	if r == nil {
		http.NotFound(out, req)
		return
	}
	out.Header()["Content-Type"] = nil // not guessed
	if r.ContentType != "" {
		out.Header().Set("Content-Type", r.ContentType)
	}
	for k, v := range r.Headers {
		out.Header().Set(k, v)
	}
	if r.Generate != nil {
		r.Generate.serve(out, req)
		return
	}
	out.WriteHeader(max(r.Status, 200))
	out.Write(r.body)
}

func (g *Generated) serve(out http.ResponseWriter, req *http.Request) {
	switch g.Kind {
	case "gzip_repeat":
		z := gzip.NewWriter(out)
		block := bytes.Repeat([]byte{g.Byte}, 1<<16)
		for left := g.DecompressedBytes; left > 0; left -= len(block) {
			if _, err := z.Write(block[:min(left, len(block))]); err != nil {
				return
			}
		}
		_ = z.Close() // the client has left
	case "endless":
		block := strings.Repeat(g.Chunk, 1000)
		for {
			if _, err := io.WriteString(out, block); err != nil {
				return
			}
		}
	case "drip":
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if _, err := out.Write([]byte("<")); err != nil {
				return
			}
			out.(http.Flusher).Flush()
			select {
			case <-req.Context().Done():
				return
			case <-tick.C:
			}
		}
	case "header_bytes":
		out.Header().Set("X-Filler", strings.Repeat("x", g.Count))
		out.WriteHeader(http.StatusOK)
	}
}
