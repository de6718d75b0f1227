package framework

import (
	"nodest/framework/keyscan"
	"nodest/internal/lru"
)

// Cache keeps what is expensive to compute for a text, by content and for all
// conversations of a process: its tokens, the keys that occur in it, what
// request-only scripts make of it. A text that was seen before costs a lookup,
// so a further turn of a long chat pays for its new messages alone.
//
// It is safe for concurrent use; nil is a cache that keeps nothing. Results do
// not depend on what is in it.
type Cache struct {
	kept *lru.Cache[cacheKey, any]
}

// cacheKey names the result of a text: by the name of a tokenizer, the id of an automaton
// of keys, or the id of a set of scripts and the name of a choice of them.
type cacheKey struct {
	id   uint64
	name string
	text string
}

const defaultCacheBytes = 64 << 20

// NewCache returns a cache that holds at most about maxBytes of texts and
// results; 0 = 64 MiB.
func NewCache(maxBytes int) *Cache {
	if maxBytes <= 0 {
		maxBytes = defaultCacheBytes
	}
	return &Cache{kept: lru.New[cacheKey, any](maxBytes)}
}

func (c *Cache) put(k cacheKey, v any) {
	size := 0
	if s, ok := v.(string); ok {
		size = len(s)
	}
	c.keep(k, v, size)
}

func (c *Cache) keep(k cacheKey, v any, size int) { c.kept.Put(k, v, len(k.text)+256+size) }

// keyScans names what keyscan keeps; it is no name of a tokenizer or of a choice of scripts.
const keyScans = "\x00keys"

// Get returns what Put has kept.
func (c *Cache) Get(id uint64, text string) (any, bool) {
	return c.kept.Get(cacheKey{id: id, name: keyScans, text: text})
}

// Put keeps what was found in a text (keyscan.Memo).
func (c *Cache) Put(id uint64, text string, v any, size int) {
	c.keep(cacheKey{id: id, name: keyScans, text: text}, v, size)
}

// Memo is c for keyscan; nil for no cache.
func (c *Cache) Memo() keyscan.Memo {
	if c == nil {
		return nil
	}
	return c
}

func (c *Cache) tokens(name, text string, measure func(string) int) int {
	if c == nil {
		return measure(text)
	}
	k := cacheKey{name: name, text: text}
	if v, ok := c.kept.Get(k); ok {
		return v.(int)
	}
	n := measure(text)
	c.put(k, n)
	return n
}

// script returns what scripts, known by id and name, make of text. A result that
// is not whole is not kept.
func (c *Cache) script(id uint64, name, text string, run func() (result string, whole bool)) string {
	k := cacheKey{id: id, name: name, text: text}
	if c != nil {
		if v, ok := c.kept.Get(k); ok {
			return v.(string)
		}
	}
	changed, whole := run()
	if c != nil && whole {
		c.put(k, changed)
	}
	return changed
}
