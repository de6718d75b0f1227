package cite

import (
	"cmp"
	"slices"
	"strings"
)

// The codes of a Reason: why a source does not support a sentence.
const (
	WhyNothing   = "nothing"   // no source says anything like it, or not this part of it
	WhyNumber    = "number"    // a number, date or unit is another one
	WhyName      = "name"      // a name is another one
	WhyNegation  = "negation"  // one of both says not
	WhyDirection = "direction" // up and down, before and after, more and less are exchanged
	WhyRole      = "role"      // who did it to whom, or which value belongs to which, is exchanged
	WhyHearsay   = "hearsay"   // the source only says that somebody claims it
)

// conflict returns the code of the first contradiction between a sentence and the sentences of a
// source that speak of the same, or "". It is silent if the source does not say the opposite, but only
// not what the sentence denies.
func conflict(claim *reading, quote []*reading) (code string, silent bool) {
	e := join(quote)
	for i := range claim.clauses {
		c := &claim.clauses[i]
		near := e.nearest(c)
		switch {
		case wrongUnit(c, e):
			return WhyNumber, false
		case deniesOnce(c, near, e):
			return WhyNegation, len(c.denied) > 0
		case turns(c, near, e) || moves(c, near) || passesBound(c, e) || changesBack(c, e):
			return WhyDirection, false
		case takesOver(claim, c, e), mixes(c, e):
			return WhyRole, false
		case otherKind(claim, c, near, e):
			return WhyName, false
		case onlyHeard(claim, c, near, e):
			return WhyHearsay, false
		}
	}
	switch {
	case swaps(claim, e), otherSlot(claim, e), standsIn(claim, quote), swapsDense(claim.text, e.text):
		return WhyRole, false
	case otherPerson(claim.text, e.text), otherPlace(claim.text, e.text), otherCharacter(claim.text, e.text):
		return WhyName, false
	}
	return "", false
}

// join makes one reading of neighbouring sentences.
func join(sentences []*reading) *reading {
	if len(sentences) == 1 {
		return sentences[0]
	}
	all := &reading{terms: map[string]bool{}, title: sentences[0].title}
	for _, r := range sentences {
		all.text += r.text + "\n"
		all.clauses = append(all.clauses, r.clauses...)
		for t := range r.terms {
			all.terms[t] = true
		}
	}
	return all
}

// nearest returns the clauses that have most of the terms of a clause.
func (r *reading) nearest(c *clause) (near []*clause) {
	shares := make([]float64, len(r.clauses))
	top := 0.0
	for i := range r.clauses {
		shares[i] = share(c.terms, r.clauses[i].terms)
		top = max(top, shares[i])
	}
	for i, s := range shares {
		if s > 0 && s >= 0.75*top {
			near = append(near, &r.clauses[i])
		}
	}
	return near
}

// wrongUnit reports whether an amount has another unit wherever its number stands.
func wrongUnit(c *clause, e *reading) bool {
	for _, q := range c.amounts {
		others, same := 0, false
		for _, of := range e.clauses {
			for _, found := range of.amounts {
				if found.value != q.value {
					continue
				}
				if q.unit < 0 || found.unit < 0 || found.unit == q.unit || found.dense != q.dense {
					same = true
				} else {
					others++
				}
			}
		}
		if others > 0 && !same {
			return true
		}
	}
	return false
}

func hasSide(e *reading, rank int, second bool) bool {
	return slices.ContainsFunc(e.clauses, func(c clause) bool { return c.has(rank, second) })
}

func (c *clause) has(rank int, second bool) bool {
	return slices.ContainsFunc(c.opposite, func(s side) bool { return s.rank == rank && s.second == second })
}

// hasBeside reports whether a clause has one of two opposites with the same terms beside it.
func (c *clause) hasBeside(s side) bool {
	return slices.ContainsFunc(c.opposite, func(found side) bool {
		return found.rank == s.rank && slices.ContainsFunc(found.beside, func(t string) bool { return slices.Contains(s.beside, t) })
	})
}

