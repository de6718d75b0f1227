package reader_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/andybalholm/brotli"

	"nodest/internal/outbound"
	"nodest/websearch/reader"
)

const story = `<html lang="en"><head><title>The mill | Site</title></head><body><h1>The mill</h1>
<p>The mill at the bend of the river was built in 1802 by two brothers who could not agree on the colour of its door.</p>
<p>It has ground rye and barley for six generations, and on the first Sunday in May it still does, if the water is high enough.</p></body></html>`

// site is a host that serves h, and the reader that reaches it under every name.
func site(t *testing.T, c reader.Config, h http.HandlerFunc) *reader.Reader {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return through(t, c, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	})
}

func through(t *testing.T, c reader.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *reader.Reader {
	t.Helper()
	guard, err := outbound.New(outbound.Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
		},
		Dial: dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := reader.New(guard, c)
	t.Cleanup(r.Close)
	return r
}

// page serves body for every address but robots.txt.
func page(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, body)
	}
}

// pack compresses a text with what open makes a writer of.
func pack(t *testing.T, text string, open func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	z := open(&b)
	_, err := io.WriteString(z, text)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func toGzip(w io.Writer) io.WriteCloser   { return gzip.NewWriter(w) }
func toZlib(w io.Writer) io.WriteCloser   { return zlib.NewWriter(w) }
func toBrotli(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }
func toDeflate(w io.Writer) io.WriteCloser {
	z, err := flate.NewWriter(w, flate.BestCompression)
	if err != nil {
		panic(err)
	}
	return z
}

func TestCompressedPagesAreReadAsInBrowsers(t *testing.T) {
	t.Parallel()
	zipped, br := pack(t, story, toGzip), pack(t, story, toBrotli)
	zlib, deflate := pack(t, story, toZlib), pack(t, story, toDeflate)
	two := pack(t, story[:200], toGzip) + pack(t, story[200:], toGzip)
	for name, c := range map[string]struct {
		encoding, body string
		want           reader.Outcome
	}{
		"plain":                         {"", story, reader.OK},
		"identity":                      {"identity", story, reader.OK},
		"gzip":                          {"gzip", zipped, reader.OK},
		"gzip, zeros behind":            {"gzip", zipped + "\x00\x00\x00\x00\x00", reader.OK},
		"gzip, a line break behind":     {"x-gzip", zipped + "\r\n", reader.OK},
		"gzip, half a head behind":      {"gzip", zipped + "\x1f", reader.OK},
		"gzip in two members":           {"gzip", two, reader.OK},
		"gzip in two members, and more": {"GZIP", two + "<!-- -->", reader.OK},
		"br":                            {"br", br, reader.OK},
		"br, a line break behind":       {"br", br + "\n", reader.OK},
		"br, much behind":               {"br", br + strings.Repeat("x", 100_000), reader.OK},
		"deflate":                       {"deflate", zlib, reader.OK},
		"deflate, zeros behind":         {"deflate", zlib + "\x00\x00", reader.OK},
		"deflate without its head":      {"deflate", deflate, reader.OK},
		"deflate without, bytes behind": {"deflate", deflate + "\n\n", reader.OK},
		"br, then gzip":                 {"br, gzip", pack(t, br, toGzip), reader.OK},
		"identity, then gzip":           {"identity,gzip", zipped, reader.OK},
		"half of the br in gzip":        {"br, gzip", pack(t, br[:len(br)/2], toGzip), reader.Failed},
		"four times":                    {"gzip, gzip, gzip, gzip", zipped, reader.Failed},
		"nothing":                       {"gzip", "", reader.Empty},
		"half of gzip":                  {"gzip", zipped[:len(zipped)/2], reader.Failed},
		"gzip without its check":        {"gzip", zipped[:len(zipped)-8], reader.Failed},
		"half of br":                    {"br", br[:len(br)/2], reader.Failed},
		"half of deflate":               {"deflate", deflate[:len(deflate)/2], reader.Failed},
		"no gzip":                       {"gzip", story, reader.Failed},
		"another encoding":              {"zstd", story, reader.Failed},
		"a word that is no encoding":    {"none", story, reader.OK},
		"a charset":                     {"UTF-8", story, reader.OK},
		"packed all the same":           {"none", zipped, reader.Unsupported},
	} {
		r := site(t, reader.Config{}, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Encoding", c.encoding)
			page(c.body)(w, req)
		})
		p, err := r.Read(t.Context(), "http://mill.test/", reader.Options{Direct: true})
		if got := reader.OutcomeOf(err); got != c.want || err == nil && (p.Title != "The mill" || !strings.Contains(p.Markdown, "built in 1802") || !strings.Contains(p.Markdown, "high enough")) {
			t.Errorf("%s: got %v, %v", name, p, err)
		}
	}
}

