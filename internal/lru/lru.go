// Package lru is a cache that is bounded by the cost of its entries, for example in
// bytes. The least recently used entry goes first.
//
// It is our own because no library fits: hashicorp/golang-lru bounds the number of
// entries, so the cost, the lock and the eviction would stay with us; otter and
// ristretto bound the cost, but evict by estimated frequency and in the background,
// so neither the bound nor the order is exact.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps values by key. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	maximum int
	cost    int
	entries map[K]*list.Element
	recent  list.List // elements are *entry[K, V], the last used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
	cost  int
}

// New returns an empty cache for entries that together cost at most maximum.
func New[K comparable, V any](maximum int) *Cache[K, V] {
	return &Cache[K, V]{maximum: maximum, entries: map[K]*list.Element{}}
}

// Get returns the value of a key, which counts as a use of it.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.recent.MoveToFront(at)
	return at.Value.(*entry[K, V]).value, true
}

// Put keeps a value in the place of the one that its key has. A value that costs more
// than the cache may hold is not kept.
func (c *Cache[K, V]) Put(key K, value V, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.entries[key]; ok {
		c.remove(at)
	}
	if cost > c.maximum {
		return
	}
	c.entries[key] = c.recent.PushFront(&entry[K, V]{key, value, cost})
	c.cost += cost
	c.shrink()
}

// Bound changes what the entries may cost together.
func (c *Cache[K, V]) Bound(maximum int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maximum = maximum
	c.shrink()
}

// shrink is called with the lock held.
func (c *Cache[K, V]) shrink() {
	for c.cost > c.maximum {
		c.remove(c.recent.Back())
	}
}

// Take removes a key and returns the value that it had.
func (c *Cache[K, V]) Take(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.remove(at)
	return at.Value.(*entry[K, V]).value, true
}

// Size returns the number of entries and what they cost.
func (c *Cache[K, V]) Size() (entries, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.cost
}

// remove is called with the lock held.
func (c *Cache[K, V]) remove(at *list.Element) {
	e := c.recent.Remove(at).(*entry[K, V])
	delete(c.entries, e.key)
	c.cost -= e.cost
}
