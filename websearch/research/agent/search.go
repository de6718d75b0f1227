package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/internal/cite"
	"nodest/internal/index"
	"nodest/websearch/provider"
	"nodest/websearch/research/markdown"
	"nodest/websearch/weburl"
)

const (
	resultsPerQuery = 10
	mostDocuments   = 6    // results of one search in the knowledge bases
	documentUnits   = 3000 // length of one of them
)

// ages are the spans that a search can be limited to.
var ages = map[string]time.Duration{
	"qdr:h": time.Hour, "qdr:d": 24 * time.Hour, "qdr:w": 7 * 24 * time.Hour, "qdr:m": 30 * 24 * time.Hour, "qdr:y": 365 * 24 * time.Hour,
}

// hit is a search result as it is recorded.
type hit struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Date  string `json:"date,omitempty"`
}

// hits is the recorded answer of a search.
type hits struct {
	Hits   []hit    `json:"hits"`
	Failed *failure `json:"failed,omitempty"`
}

// find searches for all queries side by side, in the web and in the knowledge bases, and keeps what was
// found. It returns the pages that are new.
func (m *member) find(ctx context.Context, queries []query) (fresh []hit, _ error) {
	found, err := m.inWeb(ctx, queries)
	if err != nil {
		return nil, err
	}
	for i, h := range found {
		m.queries = append(m.queries, queries[i].Text)
		fresh = append(fresh, m.keep(queries[i], h)...)
	}
	return fresh, m.inBases(ctx, queries)
}

func (m *member) inWeb(ctx context.Context, queries []query) ([]hits, error) {
	if !m.searches() {
		return make([]hits, len(queries)), nil
	}
	found, errs, keys := make([]hits, len(queries)), make([]error, len(queries)), make([]string, len(queries))
	for i, q := range queries {
		keys[i] = m.key("search")
		m.tell("search", map[string]any{"member": m.n, "query": q.Text})
	}
	var wg sync.WaitGroup
	for i, q := range queries {
		wg.Go(func() {
			errs[i] = Guard(func() (err error) {
				found[i], err = call(ctx, m, keys[i], m.limit(false), Cost{}, func(ctx context.Context) (hits, Cost, error) {
					return m.searchOnce(ctx, q)
				})
				return err
			})
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, err
		}
		m.tried(found[i].Failed)
	}
	return found, nil
}

func (m *member) searchOnce(ctx context.Context, q query) (hits, Cost, error) {
	var out hits
	err := Guard(func() error {
		results, err := m.o.Search(ctx, provider.Query{
			Text: q.Text, Count: resultsPerQuery, Fresh: q.Fresh, Location: q.Location, Hosts: m.plan.Hosts, Lang: m.plan.Language,
		})
		out.Hits = m.hitsOf(results)
		return err
	})
	if err != nil {
		m.notePanic(ctx, err)
		return hits{Failed: failureOf(err)}, Cost{}, err
	}
	return out, Cost{}, nil
}

func (m *member) hitsOf(results provider.Results) (out []hit) {
	for _, r := range results.Results {
		address, err := weburl.Normalize(r.URL, m.urls)
		if err != nil {
			continue
		}
		h := hit{URL: address, Title: r.Title, Text: r.Description}
		if !r.Date.IsZero() {
			h.Date = r.Date.UTC().Format(time.DateOnly)
		}
		out = append(out, h)
	}
	return out
}

// keep adds the results of a query to the pool, and what their descriptions say to what is known.
func (m *member) keep(q query, found hits) (fresh []hit) {
	var says []string
	for _, h := range found.Hits {
		if m.web.pool.Add(weburl.Hit{URL: h.URL, Title: h.Title, Description: h.Text, Date: h.Date}, 1, m.urls) {
			fresh = append(fresh, h)
		}
		if h.Text != "" {
			says = append(says, h.Text)
			m.web.snippet(h)
		}
	}
	if len(says) == 0 {
		return fresh
	}
	k := Knowledge{Question: `What do Internet say about "` + q.Text + `"?`, Answer: markdown.WithoutTags(strings.Join(says, "; ")), Kind: KindSideInfo}
	if age, limited := ages[q.Fresh]; limited {
		k.Updated = Between(m.begun.Now.Add(-age), m.begun.Now)
	}
	m.known = append(m.known, k)
	return fresh
}

// document is a passage of a knowledge base as it is recorded.
type document struct {
	Source cite.Source `json:"source"`
	Text   string      `json:"text"`
}

// documents is the recorded answer of a search in the knowledge bases.
type documents struct {
	Found  []document `json:"found"`
	Failed *failure   `json:"failed,omitempty"`
}

// inBases searches the knowledge bases for each query.
func (m *member) inBases(ctx context.Context, queries []query) error {
	if m.o.Documents == nil {
		return nil
	}
	for _, q := range queries {
		found, err := call(ctx, m, m.key("documents"), m.limit(false), Cost{}, func(ctx context.Context) (documents, Cost, error) {
			sources, err := m.o.Documents(ctx, q.Text)
			if err != nil {
				return documents{Failed: failureOf(err)}, Cost{}, err
			}
			return bounded(sources), Cost{}, nil
		})
		if err != nil {
			return err
		}
		m.tried(found.Failed)
		for _, d := range found.Found {
			m.web.document(m, q.Text, d)
		}
	}
	return nil
}

// bounded takes the first documents, and of each as much as is worth recording.
func bounded(sources []cite.Source) (out documents) {
	for _, s := range sources[:min(len(sources), mostDocuments)] {
		left, kept := documentUnits, []cite.Chunk{}
		var text []string
		for _, c := range s.Chunks {
			if left -= cite.Len16(c.Text); left < 0 && len(kept) > 0 {
				break
			}
			kept = append(kept, cite.Chunk{Text: c.Text})
			text = append(text, c.Text)
		}
		if len(s.Parts) > len(kept) {
			s.Parts = s.Parts[:len(kept)]
		}
		s.Chunks = kept
		out.Found = append(out.Found, document{s, strings.Join(text, "\n")})
	}
	return out
}

// sameWords reports whether two queries are made of the same words.
func sameWords(a, b string) bool {
	return slices.Equal(wordsOf(a), wordsOf(b))
}

func wordsOf(q string) []string {
	words := index.Terms(q)
	if len(words) == 0 {
		words = strings.Fields(strings.ToLower(q))
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// different returns the texts that ask for something else than the earlier ones and each other.
func (m *member) different(ctx context.Context, texts, earlier []string) ([]string, error) {
	var unlike []string
	for _, text := range texts {
		repeated := func(x string) bool { return sameWords(x, text) }
		if !slices.ContainsFunc(earlier, repeated) && !slices.ContainsFunc(unlike, repeated) {
			unlike = append(unlike, text)
		}
	}
	if !m.begun.Meaning || len(unlike) == 0 || len(unlike)+len(earlier) == 1 {
		return unlike, nil
	}
	return decide(ctx, m, "fresh", func(ctx context.Context) []string { return Fresh(ctx, m.o.Embedder, unlike, earlier) })
}
