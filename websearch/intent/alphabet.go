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
	order, inScene *rule
	wrapper, tag   *rule // surround a question without being part of it
	asks, request  *rule
	meant          *rule // words that mean others, with the member "as"
	noAsk          *rule // no question, although it looks like one
	vocative       *rule // a name that a message is addressed to
	speakers, self *rule
	general        *rule // questions in the first person that everybody may ask
	how            *rule
	expletive      *rule // "it" that stands for nothing
	scene          *rule
	someone        *rule // somebody or something that the question may have named
	times          *rule // that begin like things of the scene
	fresh          *rule
	frame          *rule // questions about the world whatever their words
	the, unique    *rule // words that tie a thing to a scene, and the things that it does not tie
	sentence       *rule

	function, everyday map[string]bool // words that do not say what a question is about; things of every chat
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
		order: of("order"), inScene: of("in-scene"), wrapper: of("wrapper"), tag: of("tag"), asks: of("asks"), request: of("request"), meant: of("meant"),
		noAsk: of("no-ask"), vocative: of("vocative"), speakers: of("speakers"), self: of("self"), general: of("general"), how: of("self-how"),
		expletive: of("expletive"), scene: of("scene"), someone: of("someone"), times: of("times"), fresh: of("fresh"), frame: of("frame"),
		the: of("the"), unique: of("unique"), sentence: of("sentence"),
		function: words("function"), everyday: words("everyday"), filler: words("filler"), capitals: words("honorifics"),
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

// detailed is the content of a question that says enough to be about the world, whatever
// "the" in it refers to.
const detailed = 6

// judge judges one sentence. If it is not alone but for greetings, it must name what it asks about: chats are
// full of short questions about what was just said.
func (a *alphabet) judge(said string, alone bool) Reason { //nolint:gocyclo // one case after the other, each of one line
	folded := strings.TrimSpace(strings.ToLower(said))
	folded = a.meant.rewrite(a.tag.ReplaceAllString(folded, ""))
	if a.noAsk.MatchString(folded) {
		return Chat
	}
	rest := strings.TrimSpace(a.wrapper.ReplaceAllString(folded, " $1 $2 "))
	fresh, framed, named := a.fresh.MatchString(folded), a.frame.MatchString(rest), a.named(said)
	content := a.content(rest)
	if !a.asksFor(folded, rest, fresh || framed) || content == 0 && !(fresh && named) {
		return Chat
	}
	if reason, ok := a.ours(rest, fresh, named); ok {
		return reason
	}
	vague := content < detailed && !(fresh && alone && content > 1)
	if !named && !framed && vague && a.points(rest, alone) {
		return Story
	}
	if fresh {
		return Fresh
	}
	return Fact
}

// asksFor reports whether a sentence asks for something. rest is it without what surrounds questions.
func (a *alphabet) asksFor(folded, rest string, topical bool) bool {
	return a.request.MatchString(folded) || a.asks.MatchString(rest) || a.isKeywords(rest, topical)
}

// points reports whether a question may refer to what was said or to something of the scene.
func (a *alphabet) points(rest string, alone bool) bool {
	return !alone || a.the.MatchString(a.unique.ReplaceAllString(rest, " "))
}

// ours tells whether a question is about the speakers or the scene.
func (a *alphabet) ours(rest string, fresh, named bool) (Reason, bool) {
	general := a.general.MatchString(rest)
	if a.speakers.MatchString(rest) || a.self.MatchString(rest) && (a.how.MatchString(rest) || !general && !fresh) {
		return Speakers, true
	}
	rest = a.expletive.ReplaceAllString(a.times.ReplaceAllString(rest, " "), " ")
	if a.scene.MatchString(rest) || !named && a.someone.MatchString(rest) {
		return Story, true
	}
	return "", false
}

// content counts the words that say what a question is about.
func (a *alphabet) content(rest string) (n int) {
	for w := range strings.FieldsFuncSeq(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		w = strings.TrimSuffix(w, "'s")
		if !a.function[w] && !a.everyday[w] {
			n++
		}
	}
	return n
}

// mostKeywords is the maximum length of a message of keywords only, in words.
const mostKeywords = 9

// isKeywords reports whether a message is what people type into a search box; topical says
// that it has words of such a search.
func (a *alphabet) isKeywords(rest string, topical bool) bool {
	words := len(strings.Fields(rest))
	return topical && words >= 2 && words <= mostKeywords && !a.sentence.MatchString(rest)
}

// named reports whether a word in the middle of a sentence has a capital letter, or a word
// has a digit.
func (a *alphabet) named(said string) bool {
	starts := true
	for word := range strings.FieldsSeq(said) {
		core := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		base, _, _ := strings.Cut(strings.ToLower(core), "'")
		if core != "" && !a.capitals[base] {
			first := []rune(core)[0]
			if a.capitals != nil && unicode.IsUpper(first) && !starts || strings.ContainsAny(core, "0123456789") {
				return true
			}
		}
		starts = strings.ContainsAny(word[len(word)-1:], `.!?:"`)
	}
	return false
}
