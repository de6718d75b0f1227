package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"nodest/internal/lru"
)

// Loader reads the rows of an owner from the database.
type Loader interface {
	Source
	// Load returns what has changed since a version (0 = everything), or the oldest part
	// of it. base is the Base of the last Delta. Every change increments the version in
	// the same transaction. It is called before every query, so it must be fast if nothing
	// has changed.
	Load(ctx context.Context, key string, since, base int64) (Delta, error)
}

// Delta leads an index from one version to another.
type Delta struct {
	Version int64
	Base    int64 // when it differs, what was loaded before is invalid
	Rows    []Row
	Removed []string
	Whole   bool // Rows is everything up to Version and replaces what the index had
	More    bool // there are later changes
	Partial bool // more rows than are held in memory are in no segment yet

	// Segments are all of the owner, if Whole; Rows are those in none of them.
	Segments []Segment
}

// Cache keeps the recently used indexes. An index holds the rows of one key and no others, so
// nothing of another owner can be returned. A Cache is safe for concurrent use.
type Cache struct {
	loader partCache
	bytes  int // that idle and the parts may have together
	budget int // bytes of idle

	mu   sync.Mutex
	used map[string]*cached // in use now
	idle *lru.Cache[string, *cached]

	rest   chan string     // keys of indexes that Run continues to load
	queued map[string]bool // keys in rest
}

type cached struct {
	key   string
	users int

	turn    chan struct{} // holds one token; who has it may load
	version int64         // the version of index; changed and read by whoever has the token
	base    int64         // the same
	partial bool          // the same
	index   atomic.Pointer[Index]
}

// NewCache returns a cache of at most so many bytes; 0 = 64 MB. Idle indexes may have five eighths
// of these, and parts of segments what they leave.
func NewCache(loader Loader, bytes int) *Cache {
	bytes = cmp.Or(bytes, 64<<20)
	forParts := bytes / 8 * 3
	budget := bytes - forParts
	return &Cache{
		loader: partCache{loader, lru.New[partKey, []byte](forParts)}, bytes: bytes, budget: budget, used: map[string]*cached{}, idle: lru.New[string, *cached](budget),
		rest: make(chan string, maxQueued), queued: map[string]bool{},
	}
}

// ErrReplaced is returned by a Source for a segment that is not there any more. Use then begins
// again with the present ones.
var ErrReplaced = errors.New("index: a segment was replaced")

// Use calls use with the current index of key. One caller loads, and others with the same key
// wait for it; if it fails or gives up, the next one continues from there. An error of the loader
// is returned as it is, and the earlier rows stay.
//
// Loading, or waiting for it, may take half of the time that ctx has left. After that, use gets
// the rows loaded so far, and whole is false; Run and later calls load the rest.
//
// The index must not be kept after use returns. Unused indexes stay within the budget; one that
// is larger is kept alone.
func (c *Cache) Use(ctx context.Context, key string, use func(x *Index, whole bool) error) error {
	e := c.take(key)
	defer c.release(e)
	for tries := 0; ; tries++ {
		whole, err := c.refresh(ctx, e)
		if !whole {
			c.queue(key)
		}
		if err == nil {
			x := e.index.Load()
			if x == nil {
				x = New()
			}
			err = use(x, whole)
		}
		if tries == mostTries || !errors.Is(err, ErrReplaced) {
			return err
		}
	}
}

// mostTries is how often Use begins again because a segment was replaced.
const mostTries = 3

// maxQueued is how many indexes can wait for Run. The next Use queues one that found no place.
const maxQueued = 64

// restPause is how long Run pauses after each part, in multiples of the time that the part took.
const restPause = 2

// Run loads the rest of the indexes that Use left incomplete, until ctx ends. It loads a part
// of one index at a time, in turn, and takes at most a third of a core. It stops loading an index
// that is evicted or cannot be loaded; the next Use begins again and reports the error.
func (c *Cache) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-c.rest:
			begin := time.Now()
			c.continueLoad(ctx, key)
			select {
			case <-ctx.Done():
			case <-time.After(restPause * time.Since(begin)):
			}
		}
	}
}

// continueLoad loads the next part of an index if it is still there and nobody else loads it, and
// queues it again if more is missing.
func (c *Cache) continueLoad(ctx context.Context, key string) {
	e := c.dequeue(key)
	if e == nil {
		return
	}
	defer c.release(e)
	select {
	case <-e.turn:
	default: // who has the token queues it again if need be
		return
	}
	more, err := c.load(ctx, e)
	e.turn <- struct{}{}
	if err == nil && more {
		c.queue(key)
	}
}

