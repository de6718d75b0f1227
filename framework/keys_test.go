package framework

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"nodest/card"
)

// keyedBook is a book with one entry for each ten keys.
func keyedBook(keys []string) (b card.WorldBook) {
	for some := range slices.Chunk(keys, 10) {
		b.Entries = append(b.Entries, card.Entry{ID: fmt.Sprint(len(b.Entries)), Content: "x", Position: card.AtDepth, Key: some})
	}
	return b
}

// randomKeys are keys of ten bytes that share little, which is what takes most memory.
func randomKeys(t *testing.T, n int) []string {
	r, keys := seeded(t), make([]string, n)
	for i := range keys {
		key := make([]byte, 10)
		for j := range key {
			key[j] = byte('a' + r.IntN(26))
		}
		keys[i] = string(key)
	}
	return keys
}

func TestABookTakesAsMuchMemoryAsItSays(t *testing.T) {
	var before, after runtime.MemStats
	book := keyedBook(randomKeys(t, 20_000))
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := Compile(Sources{Book: book})
	runtime.ReadMemStats(&after)
	if used, limit := after.TotalAlloc-before.TotalAlloc, uint64(20_000*10*60); used > limit {
		t.Errorf("compiling 200,000 bytes of keys allocated %d bytes, limit %d", used, limit)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept, says := int(after.HeapAlloc-before.HeapAlloc), c.Size()
	if kept > says*5/4 || kept < says/2 {
		t.Errorf("%d bytes are kept, Size says %d", kept, says)
	}
	runtime.KeepAlive(book)
}

func TestKeysOverTheBoundAreNotLookedFor(t *testing.T) {
	long := strings.Repeat("k", maxKeys/10)
	book := keyedBook([]string{"tea"})
	for range 10 {
		more := keyedBook([]string{long})
		more.Entries[0].ID = fmt.Sprint(len(book.Entries))
		book.Entries = append(book.Entries, more.Entries...)
	}
	p := build(t, Input{Sources: Sources{Book: book}, User: Message{Text: "tea and " + long}})
	if len(p.Warnings) != 1 || p.Warnings[0].Code != "too_many_keys" {
		t.Errorf("warnings = %+v", p.Warnings)
	}
	fired := 0
	for _, e := range p.Entries {
		if e.Source == SourceBook {
			fired++
		}
	}
	if fired != 10 {
		t.Errorf("%d entries fired, want 10 of 11", fired)
	}
}

func TestASearchForKeysEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	in := Input{Sources: Sources{Book: keyedBook([]string{"tea"})}, User: Message{Text: "tea"}}
	if _, err := Build(ctx, in); !errors.Is(err, gone) {
		t.Errorf("error = %v", err)
	}
}

func TestCacheStaysWithinItsBytes(t *testing.T) {
	const limit = 100_000
	c := NewCache(limit)
	for i := range 2000 {
		c.tokens("x", fmt.Sprintf("%d %s", i, strings.Repeat("a", 300)), func(string) int { return i })
		if _, held := c.kept.Size(); held > limit {
			t.Fatalf("holds %d bytes of %d", held, limit)
		}
	}
	c.tokens("x", strings.Repeat("a", limit), func(string) int { return 1 })
	if _, held := c.kept.Size(); held > limit {
		t.Errorf("holds %d bytes after a text larger than itself", held)
	}
}

func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c := NewCache(100_000)
	counted := 0
	hot := func() {
		c.tokens("x", "hot", func(string) int { counted++; return 7 })
	}
	for i := range 5000 {
		if i%50 == 0 {
			hot()
		}
		c.tokens("x", fmt.Sprintf("cold %d %s", i, strings.Repeat("a", 200)), func(string) int { return 0 })
	}
	if counted != 1 {
		t.Errorf("a text that is always in use was counted %d times", counted)
	}
}

func TestCacheKeepsTokenizersApart(t *testing.T) {
	c := NewCache(0)
	one := c.tokens("one", "text", func(string) int { return 1 })
	two := c.tokens("two", "text", func(string) int { return 2 })
	if one != 1 || two != 2 {
		t.Errorf("got %d and %d", one, two)
	}
}

func TestConcurrentCacheUse(t *testing.T) {
	c := NewCache(20_000)
	compiled := Compile(Sources{Book: keyedBook([]string{"1 ", "7"})})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				text := fmt.Sprint((i*7+g)%100, " x")
				if n := c.tokens("x", text, func(s string) int { return len(s) }); n != len(text) {
					t.Errorf("%q: %d", text, n)
				}
				got, err := compiled.Matches(t.Context(), []string{text}, c)
				if want, _ := compiled.Matches(t.Context(), []string{text}, nil); err != nil || !slices.Equal(got, want) {
					t.Errorf("%q: %q, want %q", text, got, want)
				}
			}
		})
	}
	wg.Wait()
}
