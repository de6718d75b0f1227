package claim

import "strings"

var (
	hearsay = data.Rule("hearsay")
	said    = data.Rule("said")
)

// heard finds what the source says only that somebody claims it.
var heard = Detector{Name: "heard", Why: WhyHearsay, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	text := strings.ToLower(p.Claim.plain)
	if len(near) == 0 || len(c.says().denied) > 0 || hearsay.MatchString(text) || said.MatchString(text) {
		return false
	}
	for _, n := range near {
		if !hearsay.MatchString(n.text) && !(strings.HasPrefix(n.text, "that ") && hearsay.MatchString(p.source.before(n))) {
			return false // "police suspect" is a clause of its own
		}
	}
	return true
})}

// before is the text of the clause before one.
func (t *Text) before(c *clause) string {
	for i := range t.clauses {
		if t.clauses[i] == c && i > 0 {
			return t.clauses[i-1].text
		}
	}
	return ""
}
