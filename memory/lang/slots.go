package lang

import (
	"slices"
)

const (
	NameSlot  = "name" // the user's
	WorkSlot  = "work"
	overGroup = "over"
)

// The beginnings of facts.
const (
	ofUser   = `(?i)^(?:the )?user`
	aUser    = ofUser + ` `
	userNow  = aUser + `(?:(?:has )?(?:quit|left|lost|resigned|retired)\b.{0,60}? (?:and|but) )?(?:has |is |now |currently |just |finally )*`
	hanUser  = `^用户(?:` + hanNow + `|` + hanPast + `)*`
	enDayPut = `(?: (?:on|in|last|this|today|yesterday)\b.*)?`
)

// Slot is what a fact says of a property; the zero value is nothing.
type Slot struct {
	Property string
	parts    map[string]string // of the value, by group
}

func SlotOf(text string) Slot {
	for _, p := range properties {
		for _, form := range p.facts {
			at := form.FindStringSubmatch(text)
			if at == nil {
				continue
			}
			g := Slot{p.name, map[string]string{}}
			for i, group := range form.SubexpNames() {
				if group != "" && at[i] != "" {
					g.parts[group] = at[i]
				}
			}
			return g
		}
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
	if g.Over() { // of a value that it names, only of that
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
