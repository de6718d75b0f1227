package websearch

import (
	"strings"
	"testing"

	"nodest/internal/cite"
	"nodest/websearch/reader"
)

// A short page that shares no content word with its result or the question is a wall that no rule knows.
func TestAPageThatHasNothingToDoWithItsResultIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		page, found, question string
		want                  bool
	}{
		"its result":              {"The keeper of Halden light retired in 1987.", "Halden Point\nThe light was automated; its keeper retired.", "who kept the light", false},
		"only the question":       {"Mussels, bread and beer.", "Harbour kitchen\nOpen daily from noon, closed on Mondays", "where are mussels served?", false},
		"neither":                 {"Pick every square with a bridge, then press the green arrow.", "Halden Point\nThe light was automated; its keeper retired.", "who kept the light", true},
		"neither, in Chinese":     {"轻触屏幕三次以证实并非程序。", "云溪镇灯会\n云溪镇灯会始于清乾隆三十二年，纪念七位工匠。", "灯会什么时候开始的？", true},
		"its result, in Chinese":  {"灯会始于乾隆年间。", "云溪镇灯会\n云溪镇灯会始于清乾隆三十二年，纪念七位工匠。", "灯会什么时候开始的？", false},
		"neither, in German":      {"Drücke lange auf den Kreis, bis er grün leuchtet.", "Mühle Altenried\nDas Wasserrad steht seit Mai still.", "warum steht die Mühle still", true},
		"a result without words":  {"Pick every square with a bridge.", "halden.test", "who kept the light", false},
		"a long page about other": {strings.Repeat("Bread rises slowly in a cool kitchen. ", 30), "Halden Point\nThe light was automated; its keeper retired.", "who kept the light", false},
	} {
		if got := unrelated(&Page{Markdown: c.page}, c.found, c.question); got != c.want {
			t.Errorf("%s: unrelated is %v, want %v", name, got, c.want)
		}
	}
}

// The block says in the character's language that a page was closed.
func TestTheBlockTellsOfAClosedPage(t *testing.T) {
	source := cite.Source{URL: "https://wall.test/a", Title: "A", Chunks: []cite.Chunk{{Text: "What the result says."}}}
	for lang, want := range map[string]string{"en": wordsIn["en"].Closed, "zh": wordsIn["zh"].Closed, "de": wordsIn["en"].Closed} {
		f := &Found{Sources: []cite.Source{source}, lang: lang, Closed: map[string]reader.Kind{source.URL: reader.KindLogin}}
		if got := f.Block(1); got != "[1] A — wall.test\nWhat the result says.\n"+want {
			t.Errorf("%s: the block is %q", lang, got)
		}
	}
}
