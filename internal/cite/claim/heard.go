package claim

import (
	"slices"
	"strings"
)

var (
	hearsay = data.Rule("hearsay")
	said    = data.Rule("said")
	hedged  = data.Rule("hedged") // with capitals, which tell May from may
	hedge   = data.Rule("hedge")
)

// heard finds facts that the source tells only as a claim of somebody, or as possible.
var heard = Detector{Name: "heard", Why: WhyHearsay, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	text := strings.ToLower(p.Claim.plain)
	if len(near) == 0 || len(c.says().denied) > 0 || isUnsure(p.Claim.plain) || said.MatchString(text) || hedge.MatchString(text) {
		return false
	}
	return !slices.ContainsFunc(near, func(n *clause) bool {
		return !isUnsure(n.plain) && !(strings.HasPrefix(n.text, "that ") && isUnsure(p.source.before(n))) // "police suspect" is a clause of its own
	})
})}

func isUnsure(text string) bool {
	return hearsay.MatchString(strings.ToLower(text)) || hedged.MatchString(text)
}

// before is the text of the clause before one.
func (t *Text) before(c *clause) string {
	for i := range t.clauses {
		if t.clauses[i] == c && i > 0 {
			return t.clauses[i-1].plain
		}
	}
	return ""
}
