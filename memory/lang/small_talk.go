package lang

import (
	"slices"
	"strings"
	"unicode"

	"nodest/internal/index"
)

// Small talk keeps a chat going. It is no evidence (gate.go).

var smallTalk = data.Rule("small-talk")

// aboutNothing blanks the small talk in a folded text.
func aboutNothing(folded string) string {
	return smallTalk.ReplaceAllString(strings.ReplaceAll(folded, "’", "'"), " ")
}

// The evidence of common words. That of others is 1.
const (
	ProvesNothing = 0    // greetings, noises, words of assent
	provesHardly  = 0.2  // words about time, mood and doing
	ProvesLittle  = 0.55 // everyday things that are seldom what a chat is about
)

var (
	QuestionBegins = data.Rule("question-begins")
	questionEnds   = data.Rule("question-ends")
	knowsNothing   = data.Rule("knows-nothing")
)

// Proof is the evidence of a term in the language of a question.
func (q *Question) Proof(term string) float32 { return q.tongues.proof(term) }

// TellsSomething reports whether a term of a row has content in the language of a question.
func (q *Question) TellsSomething(term string) bool { return q.tongues.tell(term) }

func (in tongues) tell(term string) bool {
	if isDenseTerm(term) {
		return denseWeight(term) == 1 && !emptyWords()[term]
	}
	return in.proof(term) >= provesHardly && !in.report(term) && !in.join(term)
}

// longestIdle is how many bytes small talk has at most, and a question without a mark.
const longestIdle = 60

// OnlyAsks reports whether a text has nothing but questions, small talk, and not knowing.
func OnlyAsks(text string) bool {
	for _, s := range SentencesOf(text) {
		switch {
		case IsQuestion(s) && len(Statements(s)) == 0:
		case len(s) > longestIdle:
			return false
		case !QuestionBegins.MatchString(s) && !questionEnds.MatchString(s) && !knowsNothing.MatchString(s) &&
			saysSomething(aboutNothing(Plain(s))):
			return false
		}
	}
	return true
}

// saysSomething reports whether a folded text has a word with content.
func saysSomething(folded string) bool {
	in := tonguesOf(folded)
	return strings.ContainsFunc(folded, func(r rune) bool { return r >= 0x2e80 && unicode.IsLetter(r) && !meansLittle(r, 0) }) ||
		slices.ContainsFunc(index.Terms(folded), func(t string) bool { return !isDenseTerm(t) && in.tell(t) })
}
