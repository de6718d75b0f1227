package claim

import "slices"

var changes = readOpposing(data.Words("changes"))

// changed finds a number that the claim says something changed from, where the source says that it changed to it; and the
// other way round.
var changed = Detector{Name: "changed", Why: WhyDirection, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	for _, q := range c.amounts {
		role := c.changeOf(q)
		if role == 0 {
			continue
		}
		if same, other := p.hasChange(q, role), p.hasChange(q, -role); other && !same {
			return true
		}
	}
	return false
})}

func (p *Pair) hasChange(q quantity, role int) bool {
	return p.source.anyClause(func(c *clause) bool {
		return slices.ContainsFunc(c.amounts, func(x quantity) bool { return x.equals(q) && x.like(q) && c.changeOf(x) == role })
	})
}

// changeOf is 1 for the newer of two amounts, -1 for the older, and 0 if nothing before it tells.
func (c *clause) changeOf(q quantity) int {
	start := 0
	for _, x := range c.amounts {
		if x.end <= q.at {
			start = x.end
		}
	}
	sides := sidesIn(c.text[min(start, len(c.text)):min(q.at, len(c.text))], changes())
	switch {
	case len(sides) == 0:
		return 0
	case sides[len(sides)-1].column == 1:
		return 1
	}
	return -1
}
