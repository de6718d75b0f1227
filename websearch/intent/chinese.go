package intent

import (
	"strings"
	"unicode"

	"nodest/internal/lexicon"
)

type chinese struct{}

func zh(name string) *lexicon.Rule { return data.Rule(name, "zh") }

var (
	zhOrder     = zh("order")
	zhInScene   = zh("in-scene") // something is searched in a story
	zhWrapper   = zh("wrapper")  // surrounds a question without being part of it
	zhRequest   = zh("request")
	zhAsks      = zh("asks")
	zhNoAsk     = zh("no-ask") // no question, although it looks like one
	zhSpeakers  = zh("speakers")
	zhScene     = zh("scene")
	zhFresh     = zh("fresh")
	zhSmallTalk = zh("small-talk")
	zhFunction  = zh("function") // words that do not say what a question is about
	zhSentence  = zh("sentence")
)

func (chinese) orders(folded string) bool {
	return zhOrder.MatchString(folded) && !zhInScene.MatchString(folded)
}

func (chinese) topical(folded string) bool { return zhFresh.MatchString(folded) }

// question judges the message as a whole, and, if it is about the speakers or the story, each
// sentence: one of them may be about the world.
func (chinese) question(_, folded string) Reason {
	reason := zhQuestion(folded)
	if reason != Speakers && reason != Story {
		return reason
	}
	for _, sentence := range sentences(folded) {
		if r := zhQuestion(sentence); strings.ContainsAny(sentence, "?？") && (r == Fresh || r == Fact && zhContent(sentence) >= zhNamed) {
			return r
		}
	}
	return reason
}

// zhNamed is the content of a sentence that names what it asks about.
const zhNamed = 6

func zhQuestion(folded string) Reason {
	rest := zhWrapper.ReplaceAllString(folded, " ")
	fresh := zhFresh.MatchString(folded)
	content := zhContent(rest)
	keywords := fresh && content <= 8 && !zhSentence.MatchString(rest)
	switch {
	case zhNoAsk.MatchString(folded), !zhAsks.MatchString(rest) && !zhRequest.MatchString(folded) && !keywords:
		return Chat
	case zhSpeakers.MatchString(rest):
		return Speakers
	case zhScene.MatchString(rest) && !strings.Contains(rest, "《"):
		return Story
	case fresh:
		return Fresh
	case content < 2:
		return Chat
	}
	return Fact
}

// zhContent counts the characters and Latin words that say what a question is about.
func zhContent(rest string) (n int) {
	rest = zhSmallTalk.ReplaceAllString(rest, " ")
	latin := false
	for _, r := range zhFunction.ReplaceAllString(rest, " ") {
		switch {
		case unicode.Is(unicode.Han, r):
			n, latin = n+1, false
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if !latin {
				n += 2
			}
			latin = true
		default:
			latin = false
		}
	}
	return n
}
