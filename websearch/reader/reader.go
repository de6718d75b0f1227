// Package reader reads web pages: it fetches an address through the guard of package outbound,
// decodes what comes back, decides what of it is content, and returns that as Markdown.
//
// A page is hostile until proven otherwise. Bytes, time, nesting and the number of
// elements are bounded; what a visitor does not see is removed. What remains is still
// the text of strangers: it is data for a model, never an instruction.
//
// fetch.go has the request, robots.go the rules of a host, charset.go the decoder,
// tidy.go what happens before the parser, clean.go and extract.go the choice of the
// content, markdown.go its form, and check.go the pages that are walls, errors or spam.
package reader

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"nodest/internal/lru"
	"nodest/internal/outbound"
)

// Page is what a reader has made of a page.
type Page struct {
	URL          string // as given to Read
	FinalURL     string // after redirects
	Canonical    string // the address that the page gives as its own, on the same host, or ""
	Title        string // without the name of the site
	Markdown     string // the content; links are plain text, images are left out
	Links        []Link // at most 500, in the order of the page, without its menus
	Images       []Image
	Published    Date
	Lang         string // primary language code such as "en", or "" if it is not known
	Charset      string // encoding of the bytes, as in the WHATWG encoding standard, or "" for JSON and text
	ETag         string
	LastModified string    // the header, for the next request
	Expires      time.Time // until then the page need not be fetched again; zero = not known
	FetchedAt    time.Time
	Hash         string // hash of Markdown, hexadecimal
	Shingles     Shingles
	NotModified  bool // the page is still the one of Options.ETag or Options.LastModified; only its times are set
}

// Options are what may differ between two reads.
type Options struct {
	Lang         string // preferred language, such as "zh"
	ETag         string // from an earlier read
	LastModified string // from an earlier read
	Direct       bool   // the user has named this address: robots.txt is not asked
	User         string // whose share of what is read at once it takes
}

// Config configures a Reader. The zero value is ready to use.
type Config struct {
	Timeout time.Duration    // for the requests of one Read; default 20 s
	Wait    time.Duration    // for other reads, before each step; default 10 s
	Now     func() time.Time // default time.Now
}

// Reader reads pages. It is safe for concurrent use.
type Reader struct {
	client  *http.Client
	timeout time.Duration
	now     func() time.Time
	robots  *lru.Cache[string, rules]
	bounds  bounds
}

// New returns a reader that connects through guard.
func New(guard *outbound.Guard, c Config) *Reader {
	r := &Reader{
		client:  guard.Client(outbound.Use{Redirects: maxRedirects}),
		timeout: cmp.Or(c.Timeout, 20*time.Second),
		now:     c.Now,
		robots:  lru.New[string, rules](maxRules),
		bounds:  newBounds(cmp.Or(c.Wait, gateWait)),
	}
	if r.now == nil {
		r.now = time.Now
	}
	return r
}

// Close closes the connections that are not in use.
func (r *Reader) Close() { r.client.CloseIdleConnections() }

const maxRefreshes = 2 // meta refreshes that are followed

