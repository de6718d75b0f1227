package lang

import (
	"slices"
	"strings"

	"nodest/internal/accent"
	"nodest/internal/index"
)

// Properties of the user have one value at a time.
type Properties uint16

const (
	home Properties = 1 << iota
	work
	ownName
	age
	partner
	diet
	smoking
	weight
	height

	allProperties = home | work | ownName | age | partner | diet | smoking | weight | height
)

// propertiesAsked returns which of some properties a text asks for.
func propertiesAsked(folded string, of Properties) (asked Properties) {
	for _, f := range properties {
		if f.flag&of != 0 && f.asked.MatchString(folded) {
			asked |= f.flag
		}
	}
	return asked
}

// PropertyTerms are words that find lines about the properties that a question asks for.
func (q *Question) PropertyTerms() (terms []index.Term) {
	proof := float32(ProvesNothing)
	if q.early {
		proof = ProvesLittle
	}
	for _, f := range properties {
		if q.Properties&f.flag != 0 {
			for _, w := range f.finds() {
				terms = append(terms, index.Term{Text: index.Stem(w), Weight: weakTerm, Evidence: proof, Extra: true})
			}
		}
	}
	return terms
}

// Each returns the properties one by one.
func (p Properties) Each() (all []Properties) {
	for _, f := range properties {
		if p&f.flag != 0 {
			all = append(all, f.flag)
		}
	}
	return all
}

// Grows reports whether a property has changed whenever it is told again.
func (p Properties) Grows() bool { return p == age || p == weight }

// longestProperty is how many bytes a line with a property has at most: longer ones tell stories.
const longestProperty = 600

// PropertiesTold returns the properties of the user of this name that a text states: a fact, or
// what the user said. self is whether the text is in the first person.
func PropertiesTold(text, name string, said, self bool) Properties {
	if said && !self && !impersonal.MatchString(text) || len(text) > longestProperty {
		return 0
	}
	if said && !mayTell(text) && !mayIntroduce.MatchString(text) {
		return 0
	}
	all := Statements(text)
	if said {
		if !earnest(Line{Role: RoleUser, Text: Narration.ReplaceAllString(text, " ")}) {
			return 0
		}
		all = slices.DeleteFunc(all, supposed.MatchString)
	}
	read := ofOthers.ReplaceAllString(strings.Join(all, " "), "")
	if name != "" {
		read = strings.ReplaceAll(strings.ToLower(read), name, "user")
	}
	told := toldIn(read)
	if said && told&ownName == 0 && mayIntroduce.MatchString(text) && introduces(text) {
		told |= ownName
	}
	return told
}

// MentionsProperty reports whether a short text has the form of a statement of one of these
// properties, even in play, in jest or by hearsay.
func MentionsProperty(text string, asked Properties) bool {
	return len(text) <= longestProperty && toldIn(text)&asked != 0
}

// SaysChanged reports whether a text says that something has changed.
func SaysChanged(text string) bool { return changed.MatchString(plainOf(text)) }

// AboutSpeaker reports whether a text is about the one who says it.
func AboutSpeaker(text string) bool { return aboutUs.MatchString(plainOf(text)) }

// plainOf returns the form of a text that rules for properties read.
func plainOf(text string) string { return Contracted(accent.Fold(strings.ToLower(text))) }

func toldIn(text string) (told Properties) {
	text = plainOf(text)
	for _, f := range properties {
		if f.told.MatchString(text) && !notNow.MatchString(text) {
			told |= f.flag
		}
	}
	return told
}

var (
	// tellingWords are in every English text that states a property, but for one of a trade.
	tellingWords = data.Words("telling")
	ofTrade      = data.Rule("of-trade")      // how a trade is stated
	ofOthers     = data.Rule("of-others")     // clauses about somebody close to the user
	impersonal   = data.Rule("impersonal")    // texts that may be about the user without a word for "I"
	mayIntroduce = data.Rule("may-introduce") // found in every text that introduces: looking for it is fast
	notNow       = data.Rule("not-now")       // the past or the future
	changed      = data.Rule("changed")       // how people say that something has changed
	aboutUs      = data.Rule("about-us")
	namesUser    = data.Rule("names-user") // the beginnings of facts with the user's name
)

// mayTell reports, fast, whether a text may state a property; one in a dense script may.
func mayTell(text string) bool {
	if HasCJK(text) {
		return true
	}
	folded := plainOf(text)
	return slices.ContainsFunc(tellingWords(), func(w string) bool { return strings.Contains(folded, w) }) || ofTrade.MatchString(folded)
}

// introduces reports whether rules read the user's name in a text ("Hi, I'm Anna").
func introduces(text string) bool {
	return slices.ContainsFunc(Names{}.Statements(Line{Role: RoleUser, Text: text}), func(f Statement) bool { return GivesName(f.Text) })
}

func GivesName(text string) bool { return namesUser.MatchString(text) }

// AsksWho reports whether a text asks for the user's name, with words too common to find it.
func AsksWho(text string) bool {
	return propertiesAsked(plainOf(text), ownName) != 0
}
