// Package script tells characters apart: of words, of scripts without spaces, of numbers, and of what
// ends a sentence or a clause.
package script

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsDense reports whether a character says as much as half a word.
func IsDense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// HasDense reports whether a text has a character of a dense script.
func HasDense(text string) bool { return strings.ContainsFunc(text, IsDense) }

// IsWord reports whether r is a letter or digit of a script with spaces.
func IsWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)) && !IsDense(r)
}

// IsLetter reports whether r is of a word, and no digit.
func IsLetter(r rune) bool { return IsWord(r) && !IsDigit(r) }

// IsDigit reports whether r is a decimal digit, of either width.
func IsDigit(r rune) bool { return '0' <= r && r <= '9' || '０' <= r && r <= '９' }

// IsStop reports whether r ends a sentence.
func IsStop(r rune) bool {
	switch r {
	case '.', '!', '?', '。', '！', '？':
		return true
	}
	return false
}

// IsClauseEnd reports whether r ends a clause or a sentence.
func IsClauseEnd(r rune) bool {
	return strings.ContainsRune(",;:()|—–，；：（）。！？!?.…\n", r)
}

// IsSpace is the white space of JavaScript.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r == 0xFEFF }

// IsBlank reports whether a text has nothing but white space.
func IsBlank(s string) bool { return strings.TrimLeftFunc(s, IsSpace) == "" }

// RunOf returns the end of the characters of a kind that begin at a byte of a text.
func RunOf(text string, from int, is func(rune) bool) int {
	if i := strings.IndexFunc(text[from:], func(r rune) bool { return !is(r) }); i >= 0 {
		return from + i
	}
	return len(text)
}
