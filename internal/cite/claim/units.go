package claim

// units finds a number that has another unit wherever it stands in the source. Numbers that are not there at all
// are lacking facts.
var units = Detector{Name: "units", Why: WhyNumber, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	for _, q := range c.amounts {
		others, same := 0, false
		for _, of := range p.source.clauses {
			for _, found := range of.amounts {
				switch {
				case found.equals(q):
					same = true
				case found.value == q.value:
					others++
				}
			}
		}
		if others > 0 && !same {
			return true
		}
	}
	return false
})}
