package claim

import (
	"maps"
	"slices"
	"strings"
)

// held finds a number or name that belongs to something else in the source: what the claim says of it stands
// there with another one of its kind, and it stands elsewhere.
var held = Detector{Name: "held", Why: WhyRole, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	about := p.about(c)
	for _, q := range c.amounts {
		about := about
		if p.Claim.countLike(q) == 1 { // all of the claim is about it
			about = p.about(p.Claim.asClause())
		}
		has := func(of *clause) bool { return of.hasAmount(q) }
		for _, best := range p.tellers(about, has, 2) {
			if slices.ContainsFunc(best.amounts, func(x quantity) bool { return x.like(q) && !p.Claim.hasAmount(x) }) {
				return true
			}
		}
	}
	return p.heldByItem() || p.heldByName(c, about)
})}

// heldByItem reports whether the claim has all words of a clause of the source, such as "and dry mouth (9 %)", and another
// number of the source in place of its own.
func (p *Pair) heldByItem() bool {
	return p.source.anyClause(func(of *clause) bool {
		words := 0
		for t := range of.terms {
			if isNumber(t) || isUnit(t) {
				continue
			}
			if words++; !p.Claim.terms[t] {
				return false
			}
		}
		return words >= 2 && len(of.amounts) == 1 && !p.Claim.hasAmount(of.amounts[0]) && p.Claim.anyClause(func(c *clause) bool {
			return slices.ContainsFunc(c.amounts, func(q quantity) bool { return q.like(of.amounts[0]) && p.source.hasAmount(q) })
		})
	})
}

// about is what a clause speaks of beside numbers and names and the subject of the source; what the whole claim does,
// if this is too little.
func (p *Pair) about(c *clause) map[string]bool {
	about := map[string]bool{}
	for _, of := range []map[string]bool{c.terms, p.Claim.terms} {
		for t := range of {
			if !isNumber(t) && !p.Title[t] && !isUnit(t) && !isMonth(t) {
				about[t] = true
			}
		}
		if len(about) >= 2 {
			break
		}
	}
	return about
}

// tellers returns the clauses of the source that say most of some terms; none, if one of them has a fact, or if one
// that has it says nearly as much.
func (p *Pair) tellers(about map[string]bool, has func(c *clause) bool, times float64) (best []*clause) {
	top, holder := 0.0, -1.0
	weights := p.weigh(about)
	for _, c := range p.clauses() {
		score := c.score(weights)
		if has(c) {
			holder = max(holder, score)
		}
		if score > top+1e-9 {
			top, best = score, nil
		}
		if score > top-1e-9 {
			best = append(best, c)
		}
	}
	if holder < 0 || top < times*holder+0.5 {
		return nil
	}
	return best
}

// asClause is a text as one clause.
func (t *Text) asClause() *clause { return &clause{terms: t.terms} }

func (t *Text) countLike(q quantity) (n int) {
	for _, c := range t.clauses {
		for _, x := range c.amounts {
			if x.like(q) {
				n++
			}
		}
	}
	return n
}

func (c *clause) hasAmount(q quantity) bool { return slices.ContainsFunc(c.amounts, q.equals) }

func (t *Text) hasAmount(q quantity) bool {
	return t.anyClause(func(c *clause) bool { return c.hasAmount(q) })
}

// heldByName reports whether what a clause says of a name is said of another one in the source, on the same side of the
// words that both have.
func (p *Pair) heldByName(c *clause, about map[string]bool) bool {
	for t := range about {
		if p.isName(t) {
			delete(about, t)
		}
	}
	for i, t := range c.tokens {
		if !p.isName(t.term) {
			continue
		}
		has := func(of *clause) bool { return of.terms[t.term] }
		for _, best := range p.tellers(about, has, 3) {
			if sharedCount(about, best.terms) >= 2 && p.rivals(c, i, best) {
				return true
			}
		}
	}
	return false
}

// rivals reports whether a clause has a name that another one has not, on the side of their common words on which the
// i-th token stands there.
func (p *Pair) rivals(c *clause, i int, best *clause) bool {
	at, other := firstShared(c, best), firstShared(best, c)
	if at < 0 || other < 0 {
		return false
	}
	before := i < at
	if c.says().passive != best.says().passive {
		before = !before
	}
	for k, t := range best.tokens {
		if p.isName(t.term) && !c.terms[t.term] && (k < other) == before {
			return true
		}
	}
	return false
}

func sharedCount(some, has map[string]bool) (n int) {
	for t := range some {
		if has[t] {
			n++
		}
	}
	return n
}

// firstShared is the place of the first common word in a clause that another one has too; -1 = none.
func firstShared(c, other *clause) int {
	return slices.IndexFunc(c.tokens, func(t token) bool { return !t.name && !isNumber(t.term) && other.terms[t.term] })
}

// isName reports whether a term is a name in the claim or in the source; one at the beginning of a sentence can only be
// told elsewhere.
func (p *Pair) isName(term string) bool {
	if p.names == nil {
		p.names = map[string]bool{}
		common := map[string]bool{}
		for _, t := range slices.Concat(p.Page, p.Quote, []*Text{p.Claim}) {
			for _, c := range t.clauses {
				for _, token := range c.tokens {
					if token.name {
						p.names[token.term] = true
					}
					common[token.term] = common[token.term] || token.lower
				}
			}
		}
		maps.DeleteFunc(p.names, func(name string, _ bool) bool { return common[name] })
	}
	return p.names[term] && !isMonth(term) && !strings.ContainsAny(term, "0123456789")
}
