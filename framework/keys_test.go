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
	"unicode/utf8"

	"nodest/card"
)

// naive is the plain search that the automaton must match.
func naive(keys, texts []string) []string {
	joined := strings.ToLower(strings.Join(texts, " "))
	var found []string
	for _, k := range keys {
		if len(texts) > 0 && strings.Contains(joined, k) {
			found = append(found, k)
		}
	}
	return found
}

func keysIn(a *automaton, texts []string, cache *Cache) []string {
	var keys []string
	hits, _ := a.search(context.Background(), texts, cache) // which does not end
	for _, k := range hits.list() {
		keys = append(keys, a.keys[k])
	}
	return keys
}

func TestKeysAreFoundAsSubstrings(t *testing.T) {
	keys := []string{"gin", "engine", "引擎", "擎启", "the moon", " dragon", "ab", "b c", "  ", "", "éa", "aé aé"}
	a := newAutomaton(keys)
	for _, texts := range [][]string{
		nil,
		{""},
		{"ENGINE"},
		{"引擎启动"},
		{"the", "moon"},
		{"a", "dragon"},
		{"dragon"},
		{"ab", "c"},
		{"x", "", "y"},
		{"the", "MOON rises", strings.Repeat("long ", 50) + "b", "C" + strings.Repeat(" long", 50)},
		{"AÉ", "AÉ"},
		{strings.Repeat("É", 40) + "aé", "aé" + strings.Repeat("É", 40)},
	} {
		want := naive(keys, texts)
		if got := keysIn(a, texts, nil); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", texts, got, want)
		}
		if got := keysIn(a, texts, NewCache(0)); !slices.Equal(got, want) {
			t.Errorf("%q with a cache: %q, want %q", texts, got, want)
		}
	}
}

// ascii lower-cases what lower leaves to scan.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

func TestLowerCaseMatchesTheStandardLibrary(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x11000; r++ {
		if utf8.ValidRune(r) {
			if got, want := ascii(lower(string(r))), strings.ToLower(string(r)); got != want {
				t.Errorf("%U: %q, want %q", r, got, want)
			}
			all.WriteRune(r)
		}
	}
	for _, text := range []string{all.String(), "ABC，字「Z」…", "ＡＢ", "É字", ""} {
		if ascii(lower(text)) != strings.ToLower(text) {
			t.Errorf("%.20q", text)
		}
	}
}

// The automaton, with and without a cache, finds the same keys as a plain search of
// random texts.
func TestKeySearchMatchesAPlainSearch(t *testing.T) {
	r := seeded(t)
	letters := []string{"a", "b", "B", " ", "é", "字", "典"}
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for range 400 {
		seen := map[string]bool{}
		var keys []string
		for range 1 + r.IntN(12) {
			if k := strings.ToLower(word(r.IntN(5))); !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
		a, cache := newAutomaton(keys), NewCache(2000) // small: entries are lost now and then
		for range 4 {
			var texts []string
			long := []int{40, 3}[r.IntN(2)] // short ones: a key covers several
			for range r.IntN(6) {
				texts = append(texts, word(r.IntN(long)))
			}
			want := naive(keys, texts)
			for name, got := range map[string][]string{
				"without a cache": keysIn(a, texts, nil), "new": keysIn(a, texts, cache), "known": keysIn(a, texts, cache),
			} {
				if !slices.Equal(got, want) {
					t.Fatalf("keys %q in %q, %s: %q, want %q", keys, texts, name, got, want)
				}
			}
		}
	}
}

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

// Each key ends in all shorter ones, and each byte of the text ends all keys.
func TestNestedKeysAreMarkedOnce(t *testing.T) {
	keys := make([]string, 1500)
	for i := range keys {
		keys[i] = strings.Repeat("a", i+1)
	}
	a, text := newAutomaton(keys), strings.Repeat("a", 32_000)
	texts := slices.Repeat([]string{text}, 50) // 2,400 million marks, if each key were marked wherever it ends
	if got := keysIn(a, texts, nil); len(got) != len(keys) {
		t.Errorf("%d keys of %d", len(got), len(keys))
	}
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
	a := newAutomaton([]string{"1 ", "7"})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				text := fmt.Sprint((i*7+g)%100, " x")
				if n := c.tokens("x", text, func(s string) int { return len(s) }); n != len(text) {
					t.Errorf("%q: %d", text, n)
				}
				if got, want := keysIn(a, []string{text}, c), keysIn(a, []string{text}, nil); !slices.Equal(got, want) {
					t.Errorf("%q: %q, want %q", text, got, want)
				}
			}
		})
	}
	wg.Wait()
}