// Read fetches a page and returns its content. Every error is an *Error, whose outcome
// says what became of the page. It waits while too many pages are read at once.
func (r *Reader) Read(ctx context.Context, address string, o Options) (page *Page, err error) {
	defer func() { // a page that a parser cannot cope with must not end the process
		if p := recover(); p != nil {
			page, err = nil, failure(address, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	leave, err := r.bounds.open.take(ctx, o.User, 1)
	if err != nil {
		return nil, failure(address, err)
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	target := address
	for range maxRefreshes + 1 {
		page, next, err := r.visit(ctx, within, target, o)
		if err != nil {
			return nil, failure(address, err)
		}
		if next == "" {
			page.URL = address
			return page, nil
		}
		target, o.ETag, o.LastModified = next, "", ""
	}
	return nil, failure(address, outbound.ErrRedirects)
}

// visit reads one address, or returns where its meta refresh leads. The requests end when
// within does.
func (r *Reader) visit(ctx, within context.Context, address string, o Options) (page *Page, next string, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, "", errors.New("not an absolute URL")
	}
	h := &hold{ctx: within, gate: r.bounds.bodies, user: o.User}
	defer h.release()
	if err := r.ask(within, u, o, h); err != nil {
		return nil, "", err
	}
	resp, err := r.fetch(within, u, o, h)
	if err != nil {
		return nil, "", err
	}
	if resp.url.String() != u.String() {
		if err := r.ask(within, resp.url, o, h); err != nil {
			return nil, "", err
		}
	}
	done, err := r.bounds.work.take(ctx, o.User, workOf(len(resp.body)))
	if err != nil {
		return nil, "", err
	}
	defer done()
	page, next, err = build(resp, r.now())
	if err != nil || next != "" {
		return nil, next, err
	}
	page.FinalURL = resp.url.String()
	page.ETag, page.LastModified = resp.header.Get("ETag"), resp.header.Get("Last-Modified")
	page.FetchedAt = r.now()
	page.Expires = expires(resp.header, page.FetchedAt)
	return page, "", nil
}

// ask returns an error if the host of u does not let robots read it.
func (r *Reader) ask(ctx context.Context, u *url.URL, o Options, h *hold) error {
	if o.Direct {
		return nil
	}
	allowed, err := r.allowed(ctx, u, h)
	if err == nil && !allowed {
		return &Error{Outcome: RobotsDisallowed}
	}
	return err
}

// build makes a page of a response.
func build(resp *response, now time.Time) (page *Page, next string, err error) {
	if resp.status == http.StatusNotModified {
		return &Page{NotModified: true}, "", nil
	}
	body, encoding := decode(resp.body, resp.header.Get("Content-Type"))
	resp.body = nil
	body = body[:min(len(body), maxHTML)]
	page = &Page{}
	switch resp.kind {
	case kindHTML:
		page, next, err = readHTML(body, resp.url, resp.header.Get("Last-Modified"), now)
	case kindFeed:
		page.Title, page.Markdown, page.Links, err = readFeed(body, resp.url)
	case kindJSON:
		page.Markdown = fenced(strings.TrimSpace(plain(body)), "json")
	case kindMarkdown:
		page.Markdown = strings.TrimSpace(plain(body))
		page.Title = firstHeading(page.Markdown)
	default:
		page.Markdown = strings.TrimSpace(plain(body))
	}
	if err != nil || next != "" {
		return nil, next, err
	}
	if page.Markdown == "" {
		return nil, "", &Error{Outcome: Empty}
	}
	page.Title = cut(strings.TrimSpace(plain(page.Title)), maxTitle)
	sum := sha256.Sum256([]byte(page.Markdown))
	page.Hash, page.Charset = hex.EncodeToString(sum[:]), encoding
	page.Shingles = ShinglesOf(page.Markdown)
	page.Lang = cmp.Or(page.Lang, languageOfText(page.Markdown))
	return page, "", nil
}

func firstHeading(markdown string) string {
	for l := range strings.Lines(markdown) {
		if name, ok := strings.CutPrefix(l, "# "); ok {
			return cut(strings.TrimSpace(name), maxTitle)
		}
	}
	return ""
}

// readHTML makes a page of an HTML document, or returns where its meta refresh leads.
func readHTML(body string, at *url.URL, lastModified string, now time.Time) (page *Page, next string, err error) {
	doc, rest, err := parse([]byte(body))
	if err != nil {
		return nil, "", err
	}
	h := readHead(doc, at)
	if u := resolve(h.base, h.refresh); u != nil && u.String() != at.String() {
		return nil, u.String(), nil
	}
	v := viewOf(doc, h, rest)
	strip(doc)
	main := cmp.Or(first(doc, atom.Body), doc)
	date := published(h, rest.linked, main, lastModified, now)
	unwrap(doc)
	s := shown{visible: text(main)}
	s.scripts = strings.Contains(strings.ToLower(body[:min(len(body), 1<<20)]), "<script")
	page = &Page{Title: h.pageTitle(text(first(doc, atom.H1))), Canonical: h.canonical, Lang: h.lang, Published: date}
	clean(doc)
	page.Links, page.Images = references(main, h.base)
	kept := content(main, doc, trafilaturaKeeps)
	if h1 := first(main, atom.H1); h1 != nil && text(h1) == page.Title { // it need not be said twice
		remove(h1)
	}
	page.Markdown = toMarkdown(main, kept)
	s.content = page.Markdown
	s.linkShare, s.links = linksOf(main, kept)
	switch outcome, kind := check(s, v); {
	case kind == KindPaywall:
		return nil, "", &Error{Outcome: outcome, Kind: kind, Title: page.Title, Teaser: teaser(page.Markdown)}
	case outcome != OK:
		return nil, "", &Error{Outcome: outcome, Kind: kind}
	}
	return page, "", nil
}

// linksOf returns the share of links in the kept text, and their texts.
func linksOf(root *html.Node, kept map[*html.Node]bool) (share float64, texts []string) {
	linked, all := 0, 0
	for n := range nodes(root) {
		if !kept[n] {
			continue
		}
		w := weight(n.Data)
		if all += w; within(n, atom.A) != nil {
			linked += w
			texts = append(texts, strings.TrimSpace(n.Data))
		}
	}
	return float64(linked) / float64(max(all, 1)), texts
}