func TestAPageThatHasNotChangedIsNotReadAgain(t *testing.T) {
	r := site(t, reader.Config{}, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2023 10:00:00 GMT")
		w.Header().Set("Cache-Control", "public, max-age=600")
		if req.Header.Get("If-None-Match") == `"v1"` || req.Header.Get("If-Modified-Since") == "Mon, 02 Jan 2023 10:00:00 GMT" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		page(story)(w, req)
	})
	p, err := r.Read(t.Context(), "http://mill.test/", reader.Options{})
	if err != nil || p.NotModified || p.ETag != `"v1"` || p.LastModified == "" || p.Expires.Sub(p.FetchedAt) != 10*time.Minute || len(p.Hash) != 64 {
		t.Fatalf("first: %+v, %v", p, err)
	}
	for _, o := range []reader.Options{{ETag: p.ETag}, {LastModified: p.LastModified}} {
		again, err := r.Read(t.Context(), "http://mill.test/", o)
		if err != nil || !again.NotModified || again.Markdown != "" || again.Expires.IsZero() {
			t.Errorf("%+v: %+v, %v", o, again, err)
		}
	}
}

func TestRobotsAreAskedOncePerHostAndHour(t *testing.T) {
	now := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	var asked atomic.Int32
	r := site(t, reader.Config{Now: func() time.Time { return now }}, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/robots.txt" {
			asked.Add(1)
			fmt.Fprint(w, "User-agent: *\nDisallow: /private\nDisallow: /*?print=\n\nUser-agent: nodest\nDisallow: /ours\nDisallow: /*?print=\n")
			return
		}
		if req.URL.Path == "/to" {
			http.Redirect(w, req, "/ours", http.StatusFound)
			return
		}
		page(story)(w, req)
	})
	for path, want := range map[string]reader.Outcome{
		"/": reader.OK, "/private": reader.OK, "/ours/x": reader.RobotsDisallowed, "/x?print=1": reader.RobotsDisallowed, "/to": reader.RobotsDisallowed,
	} {
		if _, err := r.Read(t.Context(), "http://mill.test"+path, reader.Options{}); reader.OutcomeOf(err) != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	if _, err := r.Read(t.Context(), "http://mill.test/ours", reader.Options{Direct: true}); err != nil {
		t.Errorf("an address that the user has named: %v", err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("robots.txt was asked for %d times", n)
	}
	now = now.Add(2 * time.Hour)
	_, _ = r.Read(t.Context(), "http://mill.test/", reader.Options{})
	if n := asked.Load(); n != 2 {
		t.Errorf("after two hours, robots.txt was asked for %d times", n)
	}
}

// A host that cannot say what it allows allows nothing, one that says nothing allows all.
func TestWithoutRulesForRobotsTheStatusDecides(t *testing.T) {
	t.Parallel()
	forbid := "User-agent: *\nDisallow: /"
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  reader.Outcome
	}{
		"no file":    {http.NotFound, reader.OK},
		"forbidden":  {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, forbid, http.StatusForbidden) }, reader.OK},
		"an error":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusInternalServerError) }, reader.RobotsDisallowed},
		"no service": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) }, reader.RobotsDisallowed},
		"no answer":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, reader.Failed},
		"five moves": {moves(5, forbid), reader.RobotsDisallowed},
		"six moves":  {moves(6, forbid), reader.OK},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) { zipped(w, forbid) }, reader.RobotsDisallowed},
		"a large file": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat("# filler\n", 50_000)+forbid)
		}, reader.RobotsDisallowed},
		"behind the limit, and cut in a line": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "User-agent: *\n"+strings.Repeat("#", 512_000-14-12)+"\nDisallow: /else\n"+forbid)
		}, reader.OK},
	} {
		r := site(t, reader.Config{}, func(w http.ResponseWriter, req *http.Request) {
			if strings.HasPrefix(req.URL.Path, "/robots") {
				c.serve(w, req)
				return
			}
			page(story)(w, req)
		})
		_, err := r.Read(t.Context(), "http://mill.test/", reader.Options{})
		if got := reader.OutcomeOf(err); got != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// moves redirects n times before it serves text.
func moves(n int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if at := len(req.URL.Query().Get("n")); at < n {
			http.Redirect(w, req, "/robots.txt?n="+strings.Repeat("x", at+1), http.StatusFound)
			return
		}
		fmt.Fprint(w, text)
	}
}

