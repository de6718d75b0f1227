package words

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFoldedTextsAreComparedWithoutCaseAndWidth(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"letters", "Tea TIME", "tea time"},
		{"full width", "ＴＥＡ！１", "tea!1"},
		{"half width kana", "ｶﾞ", "ガ"},
		{"a composed accent", "CAFÉ", "cafe"},
		{"a separate accent", "CAFE\u0301", "cafe"},
		{"a letter that becomes two", "Straße", "strasse"},
		{"all forms of sigma", "ΣΊΣΥΦΟΣ", "σισυφοσ"},
		{"Cyrillic", "ЧАЙ", "чай"},
		{"letters with a stroke", "Tromsø", "tromso"},
		{"Arabic", "أحمـد", "احمد"},
		{"kana keep their marks", "が", "が"},
		{"ideographs", "茶道", "茶道"},
		{"a ligature", "oﬃce", "office"},
		{"jamo that make syllables", "\u1112\u1161\u11ab", "한"},
		{"an ideographic space", "茶\u3000道", "茶 道"},
		{"emoji", "😀", "😀"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f Folder
			if got := string(f.Folded(tt.text)); got != tt.want {
				t.Errorf("folded(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// The tables and shortcuts give the same as the full Unicode folding.
func TestSimpleFoldsMatchTheUnicodeRules(t *testing.T) {
	simple, f := simpleFolds(), Folder{}
	for r := rune(1); r <= 0x1FFFF; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		want := foldPiece(string(r))
		if got := string(f.Folded(string(r))); got != want {
			t.Errorf("%U is folded to %q, want %q", r, got, want)
		}
		if form, ok := simple.of(r); ok && string(form) != want {
			t.Errorf("%U has the simple form %q, want %q", r, form, want)
		}
	}
	// Sequences, too: no simple form combines with another.
	for _, text := range []string{"a\u0301b", "か\u3099", "가\u11a8", "e\u0301\u0323x", "Å", "①②", "ﬁx"} {
		want := foldPiece(text)
		if got := string(f.Folded(text)); got != want {
			t.Errorf("%q is folded to %q, want %q", text, got, want)
		}
	}
}

func TestFoldedPositionsPointIntoTheText(t *testing.T) {
	for _, text := range []string{"", "Tea", "Straße", "oﬃce", "ｶﾞ茶", "CAFE\u0301!", "\xff?", strings.Repeat("é", 50)} {
		var f Folder
		form, at := f.Placed(text)
		if len(at) != len(form)+1 || at[len(form)] != len(text) || !slices.IsSorted(at) {
			t.Errorf("%q: form %q, places %v", text, form, at)
		}
		plain := Folder{}
		if string(plain.Folded(text)) != string(form) {
			t.Errorf("%q: folded differently with places", text)
		}
		for _, i := range at[:len(form)] {
			if i > 0 && !utf8.RuneStart(text[i]) && utf8.ValidString(text) {
				t.Errorf("%q: place %d is within a character", text, i)
			}
		}
	}
}

func TestWordsOfAQuery(t *testing.T) {
	tests := []struct {
		name, query string
		want        []string
	}{
		{"words", " Green  tea ", []string{"green", "tea"}},
		{"each once", "tea TEA ｔｅａ", []string{"tea"}},
		{"a phrase", `say "Green  Tea" now`, []string{"say", "green  tea", "now"}},
		{"printed quotes", "“green tea” „hot milk“", []string{"green tea", "hot milk"}},
		{"a quote that is not closed", `cup "of tea`, []string{"cup", "of tea"}},
		{"an ideographic space", "茶\u3000道", []string{"茶", "道"}},
		{"quotes around nothing", `"" " "`, nil},
		{"blanks", " \t", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, word := range InQuery(tt.query) {
				got = append(got, string(word))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("InQuery(%q) = %q, want %q", tt.query, got, tt.want)
			}
		})
	}
}

// BenchmarkFold searches 100,000 texts for two words that no text has both of.
func BenchmarkFold(b *testing.B) {
	const texts = 100_000
	for name, text := range map[string]string{
		"English":  strings.Repeat("She poured the tea and looked out of the window. ", 4),
		"Chinese":  strings.Repeat("她倒了茶，望着窗外的雨。", 8),
		"Russian":  strings.Repeat("Она налила чай и посмотрела в окно. ", 4),
		"Accented": strings.Repeat("Zoe\u0308 versa le thé à côté de la fenêtre. ", 4),
	} {
		b.Run(name, func(b *testing.B) {
			words := InQuery("茶 coffee")
			var f Folder
			b.ReportAllocs()
			b.SetBytes(int64(texts * len(text)))
			for b.Loop() {
				for range texts {
					if f.Holds(text, words) {
						b.Fatal("found what is not there")
					}
				}
			}
		})
	}
}
