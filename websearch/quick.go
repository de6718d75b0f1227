package websearch

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/websearch/intent"
	"nodest/websearch/provider"
	"nodest/websearch/reader"
	"nodest/websearch/weburl"
)

// Limits of a search for a reply.
const (
	keywordTime  = 1500 * time.Millisecond
	readTime     = 4 * time.Second // default of Options.ReadTime
	slowShare    = 8               // a share of ReadTime: for better pages, when enough others were read
	pagesRead    = 3               // that are usable
	pagesTried   = 6
	mostEntries  = 5    // in the block
	passageSize  = 600  // UTF-16 units of one, about
	perPage      = 2    // passages
	allPassages  = 2400 // UTF-16 units together
	perSite      = 2    // results
	keywordWords = 40   // tokens of the answer
)

// Turn is a message that needs the web.
type Turn struct {
	UserID string
	Text   string
	Before []string // the user's message and the reply before it
	Query  string   // the words to search for; "" = they are taken from the message
	Lang   string   // the character's: "en", "zh"; "" = unknown

	CharacterID string // whose evaluations move the results; "" = those of all the user's characters
	NoFeedback  bool   // evaluations move nothing
}

// Found is what a search for a reply has found.
type Found struct {
	Query    string
	Provider string
	Cached   bool
	Results  int
	Took     time.Duration
	Places   []provider.Place
	Sources  []cite.Source          // the n-th is [n] in the prompt
	Factors  map[string]float64     // by which evaluations moved sources, by their addresses, unless it is 1
	Closed   map[string]reader.Kind // kinds of wall that hid the pages of sources, by their addresses
	lang     string
}

// Quick searches the web for a reply. A result without sources means that nothing was
// found. It ends soon after ctx does; pages that were not read by then contribute the
// description of the search result.
//
// Errors: NotConfigured, and those of the providers.
func (s *Service) Quick(ctx context.Context, t Turn) (*Found, error) {
	begun := s.opts.Now()
	f := &Found{Query: s.keywords(ctx, t), lang: t.Lang}
	found, err := s.opts.Chain.Search(ctx, provider.Query{
		For: t.UserID, Text: f.Query, Lang: t.Lang, Country: s.opts.Country, Safe: s.opts.Safe, Place: intent.Place(f.Query),
	})
	if err != nil {
		return nil, err
	}
	f.Provider, f.Cached, f.Results, f.Places = found.Provider, found.Cached, len(found.Results), found.Places
	candidates := s.rank(ctx, t, found.Results)
	f.Factors = map[string]float64{}
	f.Sources, f.Closed = s.sources(ctx, t, candidates)
	for _, c := range candidates {
		if c.factor != 1 && slices.ContainsFunc(f.Sources, func(source cite.Source) bool { return source.URL == c.url }) {
			f.Factors[c.url] = c.factor
		}
	}
	f.Took = s.opts.Now().Sub(begun)
	s.opts.Log.InfoContext(ctx, "web search for a reply", "provider", f.Provider, "cached", f.Cached, "results", f.Results,
		"pages", len(f.Sources), "failed", len(found.Failures), "took", f.Took.Round(time.Millisecond))
	return f, nil
}

// keywords are what to search for: the model's choice, or the message without its filler words.
func (s *Service) keywords(ctx context.Context, t Turn) string {
	if t.Query != "" {
		return t.Query
	}
	plain := intent.Query(t.Text)
	if s.opts.Model == nil {
		return plain
	}
	ctx, cancel := context.WithTimeout(ctx, keywordTime)
	defer cancel()
	model, err := s.opts.Model(ctx, t.UserID)
	if err != nil || model == nil {
		return plain
	}
	answer, err := model.Ask(ctx, llm.Prompt{Text: intent.KeywordPrompt(t.Lang, t.Text, t.Before), MaxTokens: keywordWords})
	if err != nil {
		s.opts.Log.InfoContext(ctx, "search words not chosen by the model", "code", fault.Public(err).Code)
		return plain
	}
	return intent.CleanKeywords(answer, t.Text)
}

// candidate is a page that may be read.
type candidate struct {
	url    string
	result provider.Result
	score  float64 // from weburl.Rank, with the factor
	factor float64 // from evaluations of its host
	judged bool    // there are some
}

// rank orders results by how well they fit the message, each page once and at most two
// of a site, without hosts that could not be reached lately.
func (s *Service) rank(ctx context.Context, t Turn, results []provider.Result) []candidate {
	var pool weburl.Pool
	byURL := map[string]provider.Result{}
	for _, r := range results {
		url, err := s.normalize(r.URL)
		if err != nil {
			continue
		}
		pool.Add(weburl.Hit{URL: url, Title: r.Title, Description: r.Description}, 1, s.urls)
		if _, known := byURL[url]; !known {
			byURL[url] = r
		}
	}
	ranked := weburl.KeepPerSite(weburl.Rank(ctx, pool.Hits(), weburl.RankOptions{Question: t.Text}), perSite)
	var hosts []string
	for _, hit := range ranked {
		hosts = append(hosts, hostOf(hit.URL))
	}
	bad := s.badHosts(ctx, t.UserID, hosts)
	var out []candidate
	for i, hit := range ranked {
		if !bad[hosts[i]] {
			out = append(out, candidate{url: hit.URL, result: byURL[hit.URL], score: hit.Score, factor: 1})
		}
	}
	return s.judge(ctx, t, out)
}

