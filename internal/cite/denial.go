package cite

import (
	"slices"
	"strings"
)

var thoughts = data.Set("thoughts")

// deniesOnce reports whether just one of two clauses denies what both speak of.
func deniesOnce(c *clause, near []*clause, e *reading) bool {
	switch {
	case len(near) == 0:
		return false
	case unsays(c, near):
		return true
	case len(c.denied) == 0:
		return !c.absent && deniedOf(c, near, e)
	}
	return !isDeniedToo(c, near, e)
}

// deniedOf reports whether a source denies what a clause says.
func deniedOf(c *clause, near []*clause, e *reading) bool {
	affirmed := func(head string) bool {
		return slices.ContainsFunc(near, func(n *clause) bool { return len(n.denied) == 0 && n.terms[head] })
	}
	for _, n := range near {
		for _, d := range n.denied {
			if head := d.sharedHead(c); head != "" && !affirmed(head) {
				return true
			}
		}
	}
	for i := range e.clauses {
		for _, d := range e.clauses[i].denied {
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

// isDeniedToo reports whether a source denies what a clause denies, or says so in other words.
func isDeniedToo(c *clause, near []*clause, e *reading) bool {
	for i := range e.clauses {
		for _, found := range e.clauses[i].denied {
			if slices.ContainsFunc(c.denied, func(d denial) bool { return d.shares(found) }) {
				return true
			}
		}
	}
	if slices.ContainsFunc(c.denied, func(d denial) bool { return len(d.scope) > 0 && thoughts()[d.scope[0]] }) {
		near = nil
		for i := range e.clauses {
			near = append(near, &e.clauses[i])
		}
	}
	if slices.ContainsFunc(c.denied, func(d denial) bool { return d.isAffirmed(near) }) {
		return false
	}
	if slices.ContainsFunc(near, func(n *clause) bool { return len(n.denied) > 0 || n.absent || n.lessened || len(n.negates) > 0 }) {
		return true
	}
	return slices.ContainsFunc(c.denied, func(d denial) bool { return d.hasOpposite(e) })
}

// isAffirmed reports whether a source says without a negation what is denied.
func (d denial) isAffirmed(near []*clause) bool {
	return len(d.scope) > 0 && slices.ContainsFunc(near, func(n *clause) bool {
		return n.terms[d.scope[0]] && len(n.denied) == 0 && !n.absent
	})
}

// hasOpposite reports whether a source denies something with the same word, or has the opposite of what is
// denied.
func (d denial) hasOpposite(e *reading) bool {
	return e.terms[stemOf(d.word)] || slices.ContainsFunc(d.scope, func(t string) bool {
		return slices.ContainsFunc(opposites().of[t], func(s side) bool { return hasSide(e, s.rank, !s.second) })
	})
}

// affirms reports whether a reading has a term in a clause that denies nothing.
func (r *reading) affirms(term string) bool {
	return slices.ContainsFunc(r.clauses, func(c clause) bool { return c.terms[term] && len(c.denied) == 0 })
}

// unsays reports whether just one of a clause and those nearest to it has a word with "un" before it.
func unsays(c *clause, near []*clause) bool {
	for _, n := range near {
		says := func(a, b *clause) bool {
			return slices.ContainsFunc(a.negates, func(t string) bool { return b.terms[t] && len(a.denied) == len(b.denied) })
		}
		if says(c, n) || says(n, c) {
			return true
		}
	}
	return false
}

// sharedHead returns the term of a clause that a negation denies; "" if the clause speaks of
// something else. In dense scripts the first character tells, together with another pair.
func (d denial) sharedHead(c *clause) string {
	if len(d.scope) == 0 {
		return ""
	}
	head := d.scope[0]
	if c.terms[head] {
		return head
	}
	r := []rune(head)
	if !isDense(r[0]) || !strings.ContainsRune(c.text, r[0]) {
		return ""
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
