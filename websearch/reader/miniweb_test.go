package reader_test

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nodest/internal/outbound"
	"nodest/websearch/miniweb"
	"nodest/websearch/reader"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newReader(t testing.TB, w *miniweb.Web, c reader.Config) *reader.Reader {
	t.Helper()
	guard, err := outbound.New(w.Options())
	if err != nil {
		t.Fatal(err)
	}
	r := reader.New(guard, c)
	t.Cleanup(r.Close)
	return r
}

// tally counts how many of each promise hold.
type tally struct {
	names []string
	all   map[string][2]int
}

func (c *tally) check(t *testing.T, name string, ok bool, format string, args ...any) {
	t.Helper()
	if c.all == nil {
		c.all = map[string][2]int{}
	}
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
	n := c.all[name]
	n[1]++
	if ok {
		n[0]++
	} else {
		t.Errorf(name+": "+format, args...)
	}
	c.all[name] = n
}

func collapse(s string) string { return strings.Join(strings.Fields(s), " ") }

// normal is a part of what the callers of the reader do with addresses.
func normal(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	q := u.Query()
	for k := range q {
		if strings.HasPrefix(k, "utm_") {
			q.Del(k)
		}
	}
	u.RawQuery, u.Fragment = q.Encode(), ""
	return u.String()
}

func TestMiniwebRoutesAreReadAsExpected(t *testing.T) {
	w := miniweb.Start(t)
	patient := newReader(t, w, reader.Config{Timeout: 20 * time.Second})
	hasty := newReader(t, w, reader.Config{Timeout: 2 * time.Second})
	pages := map[string]*reader.Page{}
	c := &tally{}
	for _, route := range w.Routes {
		t.Run(route.ID, func(t *testing.T) {
			r := patient
			if route.Outcome == "timeout" {
				r = hasty
			}
			page, err := r.Read(t.Context(), route.URL, reader.Options{Lang: route.Lang})
			checkOutcome(t, c, route, page, err)
			if err == nil {
				pages[route.ID] = page
				checkPage(t, c, route, page)
			}
		})
	}
	for _, route := range w.Routes {
		of := route.NearDuplicateOf
		if of == "" {
			continue
		}
		a, b := pages[route.ID], pages[of]
		c.check(t, "near duplicate", a != nil && b != nil && reader.NearDuplicate(a.Shingles, b.Shingles), "%s and %s", route.ID, of)
	}
	checkDistinct(t, c, w, pages)
	for _, name := range c.names {
		t.Logf("%-15s %3d of %3d", name, c.all[name][0], c.all[name][1])
	}
}

// checkDistinct holds different pages apart.
func checkDistinct(t *testing.T, c *tally, w *miniweb.Web, pages map[string]*reader.Page) {
	for _, a := range w.Routes {
		for _, b := range w.Routes {
			x, y := pages[a.ID], pages[b.ID]
			if x == nil || y == nil || a.ID >= b.ID || a.NearDuplicateOf == b.ID || b.NearDuplicateOf == a.ID {
				continue
			}
			same := x.FinalURL == y.FinalURL || x.Canonical != "" && x.Canonical == y.Canonical
			c.check(t, "distinct", same || !reader.NearDuplicate(x.Shingles, y.Shingles), "%s and %s", a.ID, b.ID)
		}
	}
}

