package lang

import (
	"slices"
	"strconv"
)

// endings are how a fact says that something is over, with group "what" for what that is; or, with
// group "again", that it is so after all.
var endings = data.List("ending")

// Ends reports whether an older fact is over, given a newer one: it has another value of the same
// property, or it says that what the older one is about is no longer so.
func Ends(newer, older string) bool {
	if SameSlot(newer, older) {
		return true
	}
	for _, e := range endings() {
		for group, what := range groupsIn(e, newer) {
			if what != "" && (group == "again") == negated(older) && isAbout(older, what) {
				return true
			}
		}
	}
	return false
}

// isAbout reports whether a fact has all words of a phrase, and that has some.
func isAbout(fact, phrase string) bool {
	return slices.ContainsFunc(PiecesOf(phrase), func(p Piece) bool { return p.Class == "" }) && HoldsWords(fact, phrase)
}

// mostAged is how many years somebody has aged since they last said how old they are.
const mostAged = 9

// Aged reports whether two facts state ages of which the newer is a little higher.
func Aged(newer, older string) bool {
	now, was := ageIn(newer), ageIn(older)
	return was > 0 && now > was && now <= was+mostAged
}

func ageIn(fact string) int {
	for _, g := range SlotsOf(Digits(fact)) {
		if n, err := strconv.Atoi(g.parts["is"]); g.property == "age" && err == nil {
			return n
		}
	}
	return 0
}
