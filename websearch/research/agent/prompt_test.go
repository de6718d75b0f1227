package agent

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

// A text that one language lacks, or that is filled in otherwise, would end up broken in a prompt.
func TestPromptsAreTheSameInAllLanguages(t *testing.T) {
	en, zh := promptsEnglish(), promptsChinese()
	if a, b := slices.Sorted(maps.Keys(en)), slices.Sorted(maps.Keys(zh)); !slices.Equal(a, b) {
		t.Fatalf("English has %q, Chinese %q", a, b)
	}
	verb := regexp.MustCompile(`%[a-z]`)
	for name, text := range en {
		if a, b := verb.FindAllString(text, -1), verb.FindAllString(zh[name], -1); !slices.Equal(a, b) {
			t.Errorf("%s is filled in with %q in English and %q in Chinese", name, a, b)
		}
	}
}
