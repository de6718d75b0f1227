// Package websearch searches the web for a reply and reads the pages that it finds.
//
// A search for a reply (Quick) asks the search providers once, ranks what they return,
// reads the best pages side by side and picks the passages that answer the message. It
// has a deadline and gives what it has when that comes. What it finds is untrusted: it
// goes into a block of the prompt as data, and links in it are never followed.
//
// Pages that were read are kept per user, so that a citation can be checked against the
// page, and a page is not asked for again as long as it is fresh.
package websearch

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/websearch/intent"
	"nodest/websearch/provider"
	"nodest/websearch/reader"
	"nodest/websearch/weburl"
)

// Options configure a Service.
type Options struct {
	Chain   *provider.Chain
	Reader  *reader.Reader
	Country string // country of the results; "" = any
	Safe    string // provider.SafeOff, SafeModerate or SafeStrict

	// Keywords says that the keywords of the NodeST app decide whether a message needs a
	// search, instead of the classifier.
	Keywords bool

	// Embedder returns what compares texts; nil, and a nil result, mean that they are
	// compared by words.
	Embedder func(ctx context.Context, userID string) (llm.Embedder, error)
	// Model returns the model that picks the words to search for; nil, and a nil result,
	// mean that a message is searched for without its filler words.
	Model func(ctx context.Context, userID string) (llm.Asker, error)

	// Private reports whether pages of a host may be read although it is private; nil = no.
	Private func(host string) bool

	// ReadTime is how long the pages of a search for a reply may take together; 0 = 4 s.
	ReadTime time.Duration

	Log *slog.Logger     // default slog.Default()
	Now func() time.Time // default time.Now
}

// Service searches the web and reads pages. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
	urls  weburl.Options
}

// New returns a Service.
func New(store Store, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.ReadTime = cmp.Or(o.ReadTime, readTime)
	return &Service{store, o, weburl.Options{AllowPrivate: o.Private}}
}

func (s *Service) normalize(url string) (string, error) { return weburl.Normalize(url, s.urls) }

// Private reports whether pages of a host may be read although it is private.
func (s *Service) Private(host string) bool { return s.opts.Private != nil && s.opts.Private(host) }

// Providers are the names of the search providers, in the order in which they are asked.
func (s *Service) Providers() []string { return s.opts.Chain.Names() }

// Intent names what decides whether a message needs a search: "classifier" or "keywords".
func (s *Service) Intent() string {
	if s.opts.Keywords {
		return "keywords"
	}
	return "classifier"
}

// Wanted reports whether a message needs a search; names are of the user, the character
// and the story. The log tells the reason of each decision, without the message.
func (s *Service) Wanted(text string, names []string) bool {
	d := intent.Decision{Search: intent.Seed(text), Reason: "keywords"}
	if !s.opts.Keywords {
		d = intent.Better(text, intent.Options{Names: names})
	}
	s.opts.Log.Info("web search decision", "search", d.Search, "reason", d.Reason, "rule", s.Intent())
	return d.Search
}

// Search asks the search providers, in their order until one has results; limit is 1 to 20, 0 = 10.
//
// Errors: Invalid, NotConfigured, and those of the providers.
func (s *Service) Search(ctx context.Context, userID, query string, limit int) (provider.Results, error) {
	if limit < 0 || limit > 20 {
		return provider.Results{}, fault.InvalidField("limit", "range", "must be 1 to 20")
	}
	return s.Find(ctx, userID, provider.Query{Text: query, Count: limit})
}

// Find asks the search providers a query of a user, which the settings of the server complete.
//
// Errors: NotConfigured, and those of the providers.
func (s *Service) Find(ctx context.Context, userID string, q provider.Query) (provider.Results, error) {
	q.For, q.Country, q.Safe = userID, s.opts.Country, s.opts.Safe
	return s.opts.Chain.Search(ctx, q)
}

// embedder is what compares texts for a user; nil = by words.
func (s *Service) embedder(ctx context.Context, userID string) llm.Embedder {
	if s.opts.Embedder == nil {
		return nil
	}
	e, err := s.opts.Embedder(ctx, userID)
	if err != nil {
		s.opts.Log.WarnContext(ctx, "pages are compared by words alone", "err", err)
		return nil
	}
	return e
}
