package framework

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
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
	for _, k := range a.search(texts, cache).list() {
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
			for range r.IntN(6) {
				texts = append(texts, word(r.IntN(40)))
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
