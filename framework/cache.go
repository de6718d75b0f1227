package framework

import "sync"

// Cache keeps what is costly to compute of a text, by content and for all
// conversations of a process: its tokens, the keys that occur in it, what
// request-only scripts make of it. A text that was seen before costs a look-up,
// so a further turn of a long chat pays for its new messages alone.
//
// It is safe for concurrent use; nil is a cache that keeps nothing. Results do
// not depend on what is in it.
type Cache struct {
	mu    sync.Mutex
	half  int // bytes that one generation may hold
	young generation
	old   generation
	work  Work
}

// Work counts what a Cache could not answer, since it was made.
type Work struct {
	TokenTexts, TokenBytes   int // counted by a tokenizer
	ScanTexts, ScanBytes     int // searched for keys
	ScriptTexts, ScriptBytes int // run through request-only scripts
}

// cacheKey names a result. What says of which kind it is and, with id, for which
// tokenizer, compiled documents or scripts.
type cacheKey struct {
	what byte
	id   uint64
	name string
	text string
}

const (
	cacheTokens byte = iota
	cacheKeys
	cacheScripts
)

// generation is half of the cache. When the young one is full it becomes the old
// one, and what is asked for again moves back: what was not used for a whole
// generation is gone. That is nearly LRU at the price of a map.
type generation struct {
	values map[cacheKey]any
	bytes  int
}

// defaultCacheBytes is what a Cache holds unless it is told otherwise.
const defaultCacheBytes = 64 << 20

// NewCache returns a cache that holds at most about maxBytes of texts and
// results; 0 = 64 MiB.
func NewCache(maxBytes int) *Cache {
	if maxBytes <= 0 {
		maxBytes = defaultCacheBytes
	}
	return &Cache{half: max(maxBytes/2, 1)}
}

// Work tells what was computed so far.
func (c *Cache) Work() Work {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work
}

func (c *Cache) get(k cacheKey) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young.values[k]; ok {
		return v, true
	}
	v, ok := c.old.values[k]
	if ok {
		c.store(k, v)
	}
	return v, ok
}

func (c *Cache) put(k cacheKey, v any, count func(*Work)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count(&c.work)
	c.store(k, v)
}

// store is called with the lock held.
func (c *Cache) store(k cacheKey, v any) {
	size := len(k.text) + 128
	switch v := v.(type) {
	case []int32:
		size += 4 * len(v)
	case string:
		size += len(v)
	}
	if size > c.half {
		return
	}
	if c.young.values == nil || c.young.bytes+size > c.half {
		c.old = c.young
		c.young = generation{values: map[cacheKey]any{}}
	}
	if _, there := c.young.values[k]; !there {
		c.young.bytes += size
	}
	c.young.values[k] = v
}

func (c *Cache) tokens(name, text string, measure func(string) int) int {
	if c == nil {
		return measure(text)
	}
	k := cacheKey{what: cacheTokens, name: name, text: text}
	if v, ok := c.get(k); ok {
		return v.(int)
	}
	n := measure(text)
	c.put(k, n, func(w *Work) { w.TokenTexts++; w.TokenBytes += len(text) })
	return n
}

// keys returns the ids of the keys of a that occur in text, ascending.
func (c *Cache) keys(a *automaton, text string) []int32 {
	k := cacheKey{what: cacheKeys, id: a.id, text: text}
	if v, ok := c.get(k); ok {
		return v.([]int32)
	}
	found := a.find(text)
	c.put(k, found, func(w *Work) { w.ScanTexts++; w.ScanBytes += len(text) })
	return found
}

// script returns what scripts, known by id and name, make of text. A result that
// is not whole is not kept.
func (c *Cache) script(id uint64, name, text string, run func() (result string, whole bool)) string {
	k := cacheKey{what: cacheScripts, id: id, name: name, text: text}
	if c != nil {
		if v, ok := c.get(k); ok {
			return v.(string)
		}
	}
	changed, whole := run()
	if c != nil && whole {
		c.put(k, changed, func(w *Work) { w.ScriptTexts++; w.ScriptBytes += len(text) })
	}
	return changed
}
