package index

import (
	"container/list"
	"context"
	"fmt"
	"sync"
)

// Loader reads the rows of an owner from the database.
type Loader interface {
	// Load returns what has changed since a version, with the version that the rows
	// have now; every change raises it in the same transaction. Since 0 it is
	// everything. It is asked before every query, so it must be cheap when nothing has
	// changed.
	Load(ctx context.Context, key string, since int64) (Delta, error)
}

// Delta leads an index from one version to another. Without a change it has neither
// rows nor Whole.
type Delta struct {
	Version int64
	Rows    []Row
	Removed []string
	Whole   bool // Rows is everything; what the index had goes
}

// CacheOptions tune a Cache. The zero value is ready to use.
type CacheOptions struct {
	Bytes int // of all indexes together; default 256 MB
}

// Cache keeps the indexes that were used last. An index holds the rows of one key
// and no others, so nothing of another owner can come back from it. A Cache is safe
// for concurrent use.
type Cache struct {
	loader Loader
	budget int

	mu      sync.Mutex
	entries map[string]*cached
	recent  list.List // of *cached, the last used first
	bytes   int
}

// cached is the index of one key.
type cached struct {
	key   string
	place *list.Element
	users int // that have it now; it must not go
	bytes int // as counted in the cache

	turn    chan struct{} // holds one token; who has it may load
	index   *Index        // changed and read by who has the token
	version int64
}

// NewCache returns an empty cache over the rows of loader.
func NewCache(loader Loader, opts CacheOptions) *Cache {
	budget := opts.Bytes
	if budget <= 0 {
		budget = 256 << 20
	}
	return &Cache{loader: loader, budget: budget, entries: map[string]*cached{}}
}

// Use calls use with the index of key, not older than the owner's rows when Use was
// called. One caller looks and loads, others of the same key wait for it; when it
// fails, or gives up, the next one tries. An error of the loader is returned as it
// is, and the rows that were there before stay.
//
// The index must not be kept after use returns. The indexes used longest ago go
// while all together take more than the budget; those in use never do.
func (c *Cache) Use(ctx context.Context, key string, use func(*Index) error) error {
	e := c.take(key)
	defer c.release(e)
	x, err := c.fresh(ctx, e)
	if err != nil {
		return err
	}
	return use(x)
}

// Drop forgets the index of key; who uses it now keeps what it has.
func (c *Cache) Drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		c.remove(e)
	}
}

// Stats returns how many indexes are held and what they take, in bytes.
func (c *Cache) Stats() (indexes, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.bytes
}

func (c *Cache) take(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		e = &cached{key: key, turn: make(chan struct{}, 1)}
		e.turn <- struct{}{}
		e.place = c.recent.PushFront(e)
		c.entries[key] = e
	}
	c.recent.MoveToFront(e.place)
	e.users++
	return e
}

// release counts what the index takes now and makes room.
func (c *Cache) release(e *cached) {
	size := 0
	select {
	case <-e.turn: // nobody loads: its size is known
		if e.index != nil {
			size = e.index.Bytes()
		}
		e.turn <- struct{}{}
	default:
		size = -1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	if c.entries[e.key] != e { // dropped meanwhile
		return
	}
	if size >= 0 {
		c.bytes += size - e.bytes
		e.bytes = size
	}
	for at := c.recent.Back(); at != nil && c.bytes > c.budget; {
		old := at.Value.(*cached)
		at = at.Prev()
		if old.users == 0 {
			c.remove(old)
		}
	}
}

func (c *Cache) remove(e *cached) {
	c.recent.Remove(e.place)
	delete(c.entries, e.key)
	c.bytes -= e.bytes
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
