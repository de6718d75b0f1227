package lexicontest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"nodest/internal/lexicon"
	"nodest/internal/lexicon/lexicontest"
)

func faults(text string, ask func(*lexicon.Lexicon)) []string {
	l := lexicon.New(fstest.MapFS{"data/en.txt": {Data: []byte(text)}})
	ask(l)
	return lexicontest.Faults(l)
}

func TestARuleNeedsExamplesThatItKeepsTo(t *testing.T) {
	const whole = "part bird\n  wren|rook\nrule bird\n  match \\b{{bird}}s?\\b\n  not old\n  + a wren\n  + two rooks\n  - a wrench\n  - an old rook\n"
	asked := func(l *lexicon.Lexicon) { l.Rule("bird") }
	if found := faults(whole, asked); len(found) > 0 {
		t.Errorf("nothing is wrong: %q", found)
	}
	for name, tt := range map[string]struct {
		old, put string
		ask      func(*lexicon.Lexicon)
		want     string
	}{
		"one match":          {"  + two rooks\n", "", asked, "en: rule bird: 1 texts that match and 2 that do not are too few"},
		"one miss":           {"  - a wrench\n", "", asked, "en: rule bird: 2 texts that match and 1 that do not are too few"},
		"a text not met":     {"a wren\n", "a robin\n", asked, `en: rule bird: misses "a robin"`},
		"a near miss met":    {"a wrench", "the wrens", asked, `en: rule bird: matches "the wrens"`},
		"no such part":       {"part bird", "part tree", asked, `en: rule bird: lexicon: en: bird: there is no part "bird"`},
		"nobody asks":        {"", "", func(*lexicon.Lexicon) {}, "nobody asks for bird"},
		"nobody has it":      {"", "", func(l *lexicon.Lexicon) { l.Rule("bird"); l.Words("tree") }, "no language has tree"},
		"a word, twice":      {"part bird", "words tree\n  oak ash oak\npart bird", func(l *lexicon.Lexicon) { l.Rule("bird"); l.Words("tree") }, `en: tree has "oak" twice`},
		"an empty list":      {"part bird", "words tree\npart bird", func(l *lexicon.Lexicon) { l.Rule("bird"); l.Words("tree") }, "en: tree has no words"},
		"a wrong expression": {"wren|rook", "wren|(rook", asked, "en: rule bird: lexicon: en: bird: error parsing regexp: missing closing ): `\\b(?:wren|(rook)s?\\b`"},
	} {
		if found := faults(strings.Replace(whole, tt.old, tt.put, 1), tt.ask); !slices.Contains(found, tt.want) {
			t.Errorf("%s: %q, want %q", name, found, tt.want)
		}
	}
}
