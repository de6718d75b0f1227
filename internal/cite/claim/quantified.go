package claim

var (
	universal = data.Rule("universal")
	partial   = data.Rule("partial")
	mostly    = data.Rule("mostly")
)

// quantified finds "all" where the source says "some" or a share of it, and "most" where it is less than half.
var quantified = Detector{Name: "quantified", Why: WhyNumber, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	all, most := universal.MatchString(c.text), mostly.MatchString(c.text)
	if !all && !most || len(near) == 0 {
		return false
	}
	contradicted := false
	for _, n := range near {
		share := n.ratio()
		switch {
		case universal.MatchString(n.text), most && mostly.MatchString(n.text):
			return false
		case all && (partial.MatchString(n.text) || share > 0 && share < 100), most && share > 0 && share < 50:
			contradicted = true
		}
	}
	return contradicted
})}

// ratio is the share of a whole that a clause speaks of, in percent; 0 = none.
func (c *clause) ratio() float64 {
	for _, q := range c.amounts {
		if q.unit.dim == ratio {
			return q.amount
		}
	}
	return 0
}
