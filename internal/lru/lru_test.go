package lru

import (
	"fmt"
	"sync"
	"testing"
)

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Get("a")
	c.Put("c", 3, 4)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, ok := c.Get(key); ok != want {
			t.Errorf("%s is kept: %v", key, ok)
		}
	}
	if n, cost := c.Size(); n != 2 || cost != 8 {
		t.Errorf("%d entries cost %d", n, cost)
	}
}

func TestAValueTakesThePlaceOfTheOneBefore(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("a", 2, 9)
	if v, ok := c.Get("a"); !ok || v != 2 {
		t.Errorf("got %d, %v", v, ok)
	}
	c.Put("a", 3, 11) // too much: but the old one is not true any more
	if v, ok := c.Get("a"); ok {
		t.Errorf("got %d", v)
	}
	if n, cost := c.Size(); n != 0 || cost != 0 {
		t.Errorf("%d entries cost %d", n, cost)
	}
}

func TestALargeValueDoesNotEmptyTheCache(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 11)
	if _, ok := c.Get("a"); !ok {
		t.Error("a is gone")
	}
}

func TestTakeRemoves(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 4)
	if v, ok := c.Take("a"); !ok || v != 1 {
		t.Errorf("got %d, %v", v, ok)
	}
	if _, ok := c.Take("a"); ok {
		t.Error("taken twice")
	}
	if n, cost := c.Size(); n != 0 || cost != 0 {
		t.Errorf("%d entries cost %d", n, cost)
	}
}

func TestTheBoundHoldsFromManySides(t *testing.T) {
	const maximum = 100
	c := New[string, int](maximum)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				n := (i*7 + g) % 60
				key := fmt.Sprint(n)
				switch i % 3 {
				case 0:
					c.Put(key, n, n%9)
				case 1:
					if v, ok := c.Get(key); ok && v != n {
						t.Errorf("%s is %d", key, v)
					}
				default:
					c.Take(key)
				}
				if _, cost := c.Size(); cost < 0 || cost > maximum {
					t.Errorf("costs %d", cost)
				}
			}
		})
	}
	all.Wait()
}

func TestALowerBoundEvictsAtOnce(t *testing.T) {
	c := New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Bound(5)
	if _, ok := c.Get("a"); ok {
		t.Error("the older one is kept")
	}
	c.Bound(10)
	c.Put("c", 3, 6)
	if n, cost := c.Size(); n != 2 || cost != 10 {
		t.Errorf("%d entries cost %d", n, cost)
	}
}