func zipped(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	fmt.Fprint(z, text)
	z.Close()
}

func TestAHostWhoseServerFailedIsAskedAgainAfterAWhile(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	var asked atomic.Int32
	r := site(t, reader.Config{Now: func() time.Time { return now }}, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/robots.txt" && asked.Add(1) == 1 {
			http.Error(w, "", http.StatusBadGateway)
			return
		}
		page(story)(w, req)
	})
	for _, want := range []reader.Outcome{reader.RobotsDisallowed, reader.RobotsDisallowed, reader.OK} {
		if _, err := r.Read(t.Context(), "http://mill.test/", reader.Options{}); reader.OutcomeOf(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if asked.Load() == 1 && want == reader.RobotsDisallowed {
			now = now.Add(3 * time.Minute)
		}
	}
}

func TestABusyHostIsAskedOnceMore(t *testing.T) {
	for after, want := range map[string]struct {
		requests int32
		outcome  reader.Outcome
	}{"0": {2, reader.OK}, "60": {1, reader.Retry}, "": {1, reader.Retry}, "Mon, 02 Jan 2006 15:04:05 GMT": {2, reader.OK}} {
		var requests atomic.Int32
		r := site(t, reader.Config{}, func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/robots.txt" && requests.Add(1) == 1 {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			page(story)(w, req)
		})
		_, err := r.Read(t.Context(), "http://mill.test/", reader.Options{})
		if reader.OutcomeOf(err) != want.outcome || requests.Load() != want.requests {
			t.Errorf("Retry-After %q: %v after %d requests", after, err, requests.Load())
		}
	}
}

