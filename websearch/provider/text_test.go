package provider

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
)

func TestPlainTextHasNoMarkup(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"a  b\n\tc":                   "a b c",
		"a<br>b<p>c":                  "a b c",
		"<b>bo</b>ld":                 "bold",
		"isn&#x27;t &lt;b&gt; &amp;x": "isn't <b> &x",
		"<script>alert(1)</script>ok": "ok",
		"<style>a{}</style>ok":        "ok",
		"<script>never ends":          "",
		"a<!-- hidden -->b":           "ab",
		"vector<int> and a < b":       "vector<int> and a < b",
		"<x onload=alert(1)>a</x>":    "a",
		"</websearch>a":               "a",
		"a\xffb":                      "ab",
		"zero\u200bwidth\u202e":       "zerowidth",
		"soft\u00adhyphen":            "softhyphen",
		"nul\x00 bell\a":              "nul bell",
		"<a href='x'>link</a":         "link",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestOnlyAddressesOfPagesPass(t *testing.T) {
	for in, want := range map[string]bool{
		"https://a.test/":           true,
		" http://a.test/x?y=1#z ":   true,
		"https://例え.test/パス":        true,
		"javascript:alert(1)":       false,
		"JAVASCRIPT:alert(1)":       false,
		"data:text/html,x":          false,
		"file:///etc/passwd":        false,
		"//a.test/":                 false,
		"/path":                     false,
		"https://":                  false,
		"https://user:pass@a.test/": false,
		"https://a.test/\nb":        false,
		"https://a.test/ b":         false,
		"https://a.test/\xff":       false,
		"https://a.test/" + strings.Repeat("a", maxURL): false,
		"https://[::1/": false,
		"":              false,
	} {
		if _, ok := pageURL(in); ok != want {
			t.Errorf("pageURL(%.60q) = %v, want %v", in, ok, want)
		}
	}
}

func TestDatesAreReadInEveryFormThatProvidersUse(t *testing.T) {
	for in, want := range map[string]string{
		"2026-01-15T08:30:00":           "2026-01-15T08:30:00Z",
		"2026-01-15T08:30:00.1234567":   "2026-01-15T08:30:00Z",
		"2026-01-15T08:30:00+08:00":     "2026-01-15T00:30:00Z",
		"2026-01-15":                    "2026-01-15T00:00:00Z",
		"January 15, 2026":              "2026-01-15T00:00:00Z",
		"Jan 15, 2026":                  "2026-01-15T00:00:00Z",
		"15 Jan 2026":                   "2026-01-15T00:00:00Z",
		"2026年1月15日":                    "2026-01-15T00:00:00Z",
		"2 days ago":                    "2026-03-08T12:00:00Z",
		"1 hour ago":                    "2026-03-10T11:00:00Z",
		"3天前":                           "2026-03-07T12:00:00Z",
		"2 个月前":                         "2026-01-09T12:00:00Z",
		"9999 years ago":                "",
		"yesterday":                     "",
		"2030-01-01":                    "",
		"0001-01-01T00:00:00":           "",
		"":                              "",
		strings.Repeat("1 days ago", 9): "",
	} {
		got := ""
		if d := date(in, noon); !d.IsZero() {
			got = d.Truncate(time.Second).Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("date(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAQueryIsCheckedAndBounded(t *testing.T) {
	if _, err := (Query{Text: " \n\u200b"}).checked(); err == nil {
		t.Error("an empty query passes")
	}
	if _, err := (Query{Text: "x", Hosts: []string{"a b"}}).checked(); err == nil {
		t.Error("a restriction without any host passes: it would search everywhere")
	}
	hosts := make([]string, 30)
	for i := range hosts {
		hosts[i] = strings.Repeat("h", 8) + ".test"
	}
	q, err := Query{Text: strings.Repeat("书", 1000), Hosts: hosts, Count: -1}.checked()
	if n := utf8.RuneCountInString(q.words()); err != nil || n != maxQuery || q.Count != defaultCount || len(q.Hosts) != maxHosts {
		t.Errorf("%d code points, %d results, %d hosts, %v", n, q.Count, len(q.Hosts), err)
	}
}

// checkResults fails if a result breaks what the package promises.
func checkResults(t *testing.T, found []Result) {
	t.Helper()
	for _, r := range found {
		u, err := url.Parse(r.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(r.URL) > maxURL {
			t.Errorf("address %q", r.URL)
		}
		for _, s := range []string{r.Title, r.Description} {
			if !utf8.ValidString(s) || oneLine(s) != s {
				t.Errorf("text %q", s)
			}
		}
		if utf8.RuneCountInString(r.Title) > maxTitle || utf8.RuneCountInString(r.Description) > maxDescription || r.Title == "" {
			t.Errorf("title of %d, description of %d bytes", len(r.Title), len(r.Description))
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"<b>a</b>", "a<script>b", "&amp;lt;", "<vector<int>>", "\xff\xfe<", "<!--", "<![CDATA[x]]>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := plain(s); !utf8.ValidString(got) || oneLine(got) != got {
			t.Errorf("%q", got)
		}
	})
}

func FuzzDuckDuckGo(f *testing.F) {
	for _, name := range []string{"duckduckgo.html", "duckduckgo_none.html", "duckduckgo_puzzle.html"} {
		f.Add([]byte(fixture(f, name)))
	}
	f.Add([]byte(strings.Repeat("<div class=result><a class=result__a href=http://a.test>", 50)))
	f.Fuzz(func(t *testing.T, page []byte) {
		found, _ := parseDuckDuckGo(page, noon)
		checkResults(t, found)
	})
}

func FuzzJSON(f *testing.F) {
	for _, name := range []string{"brave_web.json", "searxng.json", "searxng_silent.json", "jina.json", "jina_none.json", "brave_pois.json"} {
		f.Add(fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, status := range []int{0, 422} {
			h := answers(nil, nil, reply{status: status, body: body})
			b := braveFor(t, h)
			b.(*brave).turns[hashOf(keyOne)].gap = 0
			for _, p := range []Provider{b, searxngFor(t, h), jinaFor(t, h)} {
				q, _ := question.checked()
				q.Place = true
				res, err := p.Search(t.Context(), q)
				if fault.Is(err, fault.Internal) {
					t.Errorf("%s: an error without a code: %v", p.Name(), err)
				}
				checkResults(t, res.Results)
			}
		}
	})
}

func FuzzMCPText(f *testing.F) {
	for _, name := range []string{"mcp_labels.txt", "mcp_numbered.txt", "mcp_markdown.txt", "mcp_plain.txt", "mcp_json.txt", "mcp_url_first.txt"} {
		f.Add(fixture(f, name))
	}
	f.Fuzz(func(t *testing.T, s string) {
		found, _ := fromText(s, noon)
		checkResults(t, found)
	})
}
