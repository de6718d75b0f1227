// Package loretool finds vectorised world-book entries by meaning, for the turns of characters of the SillyTavern
// dialect. Which of them a prompt gets is the business of package worldinfo, as with any other entry.
package loretool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"nodest/framework"
	"nodest/framework/worldinfo"
	"nodest/internal/fair"
	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/internal/lru"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest"
)

// Limits of a search. The first three are SillyTavern's defaults.
const (
	newestMessages = 2 // that are searched with
	mostFound      = 5
	leastCosine    = 0.25

	longestText = 2000 // code points of a message that are searched with
)

// Options tune a Service. The zero value is ready to use.
type Options struct {
	// Embedder returns what makes vectors for a user; nil, and a nil result, mean that entries are found by words.
	Embedder   func(ctx context.Context, userID string) (llm.Embedder, error)
	Limit      time.Duration // how long a turn waits; default 1.5 s
	CacheBytes int           // bytes of the indexes that are kept; default 128 MiB; a larger one is kept alone
	Log        *slog.Logger  // default slog.Default()
}

// Service searches world books. It is safe for concurrent use. Close ends it.
type Service struct {
	opts  Options
	books *lru.Cache[key, *book]
	gate  *fair.Gate // shares the calls in the background between users

	ctx     context.Context // ends with the service
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	runs map[key]*run
}

// key names the index of a book: nobody finds what the provider of another user made.
type key struct {
	userID string
	texts  [sha256.Size]byte
	model  string // "" = there are no vectors
}

// run makes a book ready in the background.
type run struct {
	ready chan struct{} // closed when book can be searched
	book  *book
}

// background is how many books get their vectors at once.
const background = 4

// New returns a service.
func New(o Options) *Service {
	o.Limit, o.CacheBytes, o.Log = cmp.Or(o.Limit, 1500*time.Millisecond), cmp.Or(o.CacheBytes, 128<<20), cmp.Or(o.Log, slog.Default())
	s := &Service{
		opts: o, books: lru.New[key, *book](o.CacheBytes), gate: fair.New(fair.Rules{Places: fair.Fixed(background), Each: background / 2}),
		runs: map[key]*run{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Close stops the work in the background and waits for its end. Later searches find only what is ready.
func (s *Service) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.running.Wait()
}

// Source is the source that searches the vectorised entries of a chat's world books.
func (s *Service) Source() nodest.Source {
	return nodest.Source{
		Name: "worldinfo", Limit: s.opts.Limit,
		Warning: framework.Warning{Code: "worldinfo_unavailable", Detail: "world-book entries could not be searched by meaning"},
		Wanted: func(q *nodest.Question) bool {
			t := q.Setup.Docs.Tavern
			return t != nil && len(t.Vectorized().Entries) > 0
		},
		Find: s.find,
	}
}

func (s *Service) find(ctx context.Context, q *nodest.Question) (f nodest.Findings, err error) {
	ask := question{names: q.Setup.MemoryScene().Names, now: q.Now}
	for _, text := range q.Newest(newestMessages) {
		ask.texts = append(ask.texts, op.Truncate(text, longestText))
	}
	if len(ask.texts) > 0 {
		f.Lore, err = s.search(ctx, q.UserID, q.Setup.Docs.Tavern.Vectorized(), &ask)
	}
	return f, err
}

// search returns the ids of the entries that fit. If the provider fails, it returns the error along with
// the entries that words find.
func (s *Service) search(ctx context.Context, userID string, list *worldinfo.Vectorized, ask *question) (ids []string, err error) {
	e, failed := s.embedder(ctx, userID)
	k := key{userID: userID, texts: list.Hash}
	if e != nil {
		k.model = e.ModelID()
	}
	b, err := s.book(ctx, k, list.Entries, e)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	failed = errors.Join(failed, b.failed)
	if b.vectorised() {
		if ask.near, err = vectorOf(ctx, e, ask.texts); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	found, err := b.search(ctx, ask)
	for _, n := range found {
		ids = append(ids, list.Entries[n].ID)
	}
	return ids, errors.Join(failed, err)
}

// embedder returns nil where no provider is set up.
func (s *Service) embedder(ctx context.Context, userID string) (llm.Embedder, error) {
	if s.opts.Embedder == nil {
		return nil, nil
	}
	e, err := s.opts.Embedder(ctx, userID)
	switch {
	case fault.Is(err, fault.NotConfigured):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return e, nil
}

var errEmbedderSlow = errors.New("the embedding provider took too long")

// vectorOf asks for the vector of what is searched, in half of the remaining time.
func vectorOf(ctx context.Context, e llm.Embedder, texts []string) (index.Vector, error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(until)/2, errEmbedderSlow)
		defer cancel()
	}
	found, err := e.Embed(ctx, llm.Query, []string{strings.Join(texts, "\n")})
	if err != nil {
		return index.Vector{}, fmt.Errorf("embed the newest messages: %w", err)
	}
	return index.Vector{Model: found.Model, Values: found.Vectors[0]}, nil
}

// book returns the index of a book as far as it is ready. Vectors that it lacks are made in the background.
func (s *Service) book(ctx context.Context, k key, entries []worldinfo.VectorizedEntry, e llm.Embedder) (*book, error) {
	r := s.begin(k, entries, e)
	select {
	case <-r.ready:
		return r.book, nil
	default: // also when the service has ended
	}
	select {
	case <-r.ready:
		return r.book, nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin returns the run of a book: the one that works on it, or else a new one, which works only where
// something is left to do.
func (s *Service) begin(k key, entries []worldinfo.VectorizedEntry, e llm.Embedder) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[k]; r != nil {
		return r
	}
	r := &run{ready: make(chan struct{})}
	if b, ok := s.books.Get(k); ok {
		r.book = b
		close(r.ready)
		if e == nil || !b.lacks(time.Now()) {
			return r
		}
	}
	if s.ctx.Err() != nil {
		return r
	}
	s.runs[k] = r
	s.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.opts.Log.ErrorContext(s.ctx, "world book not indexed", "user", k.userID, "err", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
			s.mu.Lock()
			delete(s.runs, k)
			s.mu.Unlock()
		}()
		if err := s.work(k, r, entries, e); err != nil && s.ctx.Err() == nil {
			s.opts.Log.DebugContext(s.ctx, "world-book entries have no vectors yet", "user", k.userID, "err", err)
		}
	})
	return r
}

// work makes a book searchable by words, and then by vectors.
func (s *Service) work(k key, r *run, entries []worldinfo.VectorizedEntry, e llm.Embedder) (err error) {
	b := r.book
	if b == nil {
		if b, err = newBook(s.ctx, entries, nil); err != nil {
			return err
		}
		s.keep(k, b)
		r.book = b
		close(r.ready)
	}
	if e == nil || !b.lacks(time.Now()) {
		return nil
	}
	leave, err := s.gate.Enter(s.ctx, k.userID, 1, false)
	if err != nil {
		return err
	}
	defer leave()
	w := newEmbedding(e, entries, b.vectors)
	failed := w.run(s.ctx)
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if w.made > 0 {
		if b, err = newBook(s.ctx, entries, w.vectors); err != nil {
			return err
		}
	}
	s.keep(k, b.after(w.vectors, failed, time.Now()))
	return failed
}

func (s *Service) keep(k key, b *book) { s.books.Put(k, b, min(b.bytes(), s.opts.CacheBytes)) }
