package keyscan

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// memo keeps some results, and forgets others.
type memo map[string]any

func (m memo) Get(_ uint64, text string) (any, bool) { v, ok := m[text]; return v, ok }

func (m memo) Put(_ uint64, text string, v any, _ int) {
	if len(text)%3 != 0 {
		m[text] = v
	}
}

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

func keysIn(a *Automaton, texts []string, memo Memo) []string {
	var keys []string
	hits, _ := a.Search(context.Background(), texts, memo) // which does not end
	for _, k := range hits.List() {
		keys = append(keys, a.keys[k])
	}
	return keys
}

func TestKeysAreFoundAsSubstrings(t *testing.T) {
	keys := []string{"gin", "engine", "引擎", "擎启", "the moon", " dragon", "ab", "b c", "  ", "", "éa", "aé aé"}
	a := New(keys)
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
		if got := keysIn(a, texts, memo{}); !slices.Equal(got, want) {
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
	r := rand.New(rand.NewPCG(1, 2))
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
		a, cache := New(keys), memo{}
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

// Each key ends in all shorter ones, and each byte of the text ends all keys.
func TestNestedKeysAreMarkedOnce(t *testing.T) {
	keys := make([]string, 1500)
	for i := range keys {
		keys[i] = strings.Repeat("a", i+1)
	}
	a, text := New(keys), strings.Repeat("a", 32_000)
	texts := slices.Repeat([]string{text}, 50) // 2,400 million marks, if each key were marked wherever it ends
	if got := keysIn(a, texts, nil); len(got) != len(keys) {
		t.Errorf("%d keys of %d", len(got), len(keys))
	}
}
