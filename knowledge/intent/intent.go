// Package intent decides, without a model, whether a message is a question to documents.
package intent

import (
	"regexp"
	"slices"
	"strings"

	"nodest/internal/index"
)

var (
	emote    = regexp.MustCompile(`\*[^*\n]*\*`) // describes instead of says
	asking   = data.Rule("asking")               // the message asks for something
	chatter  = data.Rule("chatter")              // a question that nobody wants an answer from documents to
	pointing = data.Rule("pointing")             // a word that stands for something named before
)

// Wanted reports whether a message may be answered by documents: it asks for something that is
// not small talk, or names what the knowledge bases are about. It is for models that do not
// call tools; others decide for themselves.
func Wanted(text string, about []string) bool {
	text = strings.TrimSpace(emote.ReplaceAllString(text, " "))
	terms := index.Terms(text)
	if len(terms) == 0 || chatter.MatchString(text) {
		return false
	}
	if asking.MatchString(text) {
		return true
	}
	named := index.Terms(strings.Join(about, "\n"))
	return slices.ContainsFunc(terms, func(t string) bool { return slices.Contains(named, t) })
}

// fewTerms is how many terms a message has at most that only points at what was said before.
const fewTerms = 4

// Standalone is a message as a question of its own: one that only points at what was said
// before gets the user's message before it.
func Standalone(text, before string) string {
	text = strings.TrimSpace(emote.ReplaceAllString(text, " "))
	if before == "" || !pointing.MatchString(text) || len(index.Terms(text)) > fewTerms {
		return text
	}
	return strings.TrimSpace(emote.ReplaceAllString(before, " ")) + "\n" + text
}
