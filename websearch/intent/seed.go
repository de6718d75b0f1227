package intent

import (
	"strings"
	"unicode/utf16"
)

// longest is the length in UTF-16 units from which a message is no search.
const longest = 300

var (
	seedKeywords = data.Words("seed-keywords")
	seedQuestion = data.Rule("seed-question")
)

// Seed reports whether text needs a web search by the rules of the original application: a
// keyword or a question in fewer than 300 UTF-16 units. It takes nearly every question for a
// search; Better is more careful.
func Seed(text string) bool {
	if units(text) >= longest {
		return false
	}
	lower := strings.ToLower(text)
	for _, k := range seedKeywords() {
		if strings.Contains(lower, k) {
			return true
		}
	}
	return seedQuestion.MatchString(lower)
}

// units is the length of s in UTF-16 units.
func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
