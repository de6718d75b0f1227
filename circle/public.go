package circle

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/circle/rules"
	"nodest/memory/lang"
)

// A card is written for a private scene of two. In the circle, which others read, its scenario, its
// examples and its first message are left out, and so are the sentences of the rest that speak of
// the user.

// private stands for the user's name where a card has it, until the sentences with it are gone.
const private = "\ue000user\ue000"

var (
	ofUser = regexp.MustCompile(`(?i)\{\{\s*user\s*\}\}|<user>|` + private)
	clause = regexp.MustCompile(`[^,，、+;；|]*[,，、+;；|]?`)
)

// longestWhole is the length of a sentence, in code points, that goes as a whole; of longer ones,
// such as lists of traits, only the clauses that speak of the user do.
const longestWhole = 240

// public returns a text of a card without what it says of the user.
func public(text string) string {
	if !ofUser.MatchString(text) {
		return text
	}
	var kept strings.Builder
	for text != "" {
		end := lang.SentenceEnd(text)
		sentence := text[:end]
		text = text[end:]
		parts := []string{sentence}
		if utf8.RuneCountInString(sentence) > longestWhole {
			parts = clause.FindAllString(sentence, -1)
		}
		for _, part := range slices.DeleteFunc(parts, ofUser.MatchString) {
			kept.WriteString(part)
		}
	}
	return strings.TrimSpace(kept.String())
}

// language is the name of the language that a character writes in, in the words of its prompts.
func (r *request) language() string {
	c := r.docs.Card
	return rules.LanguageName(r.docs.Language, c.Description, c.Personality, c.FirstMes, c.Scenario)
}
