package intent

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"nodest/internal/lexicon"
)

// alphabet has the rules of a language whose words are separated by blanks. A file may leave out what
// its language does not need.
type alphabet struct {
	questions
	persons
	story
	vocabulary

	order *rule // asks for a search
	fresh *rule // asks for news
	frame *rule // questions about the world whatever their words
}

// questions has the rules that tell questions from other sentences.
type questions struct {
	wrapper, tag, vocative *rule // surround a question without being part of it; the last is a name that it is addressed to
	asks, request          *rule
	meant                  *rule // words that mean others, with the member "as"
	noAsk                  *rule // no question, although it looks like one
	sentence               *rule // a sentence and no keywords
}

// persons has the rules of questions about the two who chat.
type persons struct {
	speakers, self *rule
	general        *rule // questions in the first person that everybody may ask
	how            *rule
}

// story has the rules of questions about the scene of a chat.
type story struct {
	inScene     *rule // orders to search for something there
	scene       *rule
	someone     *rule // somebody or something that the question may have named
	times       *rule // that begin like things of the scene
	expletive   *rule // "it" that stands for nothing
	the, unique *rule // words that tie a thing to a scene, and the things that it does not tie
}

// vocabulary has the words that do not say what a question is about.
type vocabulary struct {
	function, everyday map[string]bool // words of the grammar; things of every chat
	filler             map[string]bool // words that no query needs
	capitals           map[string]bool // words with a capital letter that are no names; nil = capitals mean nothing
}

// rule is one that a language may lack.
type rule struct{ *lexicon.Rule }

func (r *rule) MatchString(s string) bool { return r.Rule != nil && r.Rule.MatchString(s) }

func (r *rule) ReplaceAllString(s, with string) string {
	if r.Rule == nil {
		return s
	}
	return r.Rule.ReplaceAllString(s, with)
}

func (r *rule) rewrite(s string) string {
	if r.Rule == nil {
		return s
	}
	return r.Rewrite(s)
}

// Names of what a file may have; a lexicon knows them before the program begins.
var (
	ruleNames = asked(data.Rule, "order", "in-scene", "wrapper", "tag", "asks", "request", "meant", "no-ask", "vocative", "speakers", "self", "general",
		"self-how", "expletive", "scene", "someone", "times", "fresh", "frame", "the", "unique", "sentence")
	wordNames = asked(data.Set, "function", "everyday", "filler", "honorifics")
)

// asked asks for names, so that the lexicon knows them.
func asked[T any](ask func(name string, in ...string) T, names ...string) []string {
	for _, name := range names {
		ask(name)
	}
	return names
}

func newAlphabet(l *lexicon.Language) *alphabet {
	of := func(name string) *rule {
		if !slices.Contains(ruleNames, name) || !slices.ContainsFunc(l.Rules, func(s *lexicon.Source) bool { return s.Name == name }) {
			return &rule{}
		}
		return &rule{data.Rule(name, l.Name)}
	}
	words := func(name string) map[string]bool {
		if !slices.Contains(wordNames, name) || l.Words[name] == nil {
			return nil
		}
		return data.Set(name, l.Name)()
	}
	return &alphabet{
		questions: questions{
			wrapper: of("wrapper"), tag: of("tag"), vocative: of("vocative"), asks: of("asks"), request: of("request"),
			meant: of("meant"), noAsk: of("no-ask"), sentence: of("sentence"),
		},
		persons: persons{speakers: of("speakers"), self: of("self"), general: of("general"), how: of("self-how")},
		story: story{
			inScene: of("in-scene"), scene: of("scene"), someone: of("someone"), times: of("times"),
			expletive: of("expletive"), the: of("the"), unique: of("unique"),
		},
		vocabulary: vocabulary{function: words("function"), everyday: words("everyday"), filler: words("filler"), capitals: words("honorifics")},
		order:      of("order"), fresh: of("fresh"), frame: of("frame"),
	}
}

func (a *alphabet) orders(folded string) bool {
	return a.order.MatchString(folded) && !a.inScene.MatchString(folded)
}

func (a *alphabet) topical(folded string) bool {
	return a.fresh.MatchString(folded) || a.frame.MatchString(folded)
}

