package lang_test

import (
	"slices"
	"strings"
	"testing"

	"nodest/memory/lang"
)

func TestDigits(t *testing.T) {
	for text, want := range map[string]string{
		"i'm thirty-five":   "i'm 35",
		"seventeen cats":    "17 cats",
		"twenty one of two": "21 of 2",
		"one of us":         "one of us",
		"twenty onerous":    "20 onerous",
		"sixty-twenty":      "60-20",
		"often, ten.":       "often, 10.",
		"三百二十一只":            "321只",
	} {
		if got := lang.Digits(text); got != want {
			t.Errorf("Digits(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestSentencesOf(t *testing.T) {
	for text, want := range map[string][]string{
		"I met Dr. Lee at 7 p.m. today. He was kind!": {"I met Dr. Lee at 7 p.m. today.", "He was kind!"},
		"“我喜欢猫。”他说。我也是～真的":                            {"“我喜欢猫。”", "他说。", "我也是～", "真的"},
		"It costs 3.50. Fine":                         {"It costs 3.50.", "Fine"},
	} {
		if got := lang.SentencesOf(text); !slices.Equal(got, want) {
			t.Errorf("SentencesOf(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPiecesAreWordForWordInTheText(t *testing.T) {
	text := "Tea helps. We met\n at noon.  It rained. " + strings.Repeat("Nobody minded. ", 9)
	for excerpt, want := range map[string][]string{
		text: {"Tea helps. We met", strings.TrimSpace(text[19:])},
		"Tea helps. … It rained. Nobody minded.": {"Tea helps.", "It rained. Nobody minded."},
	} {
		got := lang.Pieces(excerpt)
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for _, piece := range got {
			if !strings.Contains(text, piece) {
				t.Errorf("%q is not in the text", piece)
			}
		}
	}
}
