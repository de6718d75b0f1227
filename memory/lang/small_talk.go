package lang

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"nodest/internal/index"
)

// Small talk keeps a chat going. It is no evidence (gate.go).

var smallTalk = data.Rule("small-talk")

// aboutNothing blanks the small talk in a folded text.
func aboutNothing(folded string) string {
	return smallTalk.ReplaceAllString(strings.ReplaceAll(folded, "’", "'"), " ")
}

// The evidence of common words, by their stems. Others are 1.
const (
	ProvesNothing = 0    // greetings, noises, words of assent
	provesHardly  = 0.2  // words about time, mood and doing
	ProvesLittle  = 0.55 // everyday things that are seldom what a chat is about
)

var (
	wordsOfNothing = data.Words("proves-nothing")
	wordsOfHardly  = data.Words("proves-hardly")
	wordsOfLittle  = data.Words("proves-little")
)

var proofs = sync.OnceValue(func() map[string]float32 {
	m := map[string]float32{}
	for w := range weakWords() {
		m[w] = provesHardly
	}
	for _, of := range []struct {
		words []string
		proof float32
	}{{wordsOfNothing(), ProvesNothing}, {wordsOfHardly(), provesHardly}, {wordsOfLittle(), ProvesLittle}} {
		for w := range stems(of.words) {
			m[w] = of.proof
		}
	}
	return m
})

// ProofOf is the evidence of a word that is no pair of characters.
func ProofOf(term string) float32 {
	if proof, ok := proofs()[term]; ok {
		return proof
	}
	if c := term[0]; '0' <= c && c <= '9' {
		return ProvesLittle
	}
	return 1
}

var (
	QuestionBegins = data.Rule("question-begins")
	questionEnds   = data.Rule("question-ends")
	knowsNothing   = data.Rule("knows-nothing")
)

// TellsSomething reports whether a term of a row has content.
func TellsSomething(t string) bool {
	if t[0] >= 0x80 {
		return denseWeight(t) == 1
	}
	return ProofOf(t) >= provesHardly && !weakWords()[t]
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
			saysSomething(aboutNothing(strings.ToLower(s))):
			return false
		}
	}
	return true
}

// saysSomething reports whether a folded text has a word with content.
func saysSomething(folded string) bool {
	return strings.ContainsFunc(folded, func(r rune) bool { return r >= 0x2e80 && unicode.IsLetter(r) && !meansLittle(r, 0) }) ||
		slices.ContainsFunc(index.Terms(folded), func(t string) bool { return t[0] < 0x80 && TellsSomething(t) })
}