// read is a candidate that was read, or why it was not.
type read struct {
	candidate
	page *Page // nil = not read
	err  error
}

// readBest reads candidates in their order, three at a time, until enough are usable or
// the time is over. Pages that were asked for earlier get a little longer.
func (s *Service) readBest(ctx context.Context, t Turn, all []candidate) []read {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ReadTime)
	defer cancel()
	out := make([]read, len(all))
	for i, c := range all {
		out[i].candidate = c
	}
	slow := time.AfterFunc(s.opts.ReadTime, cancel) // sooner when the others are there
	defer slow.Stop()
	var mu sync.Mutex
	next, usable := 0, 0
	take := func() (i int) {
		mu.Lock()
		defer mu.Unlock()
		if usable >= pagesRead || next >= min(len(all), pagesTried) || ctx.Err() != nil {
			return -1
		}
		next++
		return next - 1
	}
	var group sync.WaitGroup
	for range pagesRead {
		group.Go(func() {
			for i := take(); i >= 0; i = take() {
				page, err := s.page(ctx, t.UserID, all[i].url, wish{lang: t.Lang})
				if err == nil && unrelated(page, all[i].result.Title+"\n"+all[i].result.Description, t.Text) {
					page, err = nil, unreadable(&reader.Error{Outcome: reader.Blocked, Kind: reader.KindUnrelated, URL: all[i].url})
				}
				out[i].page, out[i].err = page, err
				if out[i].err == nil {
					mu.Lock()
					if usable++; usable == pagesRead {
						slow.Reset(s.opts.ReadTime / slowShare)
					}
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return out
}

// sources are the numbered entries of the block, and the walls that hid the pages of some.
func (s *Service) sources(ctx context.Context, t Turn, candidates []candidate) (out []cite.Source, hidden map[string]reader.Kind) {
	reads := distinct(s.readBest(ctx, t, candidates))
	embedder := s.embedder(ctx, t.UserID)
	entries := make([]cite.Source, len(reads))
	var group sync.WaitGroup
	for i, r := range reads {
		group.Go(func() {
			defer func() {
				if p := recover(); p != nil { // the page is left out
					s.opts.Log.ErrorContext(ctx, "no passages could be picked from a page", "err", p, "stack", string(debug.Stack()))
				}
			}()
			entries[i] = r.source(ctx, embedder, t.Text)
		})
	}
	group.Wait()
	room := allPassages
	hidden = map[string]reader.Kind{}
	for i, source := range entries {
		source.Chunks = fitting(source.Chunks, &room)
		if len(source.Chunks) > 0 && len(out) < mostEntries {
			out = append(out, source)
			if kind := closed(reads[i].err); kind != "" {
				hidden[source.URL] = kind
			}
		}
	}
	return out, hidden
}

// source is the entry of a page: its passages that answer the message, or, if it was not
// read, what the search provider says about it.
func (r read) source(ctx context.Context, embedder llm.Embedder, text string) cite.Source {
	source := cite.Source{Kind: cite.KindWeb, URL: r.url, Title: r.result.Title, Evidence: cite.EvidenceSnippet, DateTime: day(&r.result.Date)}
	switch {
	case r.page != nil:
		source.Evidence = cite.EvidencePage
		source.Title, source.DateTime = cmp.Or(r.page.Title, source.Title), cmp.Or(day(r.page.Published), source.DateTime)
		for _, p := range cite.Passages(ctx, embedder, text, r.page.Markdown, cite.PassageOptions{Size: passageSize, Count: perPage}) {
			source.Chunks = append(source.Chunks, p.Chunk)
		}
	case unread(r.err):
		source.Chunks = []cite.Chunk{{Text: r.result.Description}}
	}
	source.Title = cmp.Or(source.Title, weburl.Hostname(r.url))
	return source
}

// day is a date of publication; "" = unknown.
func day(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return op.Time(*at).String()
}

// unread reports whether a page may be good although it was not read: there was no time, it
// cannot be read here, or it is closed. The description of a page that is spam or gone is not used.
func unread(err error) bool {
	var e *reader.Error
	if !errors.As(err, &e) || errors.Is(err, context.Canceled) { // there was no time
		return true
	}
	switch e.Outcome {
	case reader.Timeout, reader.Unsupported, reader.RobotsDisallowed, reader.TooLarge, reader.Retry, reader.Busy:
		return true
	}
	return closed(err) != ""
}

// fitting are the passages that fit the room that is left, in UTF-16 units.
func fitting(passages []cite.Chunk, room *int) (kept []cite.Chunk) {
	for _, p := range passages {
		if n := cite.Len16(p.Text); n <= *room && strings.TrimSpace(p.Text) != "" {
			kept, *room = append(kept, p), *room-n
		}
	}
	return kept
}

// distinct leaves out pages that are the same as an earlier one.
func distinct(reads []read) []read {
	var out []read
	for _, r := range reads {
		same := r.page != nil && slices.ContainsFunc(out, func(o read) bool {
			return o.page != nil && (r.page.key() == o.page.key() || reader.NearDuplicate(r.page.shingles(), o.page.shingles()))
		})
		if !same {
			out = append(out, r)
		}
	}
	return out
}
