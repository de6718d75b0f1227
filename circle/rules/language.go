package rules

import (
	"slices"
	"strings"
	"unicode"

	"nodest/framework"
)

var (
	commonWords   = data.By("common-words")  // the most frequent words of a language that is written in Latin letters
	languageNames = data.By("language-name") // in English and in Chinese
)

// scripts tell a language by its letters; Japanese also has Chinese characters.
var scripts = []struct {
	language string
	letters  []*unicode.RangeTable
}{
	{"ja", []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}}, {"ko", []*unicode.RangeTable{unicode.Hangul}},
	{"zh", []*unicode.RangeTable{unicode.Han}}, {"ru", []*unicode.RangeTable{unicode.Cyrillic}},
	{"ar", []*unicode.RangeTable{unicode.Arabic}}, {"th", []*unicode.RangeTable{unicode.Thai}},
}

// clearly is how often the language of a text beats the next one.
const clearly = 1.3

// LanguageName names the language of a card's texts, in English or, with l Chinese, in Chinese. l is
// what decides the words of the prompt; a text whose language is not clear is in that one.
func LanguageName(l framework.Language, texts ...string) string {
	found := languageOf(strings.Join(texts, "\n"))
	if found == "" || l == framework.Chinese || found == "zh" {
		found = string(l)
	}
	names := languageNames()[found]
	if l == framework.Chinese {
		return names[1]
	}
	return names[0]
}

// languageOf returns the language of a text; "" if it is not clear.
func languageOf(text string) string {
	if found := languageOfLetters(text); found != "" {
		return found
	}
	return languageOfWords(text)
}

// languageOfLetters tells a language by its script; "" if that is the Latin one, or none.
func languageOfLetters(text string) string {
	letters, latin := lettersIn(text)
	for _, s := range scripts { // a sign of these says as much as three letters
		if n := letters[s.language]; n > 0 && 3*n > latin && 5*n > letters["zh"] {
			return s.language
		}
	}
	return ""
}

// lettersIn counts the letters of a text, by the languages of their scripts.
func lettersIn(text string) (of map[string]int, latin int) {
	of = map[string]int{}
	for _, r := range text {
		if unicode.Is(unicode.Latin, r) {
			latin++
			continue
		}
		for _, s := range scripts {
			if unicode.In(r, s.letters...) {
				of[s.language]++
			}
		}
	}
	return of, latin
}

// languageOfWords tells a language by its common words; "" if no language has clearly the most.
func languageOfWords(text string) string {
	best, most, next := "", 0, 0
	for language, n := range commonWordsIn(text) {
		switch {
		case n > most:
			best, most, next = language, n, most
		case n > next:
			next = n
		}
	}
	if float64(most) < clearly*float64(next) {
		return ""
	}
	return best
}

// commonWordsIn counts the common words in a text, by language.
func commonWordsIn(text string) map[string]int {
	counts := map[string]int{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		for language, words := range commonWords() {
			if slices.Contains(words, word) {
				counts[language]++
			}
		}
	}
	return counts
}
