package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/websearch/reader"
	"nodest/websearch/weburl"
)

const (
	maxVisits   = 5   // pages per step
	maxPerHost  = 2   // of them, read at the same time
	linkWeight  = 0.1 // of a link in a page; a search hit has 1
	datedEnough = 70  // confidence from which a date of publication is used
)

// Read returns a page, or an error of package reader. It is called concurrently.
type Read func(ctx context.Context, address string) (*reader.Page, error)

// Pool is where links of pages go; weburl.Pool is one.
type Pool interface {
	Add(hit weburl.Hit, delta float64, o weburl.Options) (isNew bool)
}

// Visited is what one step of visits has found, in the order of its addresses.
type Visited struct {
	URLs      []string      // normalized addresses that were tried, and those that their pages go by
	Pages     []cite.Source // by the address that a page goes by: canonical, or after redirects
	Knowledge []Knowledge   // of the page in the same place
	Failures  []Failure
	BadHosts  []string // no page of them can be read; see weburl.Filter
}

// Failure is a page that could not be read.
type Failure struct {
	URL string
	Err error
}

// visit is one address on its way.
type visit struct {
	address, own string
	page         *reader.Page
	chunks       []cite.Chunk
	picked       string
	err          error
}

// Visit reads up to five pages together and returns what they say about the question. Addresses
// that Normalize rejects, and repeated ones, are left out. Links of the pages are added to the
// pool. When ctx ends, the pages that are not read by then are not recorded.
func Visit(ctx context.Context, read Read, emb llm.Embedder, pool Pool, addresses []string, question string) Visited {
	visits, hosts := []*visit{}, map[string]chan struct{}{}
	for _, raw := range addresses {
		address, err := weburl.Normalize(raw, weburl.Options{})
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
				v.read(ctx, read)
			case <-ctx.Done():
				v.err = ctx.Err()
			}
			if v.err == nil {
				v.picked = cite.CherryPick(ctx, emb, question, v.page.Markdown, cite.PickOptions{}).Text
			}
		})
	}
	wg.Wait()
	var out Visited
	for _, v := range visits {
		if v.err == nil || ctx.Err() == nil {
			out.add(v, pool, question)
		}
	}
	return out
}

func (v *visit) read(ctx context.Context, read Read) {
	if v.page, v.err = read(ctx, v.address); v.err != nil {
		return
	}
	if v.page.Markdown == "" {
		v.err = fault.New(fault.PageUnreadable, "no content found")
		return
	}
	v.chunks, v.err = cite.ChunkText(v.page.Markdown, cite.ChunkOptions{})
	own, err := weburl.Normalize(cmp.Or(v.page.Canonical, v.page.FinalURL), weburl.Options{})
	if err != nil {
		own = v.address
	}
	v.own = own
}

// add records a visit. A page that was already read under another address counts once.
func (out *Visited) add(v *visit, pool Pool, question string) {
	out.visited(v.address)
	if v.err != nil {
		out.Failures = append(out.Failures, Failure{v.address, v.err})
		host := weburl.Hostname(v.address)
		if reader.OutcomeOf(v.err) == reader.HostError && !slices.Contains(out.BadHosts, host) {
			out.BadHosts = append(out.BadHosts, host)
		}
		return
	}
	if slices.ContainsFunc(out.Pages, func(s cite.Source) bool { return s.URL == v.own }) {
		return
	}
	out.visited(v.own)
	updated, published := "", ""
	if v.page.Published.Confidence >= datedEnough {
		updated = Updated(v.page.Published.Time)
		published = v.page.Published.Time.UTC().Format(time.RFC3339)
	}
	out.Pages = append(out.Pages, cite.Source{URL: v.own, Title: v.page.Title, DateTime: published, Evidence: cite.EvidencePage, Chunks: v.chunks})
	out.Knowledge = append(out.Knowledge, Knowledge{
		Question:   `What do expert say about "` + question + `"?`, // as recorded: part of the contract with prompts
		Answer:     v.picked,
		References: []string{v.own},
		Kind:       KindPage,
		Updated:    updated,
	})
	for _, link := range v.page.Links {
		pool.Add(weburl.Hit{URL: link.URL, Title: link.Text, Description: link.Text}, linkWeight, weburl.Options{})
	}
}

func (out *Visited) visited(address string) {
	if !slices.Contains(out.URLs, address) {
		out.URLs = append(out.URLs, address)
	}
}
