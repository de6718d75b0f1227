package keyscan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

func TestFoldIsTheLowerCaseOfJavaScript(t *testing.T) {
	for text, want := range map[string]string{
		"ΘΕΟΣ":     "θεος",
		"ΣΟΣ Σ Σ.": "σος σ σ.",
		"ΑΣ'Α ΑΣ'": "ασ'α ας'",
		"İSTANBUL": "i\u0307stanbul",
		"É ΑΣ龙":    "é ας龙",
	} {
		if got := ascii(Fold(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	letters := []string{"Σ", "σ", "Α", "a", "İ", "龙", "'", ".", " ", "\u0301", "_", "1", "ⓐ", "\n\x01"}
	for range 20_000 {
		text := ""
		for range r.IntN(9) {
			text += letters[r.IntN(len(letters))]
		}
		if got, want := ascii(Fold(text)), cases.Lower(language.Und).String(text); got != want {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	}
}

// plainWords is the search that a finder must match.
func plainWords(keys []string, text string) []string {
	found := []string{}
	for _, k := range keys {
		hit, whole := false, false
		for i := range text {
			if !strings.HasPrefix(text[i:], k) {
				continue
			}
			hit = true
			end := i + len(k)
			whole = whole || (i == 0 || !isWord(text[i-1])) && (end == len(text) || !isWord(text[end]))
		}
		if hit {
			found = append(found, fmt.Sprint(k, whole))
		}
	}
	slices.Sort(found)
	return found
}

func TestWholeWordsAreTold(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	letters := []string{"a", "b", "A", " ", "-", "龙", "_", "é"}
	word := func(n int) (s string) {
		for range n {
			s += letters[r.IntN(len(letters))]
		}
		return s
	}
	for range 3000 {
		var keys, folded []string
		for range 1 + r.IntN(8) {
			k := word(1 + r.IntN(4))
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
			if k = strings.ToLower(k); !slices.Contains(folded, k) {
				folded = append(folded, k)
			}
		}
		exact, lower := NewExact(keys).Finder(), New(folded).Finder()
		for range 3 {
			text := word(r.IntN(30))
			for _, c := range []struct {
				f    *Finder
				keys []string
				text string
			}{{exact, keys, text}, {lower, folded, strings.ToLower(text)}} {
				got := []string{}
				for _, h := range c.f.Find(text) {
					got = append(got, fmt.Sprint(c.keys[h.Key()], h.Whole()))
				}
				slices.Sort(got)
				if want := plainWords(c.keys, c.text); !slices.Equal(got, want) {
					t.Fatalf("keys %q in %q: %q, want %q", c.keys, text, got, want)
				}
			}
		}
	}
}
