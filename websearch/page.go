package websearch

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/websearch/reader"
	"nodest/websearch/weburl"
)

// How long a page is taken as it was read, and how long a host is left out.
const (
	freshAtLeast = 10 * time.Minute
	freshAtMost  = 24 * time.Hour
	badHost      = 10 * time.Minute
	badCert      = 24 * time.Hour
)

const (
	snippets  = 4  // passages that Read gives
	confident = 70 // a date of publication is used from this confidence on
)

// Reading is a page with the passages that answer a question.
type Reading struct {
	Page
	Snippets []string // in the order of the page
}

// Read reads a page. Without a question there are no snippets. An address without a scheme is tried
// with https, and with http where the host refuses that.
//
// Errors: Invalid for the URL; PageUnreadable, with details.outcome; RateLimited if too many pages
// are being read at once.
func (s *Service) Read(ctx context.Context, userID, address, question string) (r *Reading, err error) {
	for _, with := range schemes(address) {
		if r, err = s.read(ctx, userID, with, question); !refusesHTTPS(err) {
			break
		}
	}
	return r, err
}

func (s *Service) read(ctx context.Context, userID, address, question string) (*Reading, error) {
	url, err := s.normalize(address)
	if err != nil {
		return nil, fault.InvalidField("url", "format", "must be the http or https address of a public page")
	}
	w := wish{direct: true}
	done, err := s.beforeStored(ctx, userID, url, w)
	if err != nil {
		return nil, err
	}
	defer func() { done() }()
	page, err := s.page(ctx, userID, url, w)
	if err != nil {
		return nil, err
	}
	r := &Reading{Page: *page, Snippets: []string{}}
	if question != "" {
		done() // a page that was not stored, or is another one now, has its own size
		if done, err = s.opts.Reader.Use(ctx, userID, len(page.Markdown)); err != nil {
			done = func() {}
			return nil, unreadable(err)
		}
		for _, p := range cite.Passages(ctx, s.embedder(ctx, userID), question, page.Markdown, cite.PassageOptions{Size: passageSize, Count: snippets}) {
			r.Snippets = append(r.Snippets, p.Text)
		}
	}
	return r, nil
}

// Page returns the page of an address as it is stored, if it is fresh or was fetched at since or later, or reads it.
// A zero since is never. Charset, Lang, Hash and Shingles, which are not stored, are empty.
//
// Errors: Invalid for the address; those of package reader, with PageUnreadable.
func (s *Service) Page(ctx context.Context, userID, address, lang string, since time.Time) (*reader.Page, error) {
	url, err := s.normalize(address)
	if err != nil {
		return nil, fault.InvalidField("url", "format", "must be the http or https address of a public page")
	}
	w := wish{lang: lang, since: since}
	done, err := s.beforeStored(ctx, userID, url, w)
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := s.page(ctx, userID, url, w)
	if err != nil {
		return nil, err
	}
	page := &reader.Page{
		URL: url, FinalURL: p.FinalURL, Canonical: p.Canonical, Title: p.Title, Markdown: p.Markdown, Links: p.Links, Images: p.Images, FetchedAt: p.FetchedAt,
	}
	if p.Published != nil {
		page.Published = reader.Date{Time: *p.Published, Confidence: confident}
	}
	return page, nil
}

// wish is how a page is wanted.
type wish struct {
	lang   string    // language of the page, where there are several; "" = any
	direct bool      // the user has named the page, so that it may be read whatever the rules for robots are
	since  time.Time // it is good as it was fetched then or later; zero = while it is fresh
}

// takes reports whether a stored page is good as it is.
func (w wish) takes(p *Page, now time.Time) bool {
	return now.Before(p.FreshUntil) || !w.since.IsZero() && !p.FetchedAt.Before(w.since)
}

// beforeStored waits until the user may load the page of a URL, if it is stored and large; done
// ends that.
func (s *Service) beforeStored(ctx context.Context, userID, url string, w wish) (done func(), err error) {
	size := 0
	err = s.store.View(ctx, userID, func(tx Tx) (err error) {
		size, err = tx.GoodPageBytes(url, w.since)
		return err
	})
	if err != nil {
		return nil, err
	}
	if done, err = s.opts.Reader.Use(ctx, userID, size); err != nil {
		return nil, unreadable(err)
	}
	return done, nil
}

// key identifies the content of a page.
func (p *Page) key() string { return cmp.Or(p.Canonical, p.FinalURL, p.URL) }

// shingles are what near duplicates are found by.
func (p *Page) shingles() reader.Shingles { return reader.ShinglesOf(p.Markdown) }

