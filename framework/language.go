package framework

import "unicode"

// Language is a language that the built-in words of a prompt exist in.
type Language string

// The languages. Characters in any other language get the English words.
const (
	English Language = "en"
	Chinese Language = "zh"
)

// LanguageOf tells the main language of texts by their letters. A Han character
// stands for about two letters; a text with many kana or hangul is not Chinese.
// Texts without letters are English.
func LanguageOf(texts ...string) Language {
	han, latin, other := 0, 0, 0
	for _, text := range texts {
		for _, r := range text {
			switch {
			case r < 0x80:
				if 'a' <= r|0x20 && r|0x20 <= 'z' {
					latin++
				}
			case unicode.Is(unicode.Han, r):
				han++
			case unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
				other++
			case unicode.Is(unicode.Latin, r):
				latin++
			}
		}
	}
	if 2*han > latin && 4*other < han {
		return Chinese
	}
	return English
}