// question takes the sentence that is a search, or else the last one that asks.
func (a *alphabet) question(said, _ string) Reason {
	reason := Chat
	list := sentences(said)
	long := 0
	for _, sentence := range list {
		if len(strings.Fields(sentence)) > 2 {
			long++
		}
	}
	for _, sentence := range list {
		switch r := a.judge(a.vocative.ReplaceAllString(sentence, ""), long <= 1); r {
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

// question is a sentence that asks for something.
type question struct {
	rest    string // in lower case, without what surrounds it
	content int    // words that say what it is about
	fresh   bool   // it asks for news
	framed  bool   // it is about the world whatever its words
	named   bool   // it has a name or a number
}

// judge judges one sentence. If it is not alone but for greetings, it must name what it asks about: chats are
// full of short questions about what was just said.
func (a *alphabet) judge(said string, alone bool) Reason {
	q, asks := a.questionIn(said)
	if !asks {
		return Chat
	}
	if reason, ok := a.ours(q); ok {
		return reason
	}
	switch {
	case q.vague(alone) && a.points(q.rest, alone):
		return Story
	case q.fresh:
		return Fresh
	}
	return Fact
}

// questionIn reads a sentence, and reports whether it asks for something.
func (a *alphabet) questionIn(said string) (q question, asks bool) {
	folded := strings.TrimSpace(strings.ToLower(said))
	folded = a.meant.rewrite(a.tag.ReplaceAllString(folded, ""))
	if a.noAsk.MatchString(folded) {
		return question{}, false
	}
	rest := strings.TrimSpace(a.wrapper.ReplaceAllString(folded, " $1 $2 "))
	q = question{
		rest: rest, content: a.content(rest),
		fresh: a.fresh.MatchString(folded), framed: a.frame.MatchString(rest), named: a.named(said),
	}
	about := q.content > 0 || q.fresh && q.named
	return q, about && a.asksFor(folded, rest, q.fresh || q.framed)
}

// detailed is the content of a question that says enough to be about the world, whatever
// "the" in it refers to.
const detailed = 6

// vague reports whether a question leaves open what it is about.
func (q *question) vague(alone bool) bool {
	return !q.named && !q.framed && q.content < detailed && !(q.fresh && alone && q.content > 1)
}

// asksFor reports whether a sentence asks for something. rest is it without what surrounds questions.
func (a *questions) asksFor(folded, rest string, topical bool) bool {
	return a.request.MatchString(folded) || a.asks.MatchString(rest) || a.isKeywords(rest, topical)
}

// points reports whether a question may refer to what was said or to something of the scene.
func (s *story) points(rest string, alone bool) bool {
	return !alone || s.the.MatchString(s.unique.ReplaceAllString(rest, " "))
}

// ours tells whether a question is about the speakers or the scene.
func (a *alphabet) ours(q question) (Reason, bool) {
	switch {
	case a.asked(q):
		return Speakers, true
	case a.happens(q):
		return Story, true
	}
	return "", false
}

// asked reports whether a question is about the two who chat.
func (p *persons) asked(q question) bool {
	return p.speakers.MatchString(q.rest) ||
		p.self.MatchString(q.rest) && (p.how.MatchString(q.rest) || !q.fresh && !p.general.MatchString(q.rest))
}

// happens reports whether a question is about something in the scene.
func (s *story) happens(q question) bool {
	rest := s.expletive.ReplaceAllString(s.times.ReplaceAllString(q.rest, " "), " ")
	return s.scene.MatchString(rest) || !q.named && s.someone.MatchString(rest)
}

// content counts the words that say what a question is about.
func (v *vocabulary) content(rest string) (n int) {
	for w := range strings.FieldsFuncSeq(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		w = strings.TrimSuffix(w, "'s")
		if !v.function[w] && !v.everyday[w] {
			n++
		}
	}
	return n
}

// mostKeywords is the maximum length of a message of keywords only, in words.
const mostKeywords = 9

// isKeywords reports whether a message is what people type into a search box; topical says
// that it has words of such a search.
func (a *questions) isKeywords(rest string, topical bool) bool {
	words := len(strings.Fields(rest))
	return topical && words >= 2 && words <= mostKeywords && !a.sentence.MatchString(rest)
}

// named reports whether a word in the middle of a sentence has a capital letter, or a word
// has a digit.
func (v *vocabulary) named(said string) bool {
	starts := true
	for word := range strings.FieldsSeq(said) {
		core := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		base, _, _ := strings.Cut(strings.ToLower(core), "'")
		if core != "" && !v.capitals[base] {
			first := []rune(core)[0]
			if v.capitals != nil && unicode.IsUpper(first) && !starts || strings.ContainsAny(core, "0123456789") {
				return true
			}
		}
		starts = strings.ContainsAny(word[len(word)-1:], `.!?:"`)
	}
	return false
}