// Changed has Run load what has changed in the rows of a key, so that the next question need not. An
// index that is not in memory stays away.
func (c *Cache) Changed(key string) { c.queue(key) }

func (c *Cache) queue(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued[key] {
		return
	}
	select {
	case c.rest <- key:
		c.queued[key] = true
	default:
	}
}

// dequeue returns the index of a key from rest; nil = it was evicted.
func (c *Cache) dequeue(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.queued, key)
	e := c.kept(key)
	if e != nil {
		e.users++
	}
	return e
}

// Stats returns how many unused indexes are kept, and the size in bytes of these and of all parts of
// segments.
func (c *Cache) Stats() (indexes, bytes int) {
	_, parts := c.loader.parts.Size()
	indexes, bytes = c.idle.Size()
	return indexes, bytes + parts
}

func (c *Cache) take(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.kept(key)
	if e == nil {
		e = &cached{key: key, turn: make(chan struct{}, 1)}
		e.turn <- struct{}{}
		c.used[key] = e
	}
	e.users++
	return e
}

// kept returns the index of key as one in use; nil = there is none. It is called with the lock held.
func (c *Cache) kept(key string) *cached {
	if e := c.used[key]; e != nil {
		return e
	}
	e, ok := c.idle.Take(key)
	if ok {
		c.used[key] = e
	}
	return e
}

func (c *Cache) release(e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	delete(c.used, e.key)
	if x := e.index.Load(); x != nil {
		c.idle.Put(e.key, e, min(x.Bytes(), c.budget))
		_, idle := c.idle.Size()
		c.loader.parts.Bound(c.bytes - idle)
	}
}

// refresh brings e up to date, as far as there is time, and reports whether it is.
func (c *Cache) refresh(ctx context.Context, e *cached) (whole bool, err error) {
	patience := ctx
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		patience, cancel = context.WithTimeout(ctx, time.Until(until)/2)
		defer cancel()
	}
	select {
	case <-e.turn:
	case <-patience.Done():
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, nil
	}
	defer func() { e.turn <- struct{}{} }()
	for {
		more, err := c.load(ctx, e)
		if err != nil || !more {
			return err == nil && !e.partial, err
		}
		if patience.Err() != nil {
			return false, nil
		}
	}
}

// load adds what has changed, or the first part of it, to e. ctx does not interrupt the adding of
// what was read, so that each call makes progress.
func (c *Cache) load(ctx context.Context, e *cached) (more bool, err error) {
	since, x := int64(0), e.index.Load()
	if x != nil {
		since = e.version
	}
	delta, err := c.loader.Load(ctx, e.key, since, e.base)
	if err != nil {
		return false, err
	}
	ctx = context.WithoutCancel(ctx)
	if x == nil || delta.Whole {
		if x, err = open(ctx, c.loader, e.key, delta.Segments, x); err != nil {
			return false, fmt.Errorf("open the index of %s: %w", e.key, err)
		}
		e.partial = delta.Partial
	}
	if len(delta.Rows)+len(delta.Removed) > 0 {
		err := x.supersede(ctx, delta.Rows, delta.Removed)
		if err == nil {
			err = x.Apply(ctx, delta.Rows, delta.Removed)
		}
		if err != nil {
			e.index.Store(nil) // it may be half done: the next one loads everything
			return false, fmt.Errorf("load the index of %s: %w", e.key, err)
		}
	}
	e.version, e.base = delta.Version, delta.Base
	e.index.Store(x)
	return delta.More, nil
}

// partCache is a Loader that keeps the parts of segments that were used last. Heads are in the
// indexes.
type partCache struct {
	Loader
	parts *lru.Cache[partKey, []byte]
}

type partKey struct {
	key string // the index's key
	Part
}

const partKeptBytes = 240 // bytes of a part besides its data

// Parts implements Source. Those that are not kept are read at once.
func (c partCache) Parts(ctx context.Context, key string, wanted []Part) ([][]byte, error) {
	parts, missing := make([][]byte, len(wanted)), make([]Part, 0, len(wanted))
	var places []int // where the missing ones stand in parts
	for i, p := range wanted {
		var ok bool
		if parts[i], ok = c.parts.Get(partKey{key, p}); !ok {
			missing, places = append(missing, p), append(places, i)
		}
	}
	if len(missing) == 0 {
		return parts, nil
	}
	found, err := c.Loader.Parts(ctx, key, missing)
	if err != nil {
		return nil, err
	}
	for i, p := range missing {
		if parts[places[i]] = found[i]; p.Number > 0 {
			c.parts.Put(partKey{key, p}, found[i], len(found[i])+partKeptBytes)
		}
	}
	return parts, nil
}