func checkOutcome(t *testing.T, c *tally, route miniweb.Route, page *reader.Page, err error) {
	t.Helper()
	got := string(reader.OutcomeOf(err))
	want := []string{route.Outcome, route.OrElse}
	switch route.Outcome {
	case "redirect":
		want = []string{"ok"}
		c.check(t, "final", page != nil && page.FinalURL == route.Final, "got %v, want %s", page, route.Final)
	case "robots":
		want = []string{"ok"}
	case "blocked_address":
		want = []string{"refused"}
	}
	c.check(t, "outcome", slices.Contains(want, got), "got %s (%v), want %s", got, err, want[0])
	var e *reader.Error
	if errors.As(err, &e) && route.BlockedKind != "" {
		c.check(t, "kind", string(e.Kind) == route.BlockedKind, "got %s, want %s", e.Kind, route.BlockedKind)
		for _, s := range route.Keep {
			c.check(t, "keep", strings.Contains(e.Teaser, s), "the teaser lacks %q: %s", s, e.Teaser)
		}
		for _, s := range route.Drop {
			c.check(t, "drop", !strings.Contains(e.Teaser, s), "%q", s)
		}
		if route.Title != "" {
			c.check(t, "title", e.Title == route.Title, "got %q", e.Title)
		}
	}
	if route.Outcome == "host_error" {
		c.check(t, "kind", e != nil && e.Kind == reader.KindDNS, "got %v", err)
	}
}

func checkPage(t *testing.T, c *tally, route miniweb.Route, page *reader.Page) {
	t.Helper()
	text := collapse(page.Markdown)
	for _, s := range route.Keep {
		c.check(t, "keep", strings.Contains(text, collapse(s)), "%q is missing in\n%s", s, head(page.Markdown))
	}
	for _, s := range route.Drop {
		c.check(t, "drop", !strings.Contains(text, collapse(s)), "%q is still in\n%s", s, head(page.Markdown))
	}
	if route.Title != "" {
		c.check(t, "title", page.Title == route.Title, "got %q, want %q", page.Title, route.Title)
	}
	if route.Charset != "" && page.Charset != "" {
		got := strings.ReplaceAll(page.Charset, "-", "")
		c.check(t, "charset", got == strings.ReplaceAll(route.Charset, "-", ""), "got %s, want %s", page.Charset, route.Charset)
	}
	if route.Lang != "" {
		c.check(t, "lang", page.Lang == route.Lang || page.Lang == "", "got %q, want %q", page.Lang, route.Lang)
	}
	if route.Canonical != "" {
		c.check(t, "canonical", page.Canonical == route.Canonical, "got %q", page.Canonical)
	}
	if route.Published != "" {
		c.check(t, "published", page.Published.Time.Format(time.DateOnly) == route.Published && page.Published.Confidence >= 70, "got %v", page.Published)
	}
	if route.Links != nil {
		var got [][2]string
		for _, l := range page.Links {
			got = append(got, [2]string{l.Text, normal(l.URL)})
		}
		c.check(t, "links", slices.Equal(got, route.Links), "got %q", got)
	}
}

func head(s string) string { return s[:min(len(s), 3000)] }

func TestMiniwebQuotesAreOnTheirPages(t *testing.T) {
	w := miniweb.Start(t)
	r := newReader(t, w, reader.Config{})
	found := 0
	for _, q := range w.Questions {
		page, err := r.Read(t.Context(), q.ExpectedURL, reader.Options{Lang: q.Lang})
		if err != nil || !strings.Contains(collapse(page.Markdown), collapse(q.Quote)) {
			t.Errorf("%s: %q is not on %s (%v)", q.ID, q.Quote, q.ExpectedURL, err)
			continue
		}
		found++
	}
	t.Logf("quotes on their pages: %d of %d", found, len(w.Questions))
}

func TestMiniwebHostilePagesTakeLittleMemory(t *testing.T) {
	w := miniweb.Start(t)
	r := newReader(t, w, reader.Config{})
	for _, id := range []string{"gzip-bomb", "endless", "survey-1mb", "deep-nesting", "big-header"} {
		most := peak(func() {
			_, err := r.Read(t.Context(), w.Route(id).URL, reader.Options{})
			t.Log(id, reader.OutcomeOf(err))
		})
		t.Logf("%s: %d MB", id, most>>20)
		if most > 64<<20 {
			t.Errorf("%s took %d MB", id, most>>20)
		}
	}
}

// peak returns by how much the heap grew while f ran, with a collector that leaves little
// behind.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	var most atomic.Uint64
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond) // reading stops the program for a moment
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
		}
	}()
	f()
	cancel()
	<-done
	return most.Load() - min(before, most.Load())
}
