package cli

import (
	"slices"
	"testing"
)

// TestNear: suggestions are similar words or words with that beginning.
func TestNear(t *testing.T) {
	t.Parallel()
	words := []string{"Seraphina", "Serafim", "玄清", "Mira", "list", "lint"}
	for word, want := range map[string][]string{
		"seraphian": {"Seraphina"}, "Sera": {"Seraphina", "Serafim"}, "玄": {"玄清"}, "Mria": {"Mira"}, "lits": {"list"}, "xyz": nil,
	} {
		if got := Near(word, words); !slices.Equal(got, want) {
			t.Fatalf("%s: Near(word, words) is %q, want %q", word, got, want)
		}
	}
}
