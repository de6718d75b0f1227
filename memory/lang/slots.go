package lang

import (
	"slices"

	"nodest/internal/lexicon"
)

// properties of the user that questions ask for.
var properties = []struct {
	flag        Properties
	asked, told *lexicon.Rule   // in questions, and in lines and facts
	finds       func() []string // words that such lines have
}{
	{ownName, data.Rule("ask-name"), data.Rule("tell-name"), data.Words("finds-name")},
	{home, data.Rule("ask-home"), data.Rule("tell-home"), data.Words("finds-home")},
	{age, data.Rule("ask-age"), data.Rule("tell-age"), data.Words("finds-age")},
	{work, data.Rule("ask-work"), data.Rule("tell-work"), data.Words("finds-work")},
}

// facts are how facts give a property of which somebody has one value at a time, the user's boss
// among them. Named groups are the parts of the value; overGroup matches if the value has ended.
var facts = data.List("fact", "property")

const (
	NameSlot  = "name" // the user's
	overGroup = "over"
)

// Slot is what a fact says of a property; the zero value is nothing.
type Slot struct {
	Property string
	parts    map[string]string // parts of the value, by group
}

func SlotOf(text string) Slot {
	for _, fact := range facts() {
		if !fact.MatchString(text) {
			continue
		}
		g := Slot{fact.With["property"], map[string]string{}}
		at := fact.FindStringSubmatch(text)
		for i, group := range fact.SubexpNames() {
			if group != "" && at[i] != "" {
				g.parts[group] = at[i]
			}
		}
		return g
	}
	return Slot{}
}

func (g Slot) of(other Slot) bool { return g.Property != "" && g.Property == other.Property }

// Over reports whether the value of the property has ended.
func (g Slot) Over() bool { return g.parts[overGroup] != "" }

// Contradicts reports whether g, which is newer, has another value of the same property. A
// value that is only more or less specific (Paris, the city of Paris) is not another one, and
// neither are different parts (a place of work, a profession).
func (g Slot) Contradicts(older Slot) bool {
	if !g.of(older) || older.Over() {
		return g.of(older) && !g.Over()
	}
	compared, differs := false, false
	for part, x := range g.parts {
		if y, both := older.parts[part]; both {
			compared, differs = true, differs || !HoldsWords(x, y) && !HoldsWords(y, x)
		}
	}
	if g.Over() { // if it names a value, only that one is over
		return len(g.parts) == 1 || compared && !differs
	}
	return differs
}

// Repeats reports whether both have the same part of one property.
func (g Slot) Repeats(other Slot) bool {
	return g.of(other) && g.Over() == other.Over() && slices.ContainsFunc([]string{"is", "as", "at", overGroup}, func(part string) bool {
		return g.parts[part] != "" && other.parts[part] != ""
	})
}

// SameSlot reports whether a text has another value of the same property than an older one.
func SameSlot(text, older string) bool { return SlotOf(text).Contradicts(SlotOf(older)) }
