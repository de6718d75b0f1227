package claim

var (
	planned  = data.Rule("planned")
	done     = data.Rule("done")
	foreseen = data.Rule("foreseen")
)

// unreal finds what the claim says has been done, where the source says that it is planned.
var unreal = Detector{Name: "unreal", Why: WhyNegation, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	if !done.MatchString(c.text) || len(near) == 0 || p.Claim.anyClause(func(c *clause) bool { return planned.MatchString(c.text) }) {
		return false
	}
	for _, n := range near {
		if !planned.MatchString(foreseen.ReplaceAllString(n.text, " ")) || done.MatchString(n.text) {
			return false
		}
	}
	return true
})}
