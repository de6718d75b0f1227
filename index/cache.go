package index

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"nodest/lru"
)

// Loader reads the rows of an owner from the database.
type Loader interface {
	// Load returns what has changed since a version; since 0, everything. Every change
	// increments the version in the same transaction. It is called before every query, so it
	// must be fast if nothing has changed.
	Load(ctx context.Context, key string, since int64) (Delta, error)
}

// Delta leads an index from one version to another.
type Delta struct {
	Version int64
	Rows    []Row
	Removed []string
	Whole   bool // Rows is everything; what the index had goes
}

// Cache keeps the recently used indexes. An index holds the rows of one key and no others, so
// nothing of another owner can be returned. A Cache is safe for concurrent use.
type Cache struct {
	loader Loader

	mu   sync.Mutex
	used map[string]*cached // in use now
	idle *lru.Cache[string, *cached]
}

type cached struct {
	key   string
	users int

	turn    chan struct{} // holds one token; who has it may load
	index   *Index        // changed and read by who has the token
	version int64
}

// NewCache returns a cache of at most so many bytes; 0 = 256 MB.
func NewCache(loader Loader, bytes int) *Cache {
	budget := cmp.Or(bytes, 256<<20)
	return &Cache{loader: loader, used: map[string]*cached{}, idle: lru.New[string, *cached](budget)}
}

// Use calls use with the current index of key. One caller loads, others of the same key wait
// for it; if it fails, or gives up, the next one tries. An error of the loader is returned as
// it is, and the earlier rows stay.
//
// The index must not be kept after use returns. Unused indexes stay within the budget.
func (c *Cache) Use(ctx context.Context, key string, use func(*Index) error) error {
	e := c.take(key)
	defer c.release(e)
	x, err := c.fresh(ctx, e)
	if err != nil {
		return err
	}
	return use(x)
}

// Stats returns how many unused indexes are kept, and their size in bytes.
func (c *Cache) Stats() (indexes, bytes int) { return c.idle.Size() }

func (c *Cache) take(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.used[key]
	if e == nil {
		var ok bool
		if e, ok = c.idle.Take(key); !ok {
			e = &cached{key: key, turn: make(chan struct{}, 1)}
			e.turn <- struct{}{}
		}
		c.used[key] = e
	}
	e.users++
	return e
}

func (c *Cache) release(e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	delete(c.used, e.key)
	if e.index != nil {
		c.idle.Put(e.key, e, e.index.Bytes())
	}
}

// fresh brings e up to the version of its owner.
func (c *Cache) fresh(ctx context.Context, e *cached) (*Index, error) {
	select {
	case <-e.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { e.turn <- struct{}{} }()
	since := int64(0)
	if e.index != nil {
		since = e.version
	}
	delta, err := c.loader.Load(ctx, e.key, since)
	if err != nil {
		return nil, err
	}
	x := e.index
	if x == nil || delta.Whole {
		x = New()
	}
	if len(delta.Rows)+len(delta.Removed) > 0 {
		if err := x.Apply(ctx, delta.Rows, delta.Removed); err != nil {
			e.index = nil // it may be half done: the next one loads everything
			return nil, fmt.Errorf("load the index of %s: %w", e.key, err)
		}
	}
	e.index, e.version = x, delta.Version
	return x, nil
}
