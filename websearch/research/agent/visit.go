package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/websearch/reader"
	"nodest/websearch/weburl"
)

const (
	maxVisits   = 5   // pages per step
	maxPerHost  = 2   // pages, read at the same time
	linkWeight  = 0.1 // a link in a page; a search hit has 1
	datedEnough = 70  // confidence from which a date of publication is used
)

// Read returns a page, or an error of package reader. It is called concurrently.
type Read func(ctx context.Context, address string) (*reader.Page, error)

// Visited is what one step of visits has found, in the order of its addresses.
type Visited struct {
	URLs      []string      // normalized addresses that were tried, and those that their pages go by
	Pages     []cite.Source // by the address that a page goes by: canonical, or after redirects
	Asked     []string      // the address at which the page in the same place was read
	Knowledge []Knowledge   // knowledge of that page
	Failures  []Failure
	BadHosts  []string // no page of them can be read; see weburl.Filter
}

// Failure is a page that could not be read.
type Failure struct {
	URL string
	Err error
}

// seen is what reading a page has given.
type seen struct {
	URL       string    `json:"url"` // the address that the page goes by: canonical, or after redirects
	Title     string    `json:"title"`
	Published time.Time `json:"published,omitzero"` // if it is sure enough
	Picked    string    `json:"picked"`             // its words about the question
	Links     []link    `json:"links,omitempty"`

	// Chunks are what can be quoted of it; nil = the page must be read again.
	Chunks []cite.Chunk `json:"-"`
}

// link is a link of a page.
type link struct {
	URL  string `json:"url"`
	Text string `json:"text"`
}

// look reads one page.
type look func(ctx context.Context, address string) (seen, error)

// visit is one address on its way.
type visit struct {
	address string
	seen    seen
	err     error
}

// see takes from a page what it says about a question.
func see(ctx context.Context, emb llm.Embedder, page *reader.Page, address, question string, urls weburl.Options, o cite.PickOptions) (seen, error) {
	if page.Markdown == "" {
		return seen{}, fault.New(fault.PageUnreadable, "no content found")
	}
	own, err := weburl.Normalize(cmp.Or(page.Canonical, page.FinalURL), urls)
	if err != nil {
		own = address
	}
	s := seen{URL: own, Title: page.Title, Picked: cite.CherryPick(ctx, emb, question, page.Markdown, o).Text}
	if page.Published.Confidence >= datedEnough {
		s.Published = page.Published.Time
	}
	for _, l := range page.Links {
		s.Links = append(s.Links, link{l.URL, l.Text})
	}
	s.Chunks, err = cite.ChunkText(page.Markdown, cite.ChunkOptions{})
	return s, err
}

// visitAll reads up to five pages together and returns what they say about the question. Addresses
// that Normalize rejects, and repeated ones, are left out. Links of the pages are added to the
// pool. When ctx ends, the pages that are not read by then are not recorded.
func visitAll(ctx context.Context, pool *weburl.Pool, addresses []string, question string, urls weburl.Options, look look) Visited {
	visits, hosts := []*visit{}, map[string]chan struct{}{}
	for _, raw := range addresses {
		address, err := weburl.Normalize(raw, urls)
		if err != nil || len(visits) == maxVisits || slices.ContainsFunc(visits, func(v *visit) bool { return v.address == address }) {
			continue
		}
		visits = append(visits, &visit{address: address})
		hosts[weburl.Hostname(address)] = make(chan struct{}, maxPerHost)
	}
	var wg sync.WaitGroup
	for _, v := range visits {
		wg.Go(func() {
			slot := hosts[weburl.Hostname(v.address)]
			select {
			case slot <- struct{}{}:
				defer func() { <-slot }()
				v.err = Guard(func() (err error) {
					v.seen, err = look(ctx, v.address)
					return err
				})
			case <-ctx.Done():
				v.err = ctx.Err()
			}
		})
	}
	wg.Wait()
	var out Visited
	for _, v := range visits {
		if v.err == nil || ctx.Err() == nil {
			out.add(v, pool, question, urls)
		}
	}
	return out
}

// add records a visit. A page that was already read under another address counts once.
func (out *Visited) add(v *visit, pool *weburl.Pool, question string, urls weburl.Options) {
	out.visited(v.address)
	if v.err != nil {
		out.Failures = append(out.Failures, Failure{v.address, v.err})
		host := weburl.Hostname(v.address)
		if reader.OutcomeOf(v.err) == reader.HostError && !slices.Contains(out.BadHosts, host) {
			out.BadHosts = append(out.BadHosts, host)
		}
		return
	}
	if slices.ContainsFunc(out.Pages, func(s cite.Source) bool { return s.URL == v.seen.URL }) {
		return
	}
	out.visited(v.seen.URL)
	published := ""
	if !v.seen.Published.IsZero() {
		published = op.Time(v.seen.Published).String()
	}
	out.Pages = append(out.Pages, cite.Source{URL: v.seen.URL, Title: v.seen.Title, DateTime: published, Evidence: cite.EvidencePage, Chunks: v.seen.Chunks})
	out.Asked = append(out.Asked, v.address)
	out.Knowledge = append(out.Knowledge, Knowledge{
		Question:   `What do expert say about "` + question + `"?`, // as recorded: part of the contract with prompts
		Answer:     v.seen.Picked,
		References: []string{v.seen.URL},
		Kind:       KindPage,
		Updated:    Updated(v.seen.Published),
	})
	for _, link := range v.seen.Links {
		pool.Add(weburl.Hit{URL: link.URL, Title: link.Text, Description: link.Text}, linkWeight, urls)
	}
}

func (out *Visited) visited(address string) {
	if !slices.Contains(out.URLs, address) {
		out.URLs = append(out.URLs, address)
	}
}
