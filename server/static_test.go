package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"nodest/web"
)

// encoded makes a request that says itself which encodings it accepts, so that the client
// does not decode the answer.
func (h *testServer) encoded(path, encodings string, header ...string) *restResponse {
	h.t.Helper()
	return h.request("GET", path, "", append(header, "Accept-Encoding: "+encodings)...)
}

func gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestPageAndDocuments(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	page := h.request("GET", "/", "")
	page.wants(t, 200)
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/signin": "text/html; charset=utf-8", "/docs": "text/html; charset=utf-8",
		"/docs.css": "text/css; charset=utf-8", "/docs.js": "text/javascript; charset=utf-8", "/openapi.json": "application/json", "/asyncapi.yaml": "application/yaml",
		"/favicon.svg": "image/svg+xml",
	} {
		a := h.request("GET", path, "")
		a.wants(t, 200)
		if a.header.Get("Content-Type") != want || a.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s is %s, cached %s", path, a.header.Get("Content-Type"), a.header.Get("Cache-Control"))
		}
		again := h.request("GET", path, "", "If-None-Match: "+a.header.Get("ETag"))
		if again.status != 304 || len(again.body) > 0 || again.header.Get("ETag") != a.header.Get("ETag") {
			t.Errorf("%s again: %d with %d bytes", path, again.status, len(again.body))
		}
		h.request("GET", path, "", `If-None-Match: "another"`).wants(t, 200)
	}
	names := regexp.MustCompile(`"/(assets/[^"]+\.(?:js|css))"`).FindAllSubmatch(page.body, -1)
	if len(names) < 2 {
		t.Fatalf("the page names no assets: %s", page.body)
	}
	for _, name := range names {
		a := h.request("GET", "/"+string(name[1]), "")
		a.wants(t, 200)
		want, err := web.Files().Open(string(name[1]))
		h.must(err)
		data, err := io.ReadAll(want)
		h.must(err)
		if !bytes.Equal(a.body, data) || a.header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d bytes, cached %q", name[1], len(a.body), a.header.Get("Cache-Control"))
		}
	}
	for _, path := range []string{"/assets/missing.js", "/assets/", "/assets", "/assets/..%2findex.html", "/index.html", "/.env", "/chats/1"} {
		a := h.request("GET", path, "")
		a.refuses(t, 404, "not_found")
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("a missing %s is cached: %s", path, a.header.Get("Cache-Control"))
		}
	}
}

// Documents are compressed once and sent to those who accept it.
func TestDocumentsAreCompressed(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for _, path := range []string{"/openapi.json", "/docs"} {
		plain, packed := h.encoded(path, "identity"), h.encoded(path, "br, gzip")
		if plain.header.Get("Content-Encoding") != "" || packed.header.Get("Content-Encoding") != "gzip" || packed.header.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("%s: %v, %v", path, plain.header, packed.header)
		}
		if !bytes.Equal(gunzip(t, packed.body), plain.body) || len(packed.body) > len(plain.body)/3 {
			t.Errorf("%s: %d bytes of %d", path, len(packed.body), len(plain.body))
		}
		if plain.header.Get("ETag") == "" || plain.header.Get("ETag") != packed.header.Get("ETag") {
			t.Errorf("%s: %s and %s", path, plain.header.Get("ETag"), packed.header.Get("ETag"))
		}
		head := h.request("HEAD", path, "", "Accept-Encoding: identity")
		if head.status != 200 || head.header.Get("Content-Length") != plain.header.Get("Content-Length") {
			t.Errorf("HEAD %s: %d, %v", path, head.status, head.header)
		}
	}
}

