package websearch

import (
	"time"

	"nodest/internal/feedback"
	"nodest/internal/op"
	"nodest/websearch/reader"
)

// Page is a page of the web as it was read for a user.
type Page struct {
	URL          string // normalised; the key
	FinalURL     string // after redirects
	Canonical    string // normalised; "" = the page names none
	Title        string
	Markdown     string
	Links        []reader.Link
	Images       []reader.Image
	Published    *time.Time // nil = unknown
	Etag         string
	LastModified string
	FetchedAt    time.Time
	FreshUntil   time.Time // later it is asked for again
}

// Host is a host that could not be reached.
type Host struct {
	Host   string // with its port unless that is the usual one
	Reason string // dns, refused or certificate
	Until  time.Time
}

// Tx is what a transaction offers for web search.
type Tx struct {
	op.Tx
	PageTx
	Feedback feedback.Tx
}

// PageTx stores pages and hosts.
type PageTx interface {
	// WebPage returns the page of a normalised URL; nil = it was not read.
	WebPage(url string) (*Page, error)
	// GoodPageBytes returns the length of the text of a page that need not be read again, because it is
	// fresh or was fetched at since or later; 0 = there is none. A zero since is never.
	GoodPageBytes(url string, since time.Time) (int, error)
	// PutWebPage stores p and replaces an earlier reading of its URL.
	PutWebPage(p *Page) error
	// BadHosts returns those of hosts that are not to be tried now.
	BadHosts(hosts []string) ([]Host, error)
	// PutBadHost stores h and replaces what is stored about the host.
	PutBadHost(h Host) error
}

// Store stores what a Service needs; package store implements it.
type Store = op.Store[Tx]
