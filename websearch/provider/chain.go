package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/internal/fair"
	"nodest/internal/fault"
	"nodest/internal/lru"
	"nodest/llm"
)

// Time limits, pauses and the size of the cache.
const (
	searchLimit = 10 * time.Second // for one provider
	checkLimit  = 5 * time.Second  // for one provider in Check
	cacheSize   = 8 << 20          // bytes, about

	// An answer takes several times its 2 MiB while it is read, so few searches are sent at once.
	// One more is for a user of whom none is.
	maxAsked  = 16
	userAsked = 8
	askWait   = 10 * time.Second

	pauseAuth    = 10 * time.Minute
	pauseQuota   = time.Hour
	pauseRate    = 30 * time.Second // doubled per failure in a row
	pauseFailed  = 5 * time.Second  // doubled per failure in a row
	pauseLongest = time.Hour
)

// Chain asks providers in order until one finds something. A provider that failed is
// left out for a while, at least as long as it asks for. What a provider found is kept
// for the rest of the day (UTC); the same question asked several times at once is sent
// once. Users take turns at a bounded number of searches. A Chain is safe for concurrent use. Close it.
type Chain struct {
	links []*link
	cache *lru.Cache[string, Results]
	now   func() time.Time
	turns *fair.Gate
	wait  time.Duration // for a turn

	running sync.WaitGroup // flights
	mu      sync.Mutex
	flights map[string]*flight
}

// link is one provider of a chain.
type link struct {
	Provider

	mu       sync.Mutex
	until    time.Time // paused until then
	failures int       // in a row
	last     error
}

func newChain(now func() time.Time, providers ...Provider) *Chain {
	c := &Chain{
		cache: lru.New[string, Results](cacheSize), now: now, flights: map[string]*flight{},
		turns: fair.New(fair.Rules{Places: fair.Fixed(maxAsked), Each: userAsked, Spare: 1}), wait: askWait,
	}
	for _, p := range providers {
		c.links = append(c.links, &link{Provider: p})
	}
	return c
}

// Close ends the searches that are running and the sessions with servers.
func (c *Chain) Close() error {
	c.mu.Lock()
	for _, f := range c.flights {
		f.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
	var errs []error
	for _, l := range c.links {
		if p, ok := l.Provider.(io.Closer); ok {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// Names are the providers in the order in which they are asked.
func (c *Chain) Names() (names []string) {
	for _, l := range c.links {
		names = append(names, l.Name())
	}
	return names
}

// Search asks the providers in order. If none finds anything but at least one answered,
// Results is empty. If all failed, the error has the code of the first failure and a
// message that names all. Without providers it is not_configured, and rate_limited when
// others were searching for too long. The caller must not change the lists in Results.
func (c *Chain) Search(ctx context.Context, q Query) (Results, error) {
	if len(c.links) == 0 {
		return Results{}, fault.New(fault.NotConfigured, "no search provider is configured; see NODEST_SEARCH").With("what", "NODEST_SEARCH")
	}
	q, err := q.checked()
	if err != nil {
		return Results{}, err
	}
	start := c.now()
	key := fmt.Sprintf("%q", []any{q, start.UTC().Format(time.DateOnly)})
	end, _ := ctx.Deadline()
	res, err := c.shared(ctx, key, func(ctx context.Context) (Results, error) { return c.search(ctx, key, q, end) })
	res.Took = c.now().Sub(start)
	return res, err
}

// search asks the providers in order. end is when somebody stops waiting, zero if nobody does.
func (c *Chain) search(ctx context.Context, key string, q Query, end time.Time) (Results, error) {
	var failures []Failure
	var nothing *Results // results of the first provider that answered
	at := place{chain: c, user: q.For}
	defer at.leaves()
	for i, l := range c.links {
		if res, ok := c.cache.Get(l.Name() + key); ok {
			res.Cached, res.Failures = true, failures
			return res, nil
		}
		if err := l.paused(c.now()); err != nil {
			failures = append(failures, Failure{l.Name(), err})
			continue
		}
		if err := at.take(ctx); err != nil {
			return Results{}, err
		}
		res, err := c.ask(ctx, l, q, limit(end, i == len(c.links)-1))
		if err == nil && len(res.Results)+len(res.Places) > 0 {
			c.cache.Put(l.Name()+key, res, cost(key, res))
			res.Failures = failures
			return res, nil
		}
		if err == nil {
			err = fault.New(fault.NotFound, "%s found nothing", labels[l.Name()])
			if nothing == nil {
				nothing = &res
			}
		}
		failures = append(failures, Failure{l.Name(), err})
		if ctx.Err() != nil {
			break
		}
	}
	if nothing != nil {
		nothing.Failures = failures
		return *nothing, nil
	}
	return Results{}, allFailed(failures)
}

// place is the place of a search among others, which it takes when it has to ask a provider.
type place struct {
	chain *Chain
	user  string
	leave func() // nil = it has none
}

func (t *place) take(ctx context.Context) (err error) {
	if t.leave != nil {
		return nil
	}
	crowded := fault.New(fault.RateLimited, "too many web searches at once").After(time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, t.chain.wait, crowded)
	defer cancel()
	t.leave, err = t.chain.turns.Enter(ctx, t.user, 1, true)
	return err
}

func (t *place) leaves() {
	if t.leave != nil {
		t.leave()
	}
}

// limit is how long one provider may take. If others come after it, it is half of the
// time until end, so that they have a chance.
func limit(end time.Time, last bool) time.Duration {
	if left := time.Until(end); left > 0 && !last {
		return min(searchLimit, left/2)
	}
	return searchLimit
}

// ask sends a query to one provider. A failure pauses it, unless the reason is that ctx has ended.
func (c *Chain) ask(ctx context.Context, l *link, q Query, limit time.Duration) (Results, error) {
	inTime, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := l.search(inTime, q)
	res.Provider = l.Name()
	err = labelled(l.Name(), err)
	if ctx.Err() == nil {
		l.report(err, c.now())
	}
	return res, err
}

// search is Search of the provider; a panic over an answer is an error.
func (l *link) search(ctx context.Context, q Query) (res Results, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = Results{}, fmt.Errorf("%s: panic: %v\n%s", l.Name(), p, debug.Stack())
		}
	}()
	return l.Search(ctx, q)
}

// paused returns why a provider is left out, nil if it is not.
func (l *link) paused(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := l.until.Sub(now)
	if wait <= 0 {
		return nil
	}
	last := fault.Public(l.last)
	e := fault.Wrap(errors.New("paused after a failure"), last.Code, "%s", last.Message).Quoting(last).After(wait)
	e.Details = last.Details
	return e
}

// report notes how a search ended.
func (l *link) report(err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.failures, l.until, l.last = 0, time.Time{}, nil
		return
	}
	pause := pauseAfter(fault.Public(err), l.failures)
	if pause <= 0 {
		return
	}
	l.failures++
	l.last = err
	if until := now.Add(min(pause, pauseLongest)); until.After(l.until) {
		l.until = until
	}
}

// pauseAfter is how long a provider is left out after a failure that followed others.
func pauseAfter(e *fault.Error, others int) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	others = min(others, 10)
	switch e.Code {
	case fault.UpstreamAuth:
		return pauseAuth
	case fault.UpstreamQuota:
		return pauseQuota
	case fault.UpstreamRate:
		return pauseRate << others
	case fault.UpstreamDown, fault.UpstreamTimeout:
		return pauseFailed << others
	}
	return 0 // it may be about this query only
}

