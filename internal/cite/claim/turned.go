package claim

import "slices"

// turned finds the opposite of what the source says: a rise for a fall.
var turned = Detector{Name: "turned", Why: WhyDirection, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	if len(c.terms) < 2 || p.isConverse(c) {
		return false // "and nine against"
	}
	return p.otherSide(c, near, func(c *clause) []side { return c.says().opposite }, true) || p.otherSideOf(c)
})}

// otherSideOf is otherSide for all of the sentence of the source that has most of the claim.
func (p *Pair) otherSideOf(c *clause) bool {
	weights := p.weigh(p.Claim.terms)
	var best *Text
	top := 0.0
	for _, t := range slices.Concat(p.Quote, p.Page) {
		if score := (&clause{terms: t.terms}).score(weights); score > top {
			top, best = score, t
		}
	}
	return best != nil && slices.ContainsFunc(c.says().opposite, func(s side) bool {
		has := func(t *Text, is func(side) bool) bool {
			return t.anyClause(func(c *clause) bool { return slices.ContainsFunc(c.says().opposite, is) })
		}
		denies := func(c *clause) bool { return len(c.says().denied) > 0 }
		return !has(p.Claim, s.against) && has(best, s.against) && !has(best, s.same) && !best.anyClause(denies) && !p.Claim.anyClause(denies)
	})
}

// kinds finds one of a kind where the source has another: red for blue, most for a few.
var kinds = Detector{Name: "kinds", Why: WhyName, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	if len(near) == 0 && !p.isNew(c) {
		near = p.source.clauses
	}
	return p.otherSide(c, near, func(c *clause) []side { return c.says().kinds }, false)
})}

// bounded finds what the claim puts on the other side of a bound: before for after, over for under.
var bounded = Detector{Name: "bounded", Why: WhyDirection, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	return p.otherSide(c, nil, func(c *clause) []side { return c.says().bounds }, false)
})}

// otherSide reports whether the clauses nearest to one have another side of something that it has, and not this
// one; or, where these tell nothing, the others with the same words beside it. Where it may be denied, both or none
// must be.
func (p *Pair) otherSide(c *clause, near []*clause, of func(c *clause) []side, denied bool) bool {
	rest := slices.DeleteFunc(slices.Clone(p.source.clauses), func(n *clause) bool { return slices.Contains(near, n) })
	anywhere := func(side) bool { return true }
	for _, s := range of(c) {
		if slices.ContainsFunc(of(c), s.against) {
			continue
		}
		beside := func(x side) bool { return sharesTerm(x.beside, s.beside) }
		same, against := c.sidesOf(near, s, of, anywhere, denied)
		if !same && !against {
			same, against = c.sidesOf(rest, s, of, beside, denied)
		}
		if against && !same {
			return true
		}
	}
	return false
}

// sidesOf reports whether clauses have the same side as one, and whether they have another one where it counts.
func (c *clause) sidesOf(clauses []*clause, s side, of func(c *clause) []side, counts func(side) bool, denied bool) (same, against bool) {
	for _, n := range clauses {
		for _, x := range of(n) {
			same = same || x.same(s)
			if !x.against(s) || !counts(x) {
				continue
			}
			against = against || !denied || c.says().negated == n.says().negated || x.column == unmoved && !c.says().negated
		}
	}
	return same, against
}

// unmoved is the column of words that deny both sides: unchanged.
const unmoved = 2

func sharesTerm(a, b []string) bool {
	return slices.ContainsFunc(a, func(t string) bool { return slices.Contains(b, t) })
}