// turns reports whether a clause says the opposite of those nearest to it.
func turns(c *clause, near []*clause, e *reading) bool {
	for _, s := range c.opposite {
		if c.has(s.rank, !s.second) {
			continue
		}
		against := false
		for i := range e.clauses {
			n := &e.clauses[i]
			if !slices.Contains(near, n) && !n.hasBeside(s) {
				continue
			}
			if n.has(s.rank, s.second) {
				against = false
				break
			}
			against = against || n.has(s.rank, !s.second) && c.negated == n.negated
		}
		if against {
			return true
		}
	}
	return false
}

// passesBound reports whether a clause puts something on the other side of a bound.
func passesBound(c *clause, e *reading) bool {
	for _, s := range c.bounds {
		against, same := false, false
		for _, of := range e.clauses {
			for _, found := range of.bounds {
				switch {
				case found.rank != s.rank:
				case found.second == s.second:
					same = true
				case slices.ContainsFunc(s.beside, func(t string) bool { return slices.Contains(found.beside, t) }):
					against = true
				}
			}
		}
		if against && !same {
			return true
		}
	}
	return false
}

// changesBack reports whether a clause tells a change of a number the other way round.
func changesBack(c *clause, e *reading) bool {
	from, to := changeIn(c)
	if from == "" && to == "" {
		return false
	}
	for i := range e.clauses {
		was, is := changeIn(&e.clauses[i])
		if i > 0 {
			before, after := changeIn(&e.clauses[i-1])
			was, is = cmp.Or(was, before), cmp.Or(is, after)
		}
		if cmp.Or(from, is) == is && cmp.Or(to, was) == was && is+was != "" && (from != "" && is != "" || to != "" && was != "") {
			return true
		}
	}
	return false
}

// changeIn returns the older and the newer value of a number that changes; "" if it is not told.
func changeIn(c *clause) (from, to string) {
	if len(c.amounts) == 0 {
		return "", ""
	}
	for i, q := range c.amounts {
		start := 0
		if i > 0 {
			start = c.amounts[i-1].end
		}
		sides := sidesIn(c.text[start:q.at], changes())
		if len(sides) == 0 {
			continue
		}
		if last := sides[len(sides)-1]; last.second {
			to = q.value
		} else {
			from = q.value
		}
	}
	return from, to
}

// onlyHeard reports whether the source says of a clause only that somebody claims it.
func onlyHeard(claim *reading, c *clause, near []*clause, e *reading) bool {
	if len(near) == 0 || hearsay.MatchString(strings.ToLower(claim.text)) || said.MatchString(strings.ToLower(claim.text)) || len(c.denied) > 0 {
		return false
	}
	for i := range e.clauses {
		n := &e.clauses[i]
		if !slices.Contains(near, n) {
			continue
		}
		reported := hearsay.MatchString(n.text)
		if !reported && i > 0 && strings.HasPrefix(n.text, "that ") { // "police suspect" is a clause of its own
			reported = hearsay.MatchString(e.clauses[i-1].text)
		}
		if !reported {
			return false
		}
	}
	return true
}

// otherKind reports whether a clause has one of a kind where the source has another: red for blue.
func otherKind(claim *reading, c *clause, near []*clause, e *reading) bool {
	for _, m := range c.kinds {
		if e.hasKind(func(x member) bool { return x == m }) {
			continue
		}
		for _, n := range near {
			if slices.ContainsFunc(n.kinds, func(x member) bool {
				return x.kind == m.kind && x.number != m.number && !claim.hasKind(func(y member) bool { return x == y })
			}) {
				return true
			}
		}
	}
	return false
}

func (r *reading) hasKind(is func(member) bool) bool {
	return slices.ContainsFunc(r.clauses, func(c clause) bool { return slices.ContainsFunc(c.kinds, is) })
}

var (
	unchanged = data.Rule("unchanged")
	movements = data.Words("movements")
)

// moves reports whether a clause says that something went up or down that did not change in the source.
func moves(c *clause, near []*clause) bool {
	if len(near) == 0 || len(c.denied) > 0 || !slices.ContainsFunc(near, func(n *clause) bool { return unchanged.MatchString(n.text) }) {
		return false
	}
	moving := func(of *clause) bool {
		return slices.ContainsFunc(movements(), func(w string) bool {
			return slices.ContainsFunc(opposites().of[w], func(s side) bool { return of.has(s.rank, s.second) })
		})
	}
	return moving(c) && !slices.ContainsFunc(near, func(n *clause) bool { return !unchanged.MatchString(n.text) && moving(n) })
}
