package intent

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/lexicon"
)

// Reason says why a message is a search or not. The set is closed, so that decisions can be
// counted.
type Reason string

// The reasons. The first three are searches.
const (
	Order    Reason = "order"    // the user asks for a search
	Fresh    Reason = "fresh"    // a question whose answer changes: weather, prices, news, office holders
	Fact     Reason = "fact"     // a question about the world
	Long     Reason = "long"     // 300 UTF-16 units or more, without an order at the end
	Code     Reason = "code"     // program text
	Play     Reason = "play"     // narration, or speech of the role
	Speakers Reason = "speakers" // about the user, the character, or both
	Story    Reason = "story"    // about something in the scene
	Chat     Reason = "chat"     // no question, or small talk
)

// Decision is what Better says about a message.
type Decision struct {
	Search bool
	Reason Reason
	Place  bool // a search for places, see Place
}

// Options tell Better what it cannot see in the message.
type Options struct {
	// Names are of the user, the character, and of things in the story, such as the keys of
	// world books. Questions about them are about the story.
	Names []string
}

// Better reports whether text needs a web search. Other than Seed it tells questions about the
// world from small talk, role-play, and questions about the two speakers or their story.
func Better(text string, o Options) Decision {
	reason := o.classify(text)
	search := reason == Order || reason == Fresh || reason == Fact
	return Decision{Search: search, Reason: reason, Place: search && Place(text)}
}

func (o Options) classify(text string) Reason {
	if units(text) >= longest {
		return long(text)
	}
	if code.MatchString(text) {
		return Code
	}
	said, narrated := spoken(text)
	folded := strings.ToLower(said)
	if !strings.ContainsFunc(folded, unicode.IsLetter) || sums.MatchString(folded) {
		if narrated {
			return Play
		}
		return Chat
	}
	language := languageOf(folded)
	switch {
	case language.orders(folded):
		return Order
	case narrated:
		return Play
	case o.mentionsName(folded):
		return Story
	case claim.MatchString(folded):
		return Fact
	}
	return language.question(said, folded)
}

var claim = data.Rule("claim") // something that somebody said about the world, and the user doubts

var sums = data.Rule("sum") // calculations, which need no search

var research = data.Rule("research")

// Research reports whether a message asks for a deep research. It takes minutes and money, so words that
// may be part of the story count as no.
func Research(text string, o Options) bool {
	said, narrated := spoken(text)
	folded := strings.ToLower(said)
	return units(text) < longest && !narrated && research.MatchString(folded) && !o.mentionsName(folded)
}

var researchThat = data.Rule("research-that")

// ResearchThat reports whether the topic of a research is not in the message that asks for it.
func ResearchThat(text string) bool {
	said, _ := spoken(text)
	return researchThat.MatchString(strings.ToLower(said))
}

// long finds an order at the end of a long message.
func long(text string) Reason {
	tail := text[max(0, len(text)-longest):]
	said, _ := spoken(strings.ToValidUTF8(tail, ""))
	list := sentences(strings.ToLower(said))
	last := list[len(list)-1]
	if len(list) > 1 && languageOf(last).orders(last) {
		return Order
	}
	return Long
}

// addressBefore is the end or the beginning of a sentence before a name by which it addresses
// somebody, and addressAfter that behind it.
var (
	addressBefore = data.Rule("address-before")
	addressAfter  = regexp.MustCompile(`^\s*(?:[,，:：!！。.?？~\n]|$)`)
)

// mentionsName reports whether text is about somebody or something with a name, other than
// by addressing them.
func (o Options) mentionsName(folded string) bool {
	for _, name := range o.Names {
		name = strings.ToLower(strings.TrimSpace(name))
		if len(name) > 1 && containsWord(withoutAddress(folded, name), name) {
			return true
		}
	}
	return false
}

// withoutAddress is text without the places where it addresses name.
func withoutAddress(folded, name string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(folded, name)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if !addressBefore.MatchString(before) || !addressAfter.MatchString(after) {
			b.WriteString(name)
		}
		folded = after
	}
}

// containsWord finds word in s where it is not part of a longer word in Latin letters.
func containsWord(s, word string) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		if (i == 0 || !isLatin(s[i-1]) || !isLatin(word[0])) && (end == len(s) || !isLatin(s[end]) || !isLatin(word[len(word)-1])) {
			return true
		}
		from = end
	}
}

func isLatin(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// rules are what a language knows about messages; folded is in lower case.
type rules interface {
	// orders reports whether the user asks for a search.
	orders(folded string) bool
	// question tells why a message that is no order is a search or not.
	question(said, folded string) Reason
	// topical reports whether there are words of a search.
	topical(folded string) bool
}

// languages are those of the files that say how their language is recognised, in the order of their names.
var languages = sync.OnceValue(func() (all []language) {
	for _, e := range signs() {
		i := slices.IndexFunc(data.Languages(), func(l *lexicon.Language) bool { return l.Name == e.Language })
		all = append(all, language{e, rulesOf(data.Languages()[i])})
	}
	return all
})

// language is one with its signs: letters, or words that nearly every sentence has.
type language struct {
	signs lexicon.Entry
	rules rules
}

// signs have the member "script" if one of them is enough, and "rest" for texts without any.
var signs = data.List("signs", "script", "rest")

// rulesOf chooses the engine by what a file has.
func rulesOf(l *lexicon.Language) rules {
	has := func(name string) bool {
		return slices.ContainsFunc(l.Rules, func(s *lexicon.Source) bool { return s.Name == name })
	}
	switch {
	case has("small-talk"):
		return chinese{}
	case has("fact"):
		return patternsOf(l.Name)
	}
	return newAlphabet(l)
}

// languageOf returns the rules of the language that a text has most signs of.
func languageOf(folded string) rules {
	var best rules
	most, rest := 0, false
	apart := strings.Join(strings.Fields(folded), "  ") // a sign may begin where another has ended
	for _, l := range languages() {
		n := 2 * len(l.signs.FindAllStringIndex(apart, -1))
		if n > 0 && l.signs.With["script"] != "" {
			return l.rules
		}
		if l.rules.topical(folded) {
			n++
		}
		if last := l.signs.With["rest"] != ""; n > most || n == most && n > 0 && rest || best == nil && last {
			best, most, rest = l.rules, n, last
		}
	}
	return best
}

var (
	code = regexp.MustCompile("```|[{;]\\s*$|\\w\\([^()]*\\)\\s*[{;]|[=!]==? |</\\w+>|=> ?[{(]")

	// narration is what a role does, between asterisks or in Chinese parentheses, which the
	// compatibility form turns into ASCII ones.
	narration   = regexp.MustCompile(`\*[^*]+\*|_[^_]+_`)
	parentheses = regexp.MustCompile(`^\s*\([^()]+\)|\([^()]*\p{Han}[^()]*\)\s*$`)

	// speech is a message in quotation marks, or one that begins with a quoted sentence.
	speech = regexp.MustCompile(`^\s*(?:["“「][^"”」]*["”」]\s*$|["“「][^"”」]*[.!?,。！？，…~][”"」])`)
)

// spoken returns what the user says in a message, in compatibility form and without what their
// role does, and reports whether there was any of the latter.
func spoken(text string) (said string, narrated bool) {
	text = norm.NFKC.String(strings.ReplaceAll(text, "’", "'"))
	said = parentheses.ReplaceAllString(narration.ReplaceAllString(text, " "), " ")
	said = strings.TrimSpace(said)
	return said, len(said) < len(strings.TrimSpace(text)) || speech.MatchString(said)
}
