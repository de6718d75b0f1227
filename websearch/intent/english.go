package intent

import (
	"regexp"
	"strings"
	"unicode"

	"nodest/internal/lexicon"
)

type english struct{}

func en(name string) *lexicon.Rule { return data.Rule(name, "en") }

var (
	enOrder     = en("order")
	enInScene   = en("in-scene") // something is searched in a story, or with the eyes
	enWrapper   = en("wrapper")  // surrounds a question without being part of it
	enTag       = en("tag")
	enAsks      = en("asks")
	enVocative  = en("vocative") // a name that a message is addressed to
	enRequest   = en("request")
	enNoAsk     = en("no-ask") // no question, although it looks like one
	enSpeakers  = en("speakers")
	enGeneral   = en("general") // questions in the first person that everybody may ask
	enSelf      = en("self")
	enHow       = en("self-how")
	enExpletive = en("expletive") // "it" that stands for nothing
	enScene     = en("scene")
	enSomeone   = en("someone") // somebody or something that the question may have named
	enThis      = en("times")   // times that begin like things of the scene
	enFresh     = en("fresh")
	enFrame     = en("frame")  // questions about the world whatever their words
	enUnique    = en("unique") // things that "the" does not tie to a scene
	enThe       = en("the")
	enSentence  = en("sentence")

	enFunction = data.Set("function", "en") // words that do not say what a question is about
	enEveryday = data.Set("everyday", "en") // things of every chat; a question of nothing else is small talk
	honorifics = data.Set("honorifics", "en")
)

func (english) orders(folded string) bool {
	return enOrder.MatchString(folded) && !enInScene.MatchString(folded)
}

// question takes the sentence that is a search, or else the last one that asks.
func (english) question(said, _ string) Reason {
	reason := Chat
	list := sentences(said)
	long := 0
	for _, sentence := range list {
		if len(strings.Fields(sentence)) > 2 {
			long++
		}
	}
	for _, sentence := range list {
		switch r := enSentenceAsks(enVocative.ReplaceAllString(sentence, ""), long <= 1); r {
		case Fresh, Fact:
			return r
		case Chat:
		default:
			reason = r
		}
	}
	return reason
}

var sentenceEnd = regexp.MustCompile(`\.["')]*\s+|[!?。]+["')”」]*\s*|\n+`)

func sentences(text string) (list []string) {
	from := 0
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		list = append(list, text[from:end[1]])
		from = end[1]
	}
	if from < len(text) || len(list) == 0 {
		list = append(list, text[from:])
	}
	return list
}

// enDetailed is the content of a question that says enough to be about the world, whatever
// "the" in it refers to.
const enDetailed = 6

// enSentenceAsks judges one sentence. If it is not alone but for greetings, it must name what it asks about: chats are
// full of short questions about what was just said.
func enSentenceAsks(said string, alone bool) Reason {
	folded := strings.TrimSpace(strings.ToLower(said))
	folded = enTag.ReplaceAllString(folded, "")
	if enNoAsk.MatchString(folded) {
		return Chat
	}
	rest := strings.TrimSpace(enWrapper.ReplaceAllString(folded, " $1 $2 "))
	fresh, framed, named := enFresh.MatchString(folded), enFrame.MatchString(rest), hasName(said)
	content := enContent(rest)
	asks := enRequest.MatchString(folded) || enAsks.MatchString(rest) || enIsKeywords(rest, fresh || framed)
	if !asks || content == 0 && !(fresh && named) {
		return Chat
	}
	if reason, ok := enOurs(rest, fresh, named); ok {
		return reason
	}
	if !named && !framed && content < enDetailed && enPoints(rest, alone) {
		return Story
	}
	if fresh {
		return Fresh
	}
	return Fact
}

// enPoints reports whether a question may refer to what was said or to something of the scene.
func enPoints(rest string, alone bool) bool {
	return !alone || enThe.MatchString(enUnique.ReplaceAllString(rest, " "))
}

// enOurs tells whether a question is about the speakers or the scene.
func enOurs(rest string, fresh, named bool) (Reason, bool) {
	general := enGeneral.MatchString(rest) && !enHow.MatchString(rest)
	if enSpeakers.MatchString(rest) || enSelf.MatchString(rest) && !general && !fresh {
		return Speakers, true
	}
	rest = enExpletive.ReplaceAllString(enThis.ReplaceAllString(rest, " "), " ")
	if enScene.MatchString(rest) || !named && enSomeone.MatchString(rest) {
		return Story, true
	}
	return "", false
}

// enContent counts the words that say what a question is about.
func enContent(rest string) (n int) {
	for w := range strings.FieldsFuncSeq(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		w = strings.TrimSuffix(w, "'s")
		if !enFunction()[w] && !enEveryday()[w] {
			n++
		}
	}
	return n
}

// mostKeywords is the maximum length of a message of keywords only, in words.
const mostKeywords = 6

// enIsKeywords reports whether a message is what people type into a search box; topical says
// that it has words of such a search.
func enIsKeywords(rest string, topical bool) bool {
	words := len(strings.Fields(rest))
	return topical && words >= 2 && words <= mostKeywords && !enSentence.MatchString(rest)
}

// hasName reports whether a word in the middle of a sentence has a capital letter, or a word
// has a digit.
func hasName(said string) bool {
	starts := true
	for word := range strings.FieldsSeq(said) {
		core := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		base, _, _ := strings.Cut(strings.ToLower(core), "'")
		if core != "" && !honorifics()[base] {
			first := []rune(core)[0]
			if unicode.IsUpper(first) && !starts || strings.ContainsAny(core, "0123456789") {
				return true
			}
		}
		starts = strings.ContainsAny(word[len(word)-1:], `.!?:"`)
	}
	return false
}
