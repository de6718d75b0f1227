package index_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
)

func TestTerms(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"stems, lower case, no stop words", "She was Baking the breads", "bake bread"},
		{"irregular forms", "They went and bought two mice", "go buy 2 mous"},
		{"verbs that look like a plural", "Ana lives there. Where does she live? She leaves. When do we leave?", "ana live live leav leav"},
		{"possessives and contractions", "Caroline's dog doesn’t bark, we'll see", "carolin dog bark see"},
		{"o'clock stays one word", "five o'clock", "5 oclock"},
		{"ordinals are numbers", "May 4th, the 21st", "4 21"},
		{"other letters behind digits stay", "4k mp3 3d", "4k mp3 3d"},
		{"compatible forms", "ＡＢＣ １２", "abc 12"},
		{"Chinese by pairs", "我喜欢乌龙茶", "我喜 喜欢 欢乌 乌龙 龙茶"},
		{"a lone character stays", "茶", "茶"},
		{"dates in Chinese", "2023年5月4号", "2023 年 5 月 4 号"},
		{"mixed scripts", "用Python写代码", "用 python 写代 代码"},
		{"Japanese with its long mark", "ラーメン", "ラー ーメ メン"},
		{"Korean", "고양이", "고양 양이"},
		{"other scripts by words", "Привет, мир", "привет мир"},
		{"identifiers stay whole", "getUserName", "getusernam"},
		{"invisible characters within words", "Donau\u00addampf\u00adschiff, Wör\u2060ter\ufeff, 京\u200b都, שלום\u200f", "donaudampfschiff worter 京都 שלום"},
		{"the joiner of Persian words stays", "می\u200cخواهم", "مي خواهم"},
		{"accents", "Zoë Müller, Straße in Tromsø; أحمد", "zoe muller strass tromso احمد"},
		{"kana keep their marks", "がか", "がか"},
		{"what is elided before a word", "l'école, qu’il, O'Brien", "ecol il obrien"},
		{"nothing", " \n?!😀", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := index.Join(c.text); got != c.want {
				t.Errorf("Join(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"Baking 4th o'clock", "我喜欢乌龙茶 tea", "\xff_a__b", "ｶﾞー々", "กำลัง", "ﷺ ½ Ⅳ", "x''y’", "İstanbul_ß"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms := index.Terms(text)
		for _, term := range terms {
			if term == "" || strings.ContainsFunc(term, unicode.IsSpace) || len(term) > 256 {
				t.Errorf("term %q of %q", term, text)
			}
			if utf8.ValidString(text) && !utf8.ValidString(term) {
				t.Errorf("term %q of %q is broken", term, text)
			}
		}
		if got := strings.Fields(index.Join(text)); !slices.Equal(got, terms) {
			t.Errorf("stored %q, made %q", got, terms)
		}
	})
}

func BenchmarkTerms(b *testing.B) {
	for name, text := range map[string]string{
		"english": strings.Repeat("She keeps a lighthouse at the edge of the northern sea. ", 4),
		"chinese": strings.Repeat("她在北海的尽头守着一座灯塔，等船回来。", 6),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				index.Terms(text)
			}
		})
	}
}
