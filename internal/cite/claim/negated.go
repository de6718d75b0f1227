package claim

import (
	"slices"
	"strings"

	"nodest/internal/cite/script"
)

// negated finds a denial of what the source says, and the other way round.
var negated = Detector{Name: "negated", Why: WhyNegation, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	return len(near) > 0 && len(c.says().denied) == 0 && !c.says().absent && deniedOf(c, near, p.source)
})}

// silent finds what a claim denies, and the source says near the same words without a denial. It does not say the opposite
// in so many words, so it may be denied elsewhere.
var silent = Detector{Name: "silent", Why: WhyNegation, Weak: true, Find: anyClause(func(p *Pair, c *clause, near []*clause) bool {
	affirmed := false
	for _, d := range c.says().denied {
		if p.source.anyClause(func(n *clause) bool { return slices.ContainsFunc(n.says().denied, d.shares) }) {
			return false
		}
		where := near
		if len(d.scope) > 0 && thoughts()[d.scope[0]] {
			where = p.source.clauses
		}
		affirmed = affirmed || d.isAffirmed(where)
	}
	return affirmed
})}

// deniedOf reports whether a source denies what a clause says.
func deniedOf(c *clause, near []*clause, e *Text) bool {
	affirmed := func(head string) bool {
		return slices.ContainsFunc(near, func(n *clause) bool { return len(n.says().denied) == 0 && n.terms[head] })
	}
	for _, n := range near {
		for _, d := range n.says().denied {
			if head := d.sharedHead(c); head != "" && !affirmed(head) {
				return true
			}
		}
	}
	for i := range e.clauses {
		for _, d := range e.clauses[i].says().denied {
			if len(d.scope) == 0 || !c.terms[d.scope[0]] {
				continue
			}
			if d.all || !e.affirms(d.scope[0]) || len(d.scope) > 1 && c.terms[d.scope[1]] && !affirmed(d.scope[0]) {
				return true
			}
		}
	}
	return false
}

// isAffirmed reports whether a source says without a negation what is denied.
func (d denial) isAffirmed(near []*clause) bool {
	return len(d.scope) > 0 && slices.ContainsFunc(near, func(n *clause) bool {
		return n.terms[d.scope[0]] && len(n.says().denied) == 0 && !n.says().absent
	})
}

// affirms reports whether a Text has a term in a clause that denies nothing.
func (t *Text) affirms(term string) bool {
	return slices.ContainsFunc(t.clauses, func(c *clause) bool { return c.terms[term] && len(c.says().denied) == 0 })
}

// sharedHead returns the term of a clause that a negation denies; "" if the clause speaks of
// something else. In dense scripts its characters tell, together with another pair or beside other characters.
func (d denial) sharedHead(c *clause) string {
	if len(d.scope) == 0 {
		return ""
	}
	head := d.scope[0]
	r := []rune(head)
	switch {
	case c.terms[head]:
		return head
	case !script.IsDense(r[0]) || !strings.ContainsRune(c.text, r[0]):
		return ""
	case len(r) > 1 && strings.ContainsRune(c.text, r[1]):
		return head
	}
	for _, t := range d.scope[1:] {
		if c.terms[t] {
			return t
		}
	}
	return ""
}

func (d denial) shares(other denial) bool {
	return slices.ContainsFunc(d.scope, func(t string) bool { return slices.Contains(other.scope, t) })
}
