package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"nodest/internal/cite"
	"nodest/websearch/reader"
	"nodest/websearch/weburl"
)

const (
	mostListed   = 20 // pages that the model may choose from
	listedUnits  = 50 // the title and description of each
	mostRanked   = 70
	enoughRanked = 50 // pages, from which on no search is needed
	perSite      = 2
	mostSnippets = 200
	mostLinks    = 30 // links of a page
	pickUnits    = 1500
	pickSnippets = 3
)

// web is what a member knows of the web.
type web struct {
	pool     weburl.Pool
	visited  []string
	failed   []string
	badHosts []string
	sources  []cite.Source     // opened pages and documents; the n-th is [^n]. Those of pages have no chunks.
	asked    map[string]string // where the page of a source was read: it may go by another address
	snippets []cite.Source     // descriptions of search results
	shingles []reader.Shingles
	boosts   []string // hosts of pages that the user named
}

// number is that of the source of a piece of knowledge; 0 = it has none.
func (w *web) number(k Knowledge) int {
	if k.source != 0 || k.Kind != KindPage || len(k.References) != 1 {
		return max(k.source, 0)
	}
	return slices.IndexFunc(w.sources, func(s cite.Source) bool { return s.FileID == "" && s.URL == k.References[0] }) + 1
}

// readAt notes where a page was first read.
func (w *web) readAt(url, asked string) {
	if w.asked == nil {
		w.asked = map[string]string{}
	}
	w.asked[url] = cmp.Or(w.asked[url], asked)
}

func (w *web) snippet(h hit) {
	if len(w.snippets) < mostSnippets && !slices.ContainsFunc(w.snippets, func(s cite.Source) bool { return s.URL == h.URL }) {
		w.snippets = append(w.snippets, cite.Source{URL: h.URL, Title: h.Title, DateTime: h.Date, Evidence: cite.EvidenceSnippet, Chunks: []cite.Chunk{{Text: h.Text}}})
	}
}

// document adds a passage of a knowledge base to the sources and to what is known.
func (w *web) document(m *member, question string, d document) {
	if slices.ContainsFunc(w.sources, sameSource(d.Source)) {
		return
	}
	w.sources = append(w.sources, d.Source)
	m.known = append(m.known, Knowledge{
		Question: `What do the documents say about "` + question + `"?`, Answer: d.Text, Kind: KindPage,
		Updated: d.Source.DateTime, source: len(w.sources),
	})
}

// ranked are the pages that are worth reading, the best first, two of a site.
func (m *member) ranked(ctx context.Context, question string) []weburl.Candidate {
	if !m.plan.Web || m.o.Read == nil {
		return nil
	}
	hits := weburl.Filter{Visited: m.web.visited, BadHosts: m.web.badHosts, OnlyHosts: m.plan.Hosts}.Apply(m.web.pool.Hits())
	if len(hits) == 0 {
		return nil
	}
	all := weburl.Rank(ctx, hits, weburl.RankOptions{Question: question, BoostHosts: m.web.boosts})
	return weburl.SortSelect(weburl.KeepPerSite(all, perSite), mostRanked)
}

// visits reads pages and keeps what they say.
func (m *member) visits(ctx context.Context, addresses []string, question string) (Visited, error) {
	keys := map[string]string{}
	for _, a := range addresses {
		keys[a] = m.key("visit")
	}
	var mu sync.Mutex
	var ends error
	v := visitAll(ctx, &m.web.pool, addresses, question, m.urls, func(ctx context.Context, address string) (seen, error) {
		m.tell("visit", map[string]any{"member": m.n, "url": address, "state": "reading"})
		read, err := call(ctx, m, keys[address], m.limit(false), Cost{}, func(ctx context.Context) (visitAnswer, Cost, error) {
			return m.lookAt(ctx, address, question)
		})
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			ends = err
			return seen{}, err
		}
		state := "read"
		if read.Failed != nil {
			state = string(read.Outcome)
			err = &reader.Error{Outcome: read.Outcome, Kind: read.Kind, URL: address}
		}
		m.tell("visit", map[string]any{"member": m.n, "url": address, "state": state})
		return read.Seen, err
	})
	if ends != nil {
		return Visited{}, ends
	}
	m.took(v)
	return v, nil
}

// visitAnswer is the recorded answer of a visit.
type visitAnswer struct {
	Seen    seen           `json:"seen"`
	Outcome reader.Outcome `json:"outcome"`
	Kind    reader.Kind    `json:"kind,omitempty"`
	Failed  *failure       `json:"failed,omitempty"`
}

// lookAt reads a page. Its text stays in memory for the citations; only what was picked is recorded.
func (m *member) lookAt(ctx context.Context, address, question string) (visitAnswer, Cost, error) {
	var page *reader.Page
	var s seen
	err := Guard(func() (err error) {
		if page, err = m.o.Read(ctx, address); err == nil {
			s, err = see(ctx, m.o.Embedder, page, address, question, m.urls, cite.PickOptions{SnippetLength: pickUnits, Snippets: pickSnippets})
		}
		return err
	})
	if err != nil {
		m.notePanic(ctx, err)
		a := visitAnswer{Outcome: reader.OutcomeOf(err), Failed: failureOf(err)}
		var r *reader.Error
		if errors.As(err, &r) {
			a.Kind = r.Kind
		}
		if context.Cause(ctx) != nil {
			a.Outcome = reader.Timeout
		}
		return a, Cost{}, err
	}
	s.Links = likely(s.Links, question)
	m.pages.put(address, page)
	return visitAnswer{Seen: s, Outcome: reader.OK}, Cost{}, nil
}

// likely are the links of a page that may be about a question, in the order of the page.
func likely(links []link, question string) []link {
	if len(links) <= mostLinks {
		return links
	}
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.Text
	}
	best := make([]int, 0, mostLinks)
	for _, r := range cite.JaccardRank(question, names)[:mostLinks] {
		best = append(best, r.Index)
	}
	slices.Sort(best)
	out := make([]link, 0, mostLinks)
	for _, i := range best {
		out = append(out, links[i])
	}
	return out
}

// took keeps the pages that were read.
func (m *member) took(v Visited) {
	m.web.visited = append(m.web.visited, v.URLs...)
	m.web.badHosts = append(m.web.badHosts, v.BadHosts...)
	for _, f := range v.Failures {
		m.web.failed = append(m.web.failed, f.URL)
		m.tried(failureOf(f.Err))
	}
	for i, page := range v.Pages {
		m.tried(nil)
		same := reader.ShinglesOf(v.Knowledge[i].Answer)
		if m.web.number(v.Knowledge[i]) > 0 || slices.ContainsFunc(m.web.shingles, func(s reader.Shingles) bool { return reader.NearDuplicate(s, same) }) {
			continue // read before, under another address
		}
		m.web.shingles = append(m.web.shingles, same)
		page.Chunks = nil
		m.web.readAt(page.URL, v.Asked[i])
		m.web.sources = append(m.web.sources, page)
		m.known = append(m.known, v.Knowledge[i])
	}
}

// pages are those that were opened in this play of the run, by the addresses at which they were read.
type pages struct {
	mu  sync.Mutex
	all map[string]*reader.Page
}

func (p *pages) put(url string, page *reader.Page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]*reader.Page{}
	}
	p.all[url] = page
}

func (p *pages) get(url string) *reader.Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[url]
}
