package provider

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"nodest/internal/fault"
	"nodest/llm"
)

// duckDuckGo is the page of DuckDuckGo for browsers without scripts. It needs no key. It
// is not an API: its form may change, and many requests from one address are refused.
type duckDuckGo struct{ api }

func (d duckDuckGo) Search(ctx context.Context, q Query) (Results, error) {
	params := url.Values{"q": {q.wordsWithLocation()}, "kl": {duckRegion(q)}, "kp": {"1"}} // strict
	if q.Safe == SafeOff {
		params.Set("kp", "-2")
	}
	if period := q.period(); period != "" {
		params.Set("df", map[string]string{"h": "d"}[period]+strings.TrimPrefix(period, "h"))
	}
	ans, err := d.get(ctx, "/html/", params, http.Header{"Accept": {"text/html"}})
	if err != nil {
		return Results{}, err
	}
	// A request that looks like one of a robot is answered with a puzzle and 202 or 403.
	if ans.status == http.StatusAccepted || ans.status == http.StatusForbidden || isPuzzle(ans.body) {
		e := llm.Upstream(d.name, fault.UpstreamRate, ans.status, nil)
		return Results{}, e.After(llm.RetryAfter(ans.header, d.now()))
	}
	if ans.status != http.StatusOK {
		return Results{}, d.refused(ans, "", llm.Secrets{Texts: []string{q.Text}})
	}
	found, known := parseDuckDuckGo(ans.body, d.now())
	if !known {
		return Results{}, llm.BadAnswer(d.name, nil, "the page has an unknown form")
	}
	return Results{Results: found[:min(len(found), q.Count)]}, nil
}

// isPuzzle reports whether a page asks to prove that one is human.
func isPuzzle(page []byte) bool {
	for _, mark := range []string{"anomaly-modal", "anomaly.js", `id="challenge-form"`} {
		if bytes.Contains(page, []byte(mark)) {
			return true
		}
	}
	return false
}

// duckRegion returns a region such as "us-en"; "wt-wt" is the whole world.
func duckRegion(q Query) string {
	lang, _ := q.language()
	switch country := strings.ToLower(q.Country); country {
	case "", "eu":
		return "wt-wt"
	case "tw", "hk":
		return country + "-tzh"
	case "jp", "kr":
		return country + "-" + country
	case "gb":
		return "uk-en"
	default:
		if lang == "" {
			return "wt-wt"
		}
		return country + "-" + lang
	}
}

// duckParser collects the results of a page from its tags, in order.
type duckParser struct {
	now     time.Time
	found   []Result
	known   bool // the page is a page of results
	ad      bool // inside an advertisement
	pending *duckResult
	field   *strings.Builder // where text goes
	until   atom.Atom        // the tag that ends field
}

type duckResult struct {
	href                   string
	title, snippet, extras strings.Builder
}

// parseDuckDuckGo returns the results of a page, without advertisements. known is false
// if the page does not look like one of results.
func parseDuckDuckGo(page []byte, now time.Time) (found []Result, known bool) {
	p := duckParser{now: now}
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			p.flush()
			return p.found, p.known
		case html.TextToken:
			if p.field != nil && p.field.Len() < maxMarkup {
				p.field.Write(z.Text())
			}
		case html.StartTagToken:
			p.start(z.Token())
		case html.EndTagToken:
			if t := z.Token(); p.field != nil && t.DataAtom == p.until {
				p.field = nil
			}
		}
	}
}

func (p *duckParser) start(t html.Token) {
	classes := strings.Fields(attribute(t, "class"))
	has := func(class string) bool { return slices.Contains(classes, class) }
	switch {
	case t.DataAtom == atom.Div && (has("result") || has("no-results")), attribute(t, "id") == "links":
		p.flush()
		p.known, p.ad = true, has("result--ad")
	case t.DataAtom == atom.A && has("result__a"):
		p.flush()
		if !p.ad {
			p.pending = &duckResult{href: attribute(t, "href")}
			p.collect(&p.pending.title, t.DataAtom)
		}
	case p.pending == nil:
	case has("result__snippet"):
		p.collect(&p.pending.snippet, t.DataAtom)
	case t.DataAtom == atom.Span && len(classes) == 0:
		p.pending.extras.Reset()
		p.collect(&p.pending.extras, t.DataAtom) // a date, if the page has one
	}
}

func (p *duckParser) collect(to *strings.Builder, until atom.Atom) {
	p.field, p.until = to, until
}

// flush ends the result that is being read.
func (p *duckParser) flush() {
	if r := p.pending; r != nil {
		p.known = true
		if address, ok := duckTarget(r.href); ok {
			when, _, _ := strings.Cut(oneLine(html.UnescapeString(r.extras.String())), ".")
			p.found = add(p.found, r.title.String(), address, r.snippet.String(), date(when, p.now))
		}
	}
	p.pending, p.field = nil, nil
}

// duckTarget returns where a link of a result leads: DuckDuckGo wraps some as
// //duckduckgo.com/l/?uddg=<address>. Other links to DuckDuckGo are advertisements
// (/y.js) or its own pages.
func duckTarget(href string) (string, bool) {
	u, err := url.Parse(href)
	if err != nil {
		return "", false
	}
	if host := u.Hostname(); host != "" && host != "duckduckgo.com" && !strings.HasSuffix(host, ".duckduckgo.com") {
		return href, true
	}
	target := u.Query().Get("uddg")
	return target, u.Path == "/l/" && target != ""
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