func TestHostErrorsSayWhatIsWrongWithTheHost(t *testing.T) {
	secure := httptest.NewUnstartedServer(page(story))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for name, c := range map[string]struct {
		url  string
		dial func(ctx context.Context, network, address string) (net.Conn, error)
		kind reader.Kind
	}{
		"refused": {"http://a.test/", func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}, reader.KindRefused},
		"certificate": {"https://a.test/", func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, secure.Listener.Addr().String())
		}, reader.KindCertificate},
		"name": {"https://a.test/", func(context.Context, string, string) (net.Conn, error) {
			return nil, &tls.CertificateVerificationError{Err: errors.New("not for this name")}
		}, reader.KindCertificate},
		"dns": {"http://a.test/", func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		}, reader.KindDNS},
	} {
		r := through(t, reader.Config{}, c.dial)
		_, err := r.Read(t.Context(), c.url, reader.Options{})
		var e *reader.Error
		if !errors.As(err, &e) || e.Outcome != reader.HostError || e.Kind != c.kind || e.URL != c.url {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatusesHaveOutcomes(t *testing.T) {
	for status, want := range map[int]reader.Outcome{
		200: reader.OK, 204: reader.Empty, 400: reader.Failed, 401: reader.Blocked, 403: reader.Blocked, 404: reader.NotFound,
		407: reader.Blocked, 410: reader.NotFound, 429: reader.Retry, 451: reader.Blocked, 500: reader.Failed, 502: reader.Failed, 503: reader.Retry,
	} {
		r := site(t, reader.Config{}, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			if status != 204 {
				fmt.Fprint(w, story)
			}
		})
		if _, err := r.Read(t.Context(), "http://mill.test/", reader.Options{Direct: true}); reader.OutcomeOf(err) != want {
			t.Errorf("%d: got %v, want %s", status, err, want)
		}
	}
}

func TestAMetaRefreshIsFollowedTwice(t *testing.T) {
	r := site(t, reader.Config{}, func(w http.ResponseWriter, req *http.Request) {
		next := map[string]string{"/1": "/2", "/2": "/3", "/0": "/1", "/loop": "/loop2", "/loop2": "/loop", "/lan": "http://10.0.0.1/"}[req.URL.Path]
		if next == "" {
			page(story)(w, req)
			return
		}
		page(`<meta http-equiv="Refresh" content="1; URL='`+next+`'">`)(w, req)
	})
	for path, want := range map[string]reader.Outcome{"/1": reader.OK, "/0": reader.Failed, "/loop": reader.Failed} {
		p, err := r.Read(t.Context(), "http://mill.test"+path, reader.Options{})
		if reader.OutcomeOf(err) != want || err == nil && (p.FinalURL != "http://mill.test/3" || p.URL != "http://mill.test"+path) {
			t.Errorf("%s: %+v, %v", path, p, err)
		}
	}
}

func TestTheWayOfAnEndedContextIsShort(t *testing.T) {
	arrived := make(chan struct{}, 4)
	r := site(t, reader.Config{}, func(_ http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		<-req.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := r.Read(ctx, "http://mill.test/", reader.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRequestsSayWhoAsksAndInWhichLanguage(t *testing.T) {
	var got http.Header
	r := site(t, reader.Config{}, func(w http.ResponseWriter, req *http.Request) {
		got = req.Header.Clone()
		page(story)(w, req)
	})
	if _, err := r.Read(t.Context(), "http://mill.test/", reader.Options{Lang: "zh-CN", Direct: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Get("User-Agent"), "NodeST") || got.Get("Accept-Language") != "zh, en;q=0.5" || got.Get("Accept-Encoding") != "gzip, br" {
		t.Errorf("got %v", got)
	}
}

// A page has nothing that a terminal or a model would take for more than text.
func TestAPageHasNoControlCharacters(t *testing.T) {
	const hostile = "Care\x1b[2J\x1b]0;owned\x07 of \u202ethe\u009b31m lens&#27;[31m"
	feed := `<rss><channel><title>` + "Care\u202e" + ` news</title><item><title>T&#8238;</title><pubDate>1&#8238; May</pubDate></item></channel></rss>`
	for kind, body := range map[string]string{
		"text/html":           strings.ReplaceAll(story, "The mill", hostile),
		"text/markdown":       "# " + hostile + "\n\n" + hostile,
		"application/rss+xml": feed,
	} {
		r := site(t, reader.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			_, _ = io.WriteString(w, body)
		})
		got, err := r.Read(t.Context(), "http://lens.test/", reader.Options{Direct: true})
		if reader.OutcomeOf(err) == reader.Unsupported && kind == "text/markdown" { // bytes of this kind are binary
			continue
		}
		if err != nil || !strings.HasPrefix(got.Title, "Care") {
			t.Fatalf("%s: %+v, %v", kind, got, err)
		}
		for _, r := range got.Title + got.Markdown {
			if r != '\n' && unicode.IsControl(r) || r == '\u202e' {
				t.Errorf("%s: the page contains %U: %q, %q", kind, r, got.Title, got.Markdown)
				break
			}
		}
	}
}

func TestOnlyTheStartOfALongTextIsUsed(t *testing.T) {
	for _, kind := range []string{"text/plain", "text/markdown", "application/json"} {
		r := site(t, reader.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, strings.Repeat("All about lighthouses.\n", 5<<20/23))
		})
		got, err := r.Read(t.Context(), "http://long.test/", reader.Options{Direct: true})
		if err != nil || len(got.Markdown) < 2<<20 || len(got.Markdown) > 4<<20 {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestAPanicIsAFailure(t *testing.T) {
	r := site(t, reader.Config{Now: func() time.Time { panic("clock") }}, page(story))
	if _, err := r.Read(t.Context(), "http://mill.test/", reader.Options{Direct: true}); reader.OutcomeOf(err) != reader.Failed {
		t.Errorf("got %v", err)
	}
}