// page returns the page of a normalised URL as it is stored, if that is good, or reads it.
func (s *Service) page(ctx context.Context, userID, url string, w wish) (*Page, error) {
	var stored *Page
	var hosts []Host
	err := s.store.View(ctx, userID, func(tx Tx) (err error) {
		if stored, err = tx.WebPage(url); err != nil {
			return err
		}
		hosts, err = tx.BadHosts([]string{hostOf(url)})
		return err
	})
	if err != nil {
		return nil, err
	}
	now := s.opts.Now()
	if stored != nil && w.takes(stored, now) {
		return stored, nil
	}
	if len(hosts) > 0 {
		return nil, unreadable(&reader.Error{Outcome: reader.HostError, Kind: reader.Kind(hosts[0].Reason), URL: url})
	}
	o := reader.Options{Lang: w.lang, Direct: w.direct, User: userID}
	if stored != nil {
		o.ETag, o.LastModified = stored.Etag, stored.LastModified
	}
	got, err := s.opts.Reader.Read(ctx, url, o)
	if err != nil {
		return nil, errors.Join(unreadable(err), s.noteHost(ctx, userID, err))
	}
	page := stored
	if !got.NotModified {
		page = &Page{
			URL: url, FinalURL: got.FinalURL, Canonical: got.Canonical, Title: got.Title, Markdown: got.Markdown,
			Links: got.Links, Images: got.Images, Etag: got.ETag, LastModified: got.LastModified,
		}
		if got.Published.Confidence >= confident {
			page.Published = &got.Published.Time
		}
	}
	page.FetchedAt = now
	page.FreshUntil = now.Add(min(max(got.Expires.Sub(now), freshAtLeast), freshAtMost))
	// A page that was read is stored also when the turn waits no longer: the next one needs it.
	err = s.store.Update(context.WithoutCancel(ctx), userID, func(tx Tx) error { return tx.PutWebPage(page) })
	if err != nil {
		return nil, err
	}
	return page, nil
}

// noteHost remembers a host that cannot be reached: the one that failed, which may be where another
// host has led to. A name server that does not answer says nothing about the host.
func (s *Service) noteHost(ctx context.Context, userID string, failure error) error {
	var e *reader.Error
	var request *url.Error
	var dns *net.DNSError
	switch {
	case !errors.As(failure, &e) || e.Outcome != reader.HostError, !errors.As(failure, &request),
		errors.As(failure, &dns) && !dns.IsNotFound:
		return nil
	}
	h := Host{Host: hostOf(request.URL), Reason: string(e.Kind), Until: s.opts.Now().Add(badHost)}
	if e.Kind == reader.KindCertificate {
		h.Until = s.opts.Now().Add(badCert)
	}
	return s.store.Update(context.WithoutCancel(ctx), userID, func(tx Tx) error { return tx.PutBadHost(h) })
}

// hostOf is the host of an address, with its port unless that is the one of https: a host
// that refuses one port may answer on others, and one that refuses https may answer on http.
func hostOf(address string) string {
	host := weburl.Hostname(address)
	switch u, err := url.Parse(address); {
	case err != nil:
	case u.Port() != "":
		host += ":" + u.Port()
	case u.Scheme == "http":
		host += ":80"
	}
	return host
}

// badHosts are the hosts of a list that are not to be tried now.
func (s *Service) badHosts(ctx context.Context, userID string, names []string) map[string]bool {
	bad := map[string]bool{}
	err := s.store.View(ctx, userID, func(tx Tx) error {
		hosts, err := tx.BadHosts(names)
		for _, h := range hosts {
			bad[h.Host] = true
		}
		return err
	})
	if err != nil {
		s.opts.Log.WarnContext(ctx, "hosts that could not be reached are not known", "err", err)
	}
	return bad
}

// unreadable is why a page cannot be used, for clients.
func unreadable(err error) error {
	var e *reader.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Outcome == reader.Busy {
		return fault.Wrap(err, fault.RateLimited, "too many pages are being read at once").After(time.Second)
	}
	f := fault.Wrap(err, fault.PageUnreadable, "%s", reasons[e.Outcome]).With("outcome", string(e.Outcome))
	if e.Kind != "" {
		_ = f.With("kind", string(e.Kind))
	}
	return f
}

// reasons say in words why a page cannot be used.
var reasons = map[reader.Outcome]string{
	reader.Blocked:          "the page is behind a wall: a log-in, a payment, consent, an app, an age, a country or a check for robots",
	reader.NotFound:         "there is no page at this address",
	reader.Spam:             "the page has no content of its own",
	reader.Empty:            "the page has no text without running its scripts",
	reader.TooLarge:         "the page is too large",
	reader.Timeout:          "the page did not arrive in time",
	reader.Unsupported:      "the address has no text: only HTML, plain text, JSON and feeds can be read",
	reader.Retry:            "the host asks to come back later",
	reader.Failed:           "the page could not be read",
	reader.HostError:        "the host cannot be reached",
	reader.RobotsDisallowed: "the host does not want robots to read this page",
	reader.Refused:          "the address is not public",
}
