package claim

import "slices"

var (
	agents    = data.Set("agents")
	receivers = data.Set("receivers")
)

// longestGap is between a word that marks a role and its name, in characters.
const longestGap = 4

// roles finds, in scripts without spaces, who does something in the claim to whom it is done in the source, or the
// other way round, by the words that mark these.
var roles = Detector{Name: "roles", Why: WhyRole, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	if !p.Claim.Dense || len(c.row()) > maxSymbols {
		return false
	}
	return p.source.anyClause(func(of *clause) bool {
		return len(of.row()) <= maxSymbols && !c.opposes(of) && rolesDiffer(c.row(), of.row())
	})
})}

func rolesDiffer(ours, theirs []symbol) bool {
	runs := runsOf(ours, theirs)
	return slices.ContainsFunc(runs, func(r run) bool {
		return isName(r.in(ours)) && around(ours, r.from, r.to, runs) >= sameAround/2 && roleAt(ours, r.from)*roleAt(theirs, r.at) < 0
	})
}

// roleAt is 1 for who does something, -1 for whom it is done to, and 0 if what stands before a place does not tell.
func roleAt(text []symbol, at int) int {
	if at == 0 {
		return 1
	}
	for i := at - 1; i >= max(0, at-longestGap); i-- {
		switch s := text[i : i+1]; {
		case has(s, agents):
			return 1
		case has(s, receivers):
			return -1
		}
	}
	return 0
}