// Every file of the page is served, with a type that browsers accept.
func TestFilesOfThePage(t *testing.T) {
	t.Parallel()
	short, long := []byte("x"), bytes.Repeat([]byte("let a = 1\n"), 1000)
	files, err := readPage(fstest.MapFS{
		"index.html": {Data: short}, "manifest.webmanifest": {Data: short}, "sw.js": {Data: long}, "icons/192.png": {Data: short},
		"assets/a-1.js": {Data: long}, "assets/a-1.css": {Data: short}, "assets/fonts/b.woff2": {Data: short}, "odd": {Data: short},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"index.html": "text/html; charset=utf-8", "manifest.webmanifest": "application/manifest+json", "sw.js": "text/javascript; charset=utf-8",
		"icons/192.png": "image/png", "assets/a-1.js": "text/javascript; charset=utf-8", "assets/a-1.css": "text/css; charset=utf-8",
		"assets/fonts/b.woff2": "font/woff2", "odd": "text/plain; charset=utf-8",
	} {
		f := files[name]
		if f == nil || f.contentType != want || (f.cacheControl == cacheForever) != strings.HasPrefix(name, "assets/") {
			t.Errorf("%s: %+v, want %s", name, f, want)
		}
		if (f.compressed != nil) != (len(f.data) > len(short)) {
			t.Errorf("%s: %d bytes, compressed %d", name, len(f.data), len(f.compressed))
		}
	}
}

// Long JSON answers are compressed for those who accept it; short ones, files and streams
// never are.
func TestAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	bearer := "Authorization: Bearer " + h.token
	character := h.rest("POST", "/characters", `{"roleCard":{"name":"Alice","description":"`+strings.Repeat("A guide. ", 500)+`"}}`).object(t)["id"].(string)
	path := base + "/characters/" + character
	plain, packed := h.encoded(path, "identity", bearer), h.encoded(path, "gzip", bearer)
	plain.wants(t, 200)
	if packed.header.Get("Content-Encoding") != "gzip" || !bytes.Equal(gunzip(t, packed.body), plain.body) || len(packed.body) > len(plain.body)/4 {
		t.Errorf("%v, %d bytes of %d", packed.header, len(packed.body), len(plain.body))
	}
	if packed.header.Get("ETag") != plain.header.Get("ETag") || packed.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", packed.header)
	}
	for _, path := range []string{base + "/me", path + "/export", "/metrics", "/healthz"} {
		if a := h.encoded(path, "gzip", bearer); a.status != 200 || a.header.Get("Content-Encoding") != "" && path != "/metrics" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
	chat := h.newChat()
	a := h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"Hello"}`, "Accept: text/event-stream", "Accept-Encoding: gzip")
	if a.status != 200 || a.header.Get("Content-Encoding") != "" || !bytes.Contains(a.body, []byte("Yes.")) {
		t.Errorf("a stream: %d %v", a.status, a.header)
	}
}

func TestWhoAcceptsGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br;q=1.0, gzip;q=0.8, *;q=0.1": true, "gzip;q=0": false, "gzip; q=0.0": false,
		"gzip;q=x": false, "identity": false, "xgzip": false, "deflate, gzip , br": true,
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": {header}}}
		if takesGzip(r) != want {
			t.Errorf("%q: %t", header, !want)
		}
	}
}

func TestContentSecurityPolicies(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for path, want := range map[string]string{
		"/docs": docsPolicy, "/docs.css": dataPolicy, "/openapi.json": dataPolicy, "/healthz": dataPolicy, "/nothing": dataPolicy,
		base + "/me": dataPolicy, base + "/nothing": dataPolicy,
	} {
		if got := h.request("GET", path, "").header.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	host := strings.TrimPrefix(h.http.URL, "http://")
	strict := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
		"connect-src 'self' ws://" + host + " wss://" + host + "; manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; " +
		"base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
	for _, path := range []string{"/", "/signin", "/favicon.svg"} {
		if got := h.request("GET", path, "").header.Get("Content-Security-Policy"); got != strict {
			t.Errorf("%s: %q", path, got)
		}
	}
	for _, host := range []string{"", "evil; script-src *", "a.example *", "[::1]:8080"} {
		if got := h.server.pagePolicy(&http.Request{Host: host}); !strings.Contains(got, "connect-src 'self'; ") {
			t.Errorf("host %q: %q", host, got)
		}
	}
	character := h.newCharacter()
	for _, path := range []string{"/avatar", "/export"} { // uploads of users
		if got := h.rest("GET", "/characters/"+character+path, "").header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") || !strings.Contains(got, "sandbox") {
			t.Errorf("%s: %q", path, got)
		}
	}
	// Nothing of the reference page is refused by its own policy.
	if page := string(h.request("GET", "/docs", "").body); strings.Contains(page, "<style") || strings.Contains(page, "style=") || strings.Count(page, "<script") != 1 ||
		!strings.Contains(page, `<script src="/docs.js" defer></script>`) || !strings.Contains(page, `<link rel="stylesheet" href="/docs.css">`) {
		t.Error("/docs needs what its policy refuses")
	}
}
