package lang

import (
	"iter"
	"slices"
	"strings"

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
	{partner, data.Rule("ask-partner"), data.Rule("tell-partner"), data.Words("finds-partner")},
	{diet, data.Rule("ask-diet"), data.Rule("tell-diet"), data.Words("finds-diet")},
	{smoking, data.Rule("ask-smoking"), data.Rule("tell-smoking"), data.Words("finds-smoking")},
	{weight, data.Rule("ask-weight"), data.Rule("tell-weight"), data.Words("finds-weight")},
	{height, data.Rule("ask-height"), data.Rule("tell-height"), data.Words("finds-height")},
}

// facts are how facts give a property of which somebody has one value at a time. Named groups are
// the parts of the value, unless the rule names it; overGroup matches if the value has ended. Group
// ofGroup is the property itself ("User's landlord is called X").
var facts = data.List("fact", "property", "value")

const (
	NameSlot  = "name" // the user's
	overGroup = "over"
	ofGroup   = "of"
)

// slot is what a fact says of a property.
type slot struct {
	property string
	parts    map[string]string // parts of the value, by group
}

// Slots are what a fact says of properties, of each once.
type Slots []slot

func SlotsOf(text string) (all Slots) {
	for _, fact := range facts() {
		if !fact.MatchString(text) {
			continue
		}
		g := slot{fact.With["property"], map[string]string{}}
		for group, part := range groupsIn(fact, text) {
			switch {
			case group == ofGroup:
				g.property += " " + strings.ToLower(part)
			case part != "":
				g.parts[group] = part
			}
		}
		if value := fact.With["value"]; value != "" && !g.over() {
			g.parts["is"] = value
		}
		if g.property == "" { // later rules do not hold
			break
		}
		if !slices.ContainsFunc(all, g.of) {
			all = append(all, g)
		}
	}
	return all
}

// The method of reports whether both say something of one property; a number may be that of the telephone.
func (g slot) of(other slot) bool {
	kind, name, _ := strings.Cut(g.property, " ")
	otherKind, otherName, _ := strings.Cut(other.property, " ")
	return kind == otherKind && (name == otherName || name != "" && otherName != "" && (strings.HasSuffix(name, " "+otherName) || strings.HasSuffix(otherName, " "+name)))
}

func (g slot) over() bool { return g.parts[overGroup] != "" }

// groupsIn yields the named groups of what a rule finds in a text, "" for one that found nothing. A number only tells
// groups of one name apart.
func groupsIn(rule lexicon.Entry, text string) iter.Seq2[string, string] {
	return func(yield func(group, part string) bool) {
		if !rule.MatchString(text) {
			return
		}
		at := rule.FindStringSubmatch(text)
		for i, group := range rule.SubexpNames() {
			if group != "" && !yield(strings.TrimRight(group, "0123456789"), at[i]) {
				return
			}
		}
	}
}

// Property is the first that a fact says something of; "" = none.
func (all Slots) Property() string {
	if len(all) == 0 {
		return ""
	}
	return all[0].property
}

// Over reports whether the value of a property has ended.
func (all Slots) Over() bool { return slices.ContainsFunc(all, slot.over) }

// Contradicts reports whether all, which is newer, has another value of a property. A value that
// is only more or less specific (Paris, the city of Paris) is not another one, and neither are
// different parts (a place of work, a profession).
func (all Slots) Contradicts(older Slots) bool {
	return slices.ContainsFunc(all, func(g slot) bool {
		return slices.ContainsFunc(older, func(o slot) bool { return g.of(o) && g.contradicts(o) })
	})
}

func (g slot) contradicts(older slot) bool {
	if older.over() {
		return !g.over()
	}
	compared, differs := false, false
	for part, x := range g.parts {
		if y, both := older.parts[part]; both {
			compared, differs = true, differs || !HoldsWords(x, y) && !HoldsWords(y, x)
		}
	}
	if g.over() { // if it names a value, only that one is over
		return len(g.parts) == 1 || compared && !differs
	}
	return differs
}

// Repeats reports whether both have the same part of the property that they are about.
func (all Slots) Repeats(other Slots) bool {
	if len(all) == 0 || len(other) == 0 || !all[0].of(other[0]) {
		return false
	}
	g, o := all[0], other[0]
	return g.over() == o.over() && slices.ContainsFunc([]string{"is", "as", "at", overGroup}, func(part string) bool {
		return g.parts[part] != "" && o.parts[part] != ""
	})
}

// SameSlot reports whether a text has another value of a property than an older one.
func SameSlot(text, older string) bool { return SlotsOf(text).Contradicts(SlotsOf(older)) }
