package claim

import "nodest/internal/cite/script"

// nameSymbols is the length of a Chinese name of a surname and two more characters.
const nameSymbols = 3

var (
	beforeNames = data.Set("before-names")
	behindNames = data.Set("behind-names")
)

// renamed finds a Chinese name of three characters of which the source has another character: 创始人沈若梅 where it was
// 创始人沈若兰. Shorter names are left out, since two characters are part of too many words.
var renamed = Detector{Name: "renamed", Why: WhyName, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	ours := c.row()
	for i := 0; i+nameSymbols <= len(ours); i++ {
		if name := ours[i : i+nameSymbols]; standsAsName(ours, i) && !p.isElsewhere(name) && p.hasNameLike(name) {
			return true
		}
	}
	return false
})}

// standsAsName reports whether three symbols begin with a surname, and stand behind the title of a person or before what
// persons do.
func standsAsName(text []symbol, i int) bool {
	name := text[i : i+nameSymbols]
	for _, s := range name {
		if isWordSymbol(s) || !script.IsDense(s) || isParticle(s) {
			return false
		}
	}
	return has(name[:1], surnames) && (has([]symbol{at(text, i-1)}, beforeNames) || has([]symbol{at(text, i+nameSymbols)}, behindNames))
}

// hasNameLike reports whether the quote has a name that differs from this one in one character behind the surname.
func (p *Pair) hasNameLike(name []symbol) bool {
	for _, t := range p.Quote {
		row := t.row()
		for i := 0; i+nameSymbols <= len(row); i++ {
			if row[i] == name[0] && (row[i+1] == name[1]) != (row[i+2] == name[2]) && standsAsName(row, i) {
				return true
			}
		}
	}
	return false
}