// allFailed joins failures into one error.
func allFailed(failures []Failure) error {
	first := fault.Public(failures[0].Err)
	var messages []string
	var causes []error
	var all []*fault.Error
	var wait time.Duration
	for _, f := range failures {
		e := fault.Public(f.Err)
		messages, causes, all = append(messages, e.Message), append(causes, f.Err), append(all, e)
		if e.RetryAfter > 0 && (wait == 0 || e.RetryAfter < wait) {
			wait = e.RetryAfter
		}
	}
	e := fault.Wrap(errors.Join(causes...), first.Code, "web search failed: %s", strings.Join(messages, "; ")).Quoting(all...).After(wait)
	e.Details = first.Details
	return e
}

// cost is about how many bytes a cache entry takes.
func cost(key string, res Results) int {
	n := 2*len(key) + 200
	for _, r := range res.Results {
		n += len(r.Title) + len(r.URL) + len(r.Description) + 100
	}
	for _, p := range res.Places {
		n += len(p.Name) + len(p.Address) + len(p.Phone) + len(p.PriceRange) + len(p.Description) + 150
	}
	return n
}

// Checked is what a provider did with one real query.
type Checked struct {
	Provider string
	Found    int // number of results
	Took     time.Duration
	Err      error
}

// Check sends one real query to each provider, side by side, and waits for at most 5
// seconds. Nothing is taken from the cache, and paused providers are asked too.
func (c *Chain) Check(ctx context.Context) []Checked {
	q, _ := Query{Text: "Wikipedia", Count: 3}.checked() // valid
	report := make([]Checked, len(c.links))
	var all sync.WaitGroup
	for i, l := range c.links {
		all.Go(func() {
			start := c.now()
			res, err := c.ask(ctx, l, q, checkLimit)
			report[i] = Checked{l.Name(), len(res.Results), c.now().Sub(start), err}
		})
	}
	all.Wait()
	return report
}

// flight is a search that several callers may wait for. It ends when it is done, or when
// the last of them has gone.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int // with the lock of the chain
	res     Results
	err     error
}

// shared runs a search, or waits for the same one if it is running.
func (c *Chain) shared(ctx context.Context, key string, run func(context.Context) (Results, error)) (Results, error) {
	c.mu.Lock()
	f, ok := c.flights[key]
	if !ok {
		f = c.start(ctx, key, run)
	}
	f.waiting++
	c.mu.Unlock()
	select {
	case <-f.done:
		res := f.res
		res.Failures = slices.Clone(res.Failures)
		return res, f.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		c.forget(key, f)
	}
	return Results{}, llm.NetworkError(ctx, "web search", ctx.Err())
}

// start begins a flight, which does not end with ctx. It is called with the lock held.
func (c *Chain) start(ctx context.Context, key string, run func(context.Context) (Results, error)) *flight {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel}
	c.flights[key] = f
	c.running.Go(func() {
		defer cancel()
		f.res, f.err = run(own)
		c.mu.Lock()
		c.forget(key, f)
		c.mu.Unlock()
		close(f.done)
	})
	return f
}

// forget is called with the lock held.
func (c *Chain) forget(key string, f *flight) {
	if c.flights[key] == f {
		delete(c.flights, key)
	}
}
