package claim

import "slices"

var people = data.Set("people")

// referred finds what the source says of "her", and the claim of somebody else than the one who is named before: the
// sentences before it, up to one that does not begin with a pronoun.
var referred = Detector{Name: "referred", Why: WhyName, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	if len(c.symbols) == 0 || len(p.Quote) == 0 {
		return false
	}
	for k, t := range p.Quote {
		for i := range t.clauses {
			n := &t.clauses[i]
			if !slices.Contains(near, n) || !n.speaksOfPerson() {
				continue
			}
			subject := c.subject(n)
			if weightOf(subject) < minSlot || !p.isPersonal(subject) || indexOf(t.symbols, subject, 0) >= 0 {
				continue
			}
			if !p.isAntecedent(subject, k) && p.isElsewhere(subject) {
				return true
			}
		}
	}
	return false
})}

// speaksOfPerson reports whether a clause begins with a pronoun of a person.
func (c *clause) speaksOfPerson() bool {
	for word := range wordsOf(c.text) {
		return people()[word]
	}
	return has(c.symbols[:min(1, len(c.symbols))], people)
}

// subject is what a clause begins with before what another one has too.
func (c *clause) subject(of *clause) []symbol {
	runs := runsOf(c.symbols, of.symbols)
	if len(runs) == 0 {
		return nil
	}
	return trimParticles(c.symbols[:runs[0].from])
}

func (p *Pair) isPersonal(subject []symbol) bool {
	if isWordSymbol(subject[0]) {
		return p.isNameSymbol(subject[len(subject)-1])
	}
	return isName(subject)
}

// isAntecedent reports whether the sentences before one of the quote name somebody, up to one that begins with no
// pronoun.
func (p *Pair) isAntecedent(subject []symbol, k int) bool {
	texts := slices.Concat(p.Before, p.Quote[:k])
	for i := len(texts) - 1; i >= 0; i-- {
		if indexOf(texts[i].symbols, subject[len(subject)-1:], 0) >= 0 {
			return true
		}
		if !texts[i].anyClause((*clause).hasPronoun) {
			return false
		}
	}
	return true
}

// hasPronoun reports whether a clause speaks of a person by a pronoun.
func (c *clause) hasPronoun() bool {
	for word := range wordsOf(c.text) {
		if people()[word] {
			return true
		}
	}
	return has(c.symbols, people)
}

func (p *Pair) isElsewhere(row []symbol) bool {
	return slices.ContainsFunc(slices.Concat(p.Page, p.Quote, p.Before), func(t *Text) bool { return indexOf(t.symbols, row, 0) >= 0 })
}
