package index

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendIdentifier adds the terms of the identifier that begins at from, and returns its end.
func appendIdentifier(terms []string, text string, from int) ([]string, int) {
	end := wordEnd(text, from)
	for dotted := dottedEnd(text, end); dotted > end; dotted = dottedEnd(text, end) {
		end = dotted
	}
	whole, parts := text[from:end], 0
	for name := range strings.SplitSeq(whole, ".") {
		for part := range strings.SplitSeq(name, "_") {
			if part == "" {
				continue
			}
			parts++
			terms = appendPlain(terms, strings.ToLower(part))
			terms = appendCamel(terms, part)
		}
	}
	if parts > 1 && len(whole) <= longestTerm {
		terms = append(terms, strings.ToLower(whole))
	}
	return terms, end
}

// dottedEnd accepts a dot between two letters or digits, and what follows it.
func dottedEnd(text string, end int) int {
	if end+1 >= len(text) || text[end] != '.' {
		return end
	}
	if next, _ := utf8.DecodeRuneInString(text[end+1:]); !isWord(next) {
		return end
	}
	return wordEnd(text, end+1)
}

// appendCamel adds the parts of a word such as getUserName or HTTPServer; none if it has one.
func appendCamel(terms []string, word string) []string {
	from, before, inner := 0, rune(0), 0
	for i, r := range word {
		next, _ := utf8.DecodeRuneInString(word[i+utf8.RuneLen(r):])
		begins := unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsUpper(before) && unicode.IsLower(next))
		if i > 0 && begins && i-from > 1 {
			terms, from = appendPlain(terms, strings.ToLower(word[from:i])), i
			inner++
		}
		before = r
	}
	if inner > 0 {
		terms = appendPlain(terms, strings.ToLower(word[from:]))
	}
	return terms
}
