package parse

import (
	"strings"
	"unicode"
)

// language returns the language of most of a text, judged by its script and, for Latin
// letters, by frequent words; "" = unknown.
func language(text string) string {
	const sample = 200_000 // bytes
	if len(text) > sample {
		text = text[:sample]
	}
	han, kana, hangul, latin, other := scripts(text)
	// A Han character says about as much as four Latin letters.
	most := max(4*(han+kana), 3*hangul, latin, other)
	switch most {
	case 0, other:
		return ""
	case 4 * (han + kana):
		if kana*10 > han {
			return "ja"
		}
		return "zh"
	case 3 * hangul:
		return "ko"
	}
	return latinLanguage(text)
}

// scripts counts the letters of a text by their script.
func scripts(text string) (han, kana, hangul, latin, other int) {
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r):
		case r < 0x80 || unicode.Is(unicode.Latin, r):
			latin++
		case unicode.Is(unicode.Han, r):
			han++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Hangul, r):
			hangul++
		default:
			other++
		}
	}
	return han, kana, hangul, latin, other
}

var frequentWords = map[string]string{
	"en": "the of and to in is that for it as was with be by on not are this have from or",
	"de": "der die und das in den von zu ist mit dem nicht ein eine des für auf sich im als auch",
	"fr": "le la les de des et un une du est dans que pour pas sur qui par au avec ce il",
	"es": "el la de que y los en un una del las por con no se para es al lo como más",
	"it": "il di che la e un una per non in del con le si da dei al sono della come gli",
	"pt": "o de que e do da em um uma para com não os as dos no na por mais se ao",
}

// latinLanguage returns the language whose frequent words make up most of the text, if they
// are at least a twentieth of it.
func latinLanguage(text string) string {
	counts := map[string]int{}
	total := 0
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		total++
		if len(word) <= 6 {
			counts[word]++
		}
	}
	best, most := "", total/20
	for _, lang := range []string{"en", "de", "fr", "es", "it", "pt"} {
		n := 0
		for word := range strings.FieldsSeq(frequentWords[lang]) {
			n += counts[word]
		}
		if n > most {
			best, most = lang, n
		}
	}
	if best == "" && total > 0 && total < 20 { // too short to tell; most short texts are
		return "en"
	}
	return best
}
