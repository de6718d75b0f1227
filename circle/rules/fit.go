package rules

import (
	"strings"

	"nodest/internal/lexicon"
	"nodest/internal/op"
)

// Unfit says why a card is no member of a circle of friends; "" = it may be one.
type Unfit string

// Why a card is unfit.
const (
	UnfitGame    Unfit = "game"    // a game, a simulator, a narrator
	UnfitTool    Unfit = "tool"    // an assistant for some work
	UnfitSeveral Unfit = "several" // more than one character
)

var unfit = []struct {
	why  Unfit
	rule *lexicon.Rule
}{{UnfitGame, data.Rule("game-card")}, {UnfitTool, data.Rule("tool-card")}, {UnfitSeveral, data.Rule("several-card")}}

// openingOf is how much of a text is looked at, in code points: a card says there what it is.
const openingOf = 300

// UnfitCard reads the name, the tags and the texts of a card.
func UnfitCard(name string, tags []string, texts ...string) Unfit {
	all := append([]string{name}, tags...)
	for _, text := range texts {
		all = append(all, op.Truncate(strings.TrimSpace(text), openingOf))
	}
	for _, u := range unfit {
		for _, text := range all {
			if u.rule.MatchString(text) {
				return u.why
			}
		}
	}
	return ""
}
