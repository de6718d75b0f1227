package claim

import (
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/index"
)

// Bounds of the search for exchanged parts.
const (
	maxSwapTokens = 40
	maxSwapMiddle = 6
)

// swapped finds two parts of a sentence in each other's place: x verb y where the source says y verb x.
var swapped = Detector{Name: "swapped", Why: WhyRole, Find: func(p *Pair) (string, bool) {
	return "", swaps(p.Claim, p.source, len(p.Quote) > 1) || slices.ContainsFunc(p.Quote, func(t *Text) bool { return swaps(p.Claim, t, false) }) || swapsDense(p.Claim, p.source) || p.swapsSides() || p.swapsCompared()
}}

// swapsCompared reports whether the claim has the two sides of a "than" of the source the other way round, with the same
// comparative.
func (p *Pair) swapsCompared() bool {
	return p.Claim.anyClause(func(c *clause) bool {
		return p.source.anyClause(func(of *clause) bool { same, turned := c.comparesWith(of); return same && turned })
	})
}

// isConverse reports whether a clause of the source compares the same from the other side, with another comparative.
func (p *Pair) isConverse(c *clause) bool {
	return p.source.anyClause(func(of *clause) bool { same, turned := c.comparesWith(of); return !same && turned })
}

// comparesWith reports whether two clauses with "than" have the same comparative, and whether the things compared have
// changed places.
func (c *clause) comparesWith(of *clause) (same, turned bool) {
	ours, ok := c.compared()
	theirs, too := of.compared()
	moved := func(some, to, from map[string]bool) bool {
		for t := range some {
			if to[t] && !from[t] {
				return true
			}
		}
		return false
	}
	return ours.word == theirs.word, ok && too && moved(ours.before, theirs.behind, theirs.before) && moved(ours.behind, theirs.before, theirs.behind)
}

// comparison is a clause with "than": the words before and behind it, and the comparative, also "less" and "fewer".
type comparison struct {
	word           string
	before, behind map[string]bool
}

func (c *clause) compared() (k comparison, ok bool) {
	first, second, ok := strings.Cut(c.text, " than ")
	words := strings.Fields(first)
	if !ok || len(words) == 0 {
		return k, false
	}
	k.word = strings.Join(words[max(0, len(words)-2):], " ")
	if before := words[max(0, len(words)-2)]; before != "less" && before != "fewer" {
		k.word = words[len(words)-1]
	}
	k.before, k.behind = Distinct(index.Terms(first)), Distinct(index.Terms(second))
	return k, true
}

// swapsSides reports whether names before a word stand behind it in the source, and those behind it before; or, where
// only one of both is in the passive, on the same sides.
func (p *Pair) swapsSides() bool {
	for i := range p.Claim.clauses {
		for _, verb := range p.Claim.clauses[i].tokens {
			if verb.name || isNumber(verb.term) || !p.source.terms[verb.term] || p.isName(verb.term) {
				continue
			}
			before, behind, voice := p.sides(p.Claim, verb.term)
			if len(before) == 0 || len(behind) == 0 {
				continue
			}
			for _, t := range p.Quote {
				a, b, other := p.sides(t, verb.term)
				if voice != other {
					a, b = b, a
				}
				if meets(before, b) && meets(behind, a) && !meets(before, a) && !meets(behind, b) {
					return true
				}
			}
		}
	}
	return false
}

func meets(some, others []string) bool {
	return slices.ContainsFunc(some, func(s string) bool { return slices.Contains(others, s) })
}

// sides returns the names of a sentence before and behind a word, and whether it is in the passive.
func (p *Pair) sides(t *Text, word string) (before, behind []string, passive bool) {
	found := false
	for _, c := range t.clauses {
		for _, token := range c.tokens {
			switch {
			case token.term == word:
				found, passive = true, c.says().passive
			case p.isName(token.term) && !found:
				before = append(before, token.term)
			case p.isName(token.term):
				behind = append(behind, token.term)
			}
		}
	}
	if !found {
		return nil, nil, false
	}
	return before, behind, passive
}

// placedTerm is a term and the clause that it stands in.
type placedTerm struct {
	term   string
	clause int
}

// sequence returns the terms of a reading that another one has too, in their order.
func sequence(r *Text, shared map[string]bool, most int) (out []placedTerm) {
	for i, c := range r.clauses {
		for _, t := range c.tokens {
			first, _ := utf8.DecodeRuneInString(t.term)
			if shared[t.term] && !script.IsDense(first) && len(out) < most {
				out = append(out, placedTerm{t.term, i})
			}
		}
	}
	return out
}

// passiveWithin reports whether the clauses of a part of a sequence are in the passive.
func (t *Text) passiveWithin(part []placedTerm) bool {
	for i := part[0].clause; i <= part[len(part)-1].clause; i++ {
		if t.clauses[i].says().passive {
			return true
		}
	}
	return false
}

// positions returns where a row of terms stands in a sequence.
func positions(in []placedTerm, row ...[]placedTerm) (at []int) {
	all := slices.Concat(row...)
	for i := 0; i+len(all) <= len(in); i++ {
		if slices.EqualFunc(in[i:i+len(all)], all, func(a, b placedTerm) bool { return a.term == b.term }) {
			at = append(at, i)
		}
	}
	return at
}

// exchange looks for two parts of a claim in each other's place in a source: x verb y where the source says y verb x. A passive
// turns the order around.
type exchange struct {
	claim, source *Text
	ours, theirs  []placedTerm       // those in common, in their order
	next          map[[2]string]bool // pairs of neighbours of the source
	distinct      bool               // only names and numbers change places: other words do so from sentence to sentence
}

func swaps(claim, source *Text, distinct bool) bool {
	e := exchange{
		claim, source, sequence(claim, source.terms, maxSwapTokens), sequence(source, claim.terms, 3*maxSwapTokens), map[[2]string]bool{}, distinct,
	}
	for i := range len(e.theirs) - 1 {
		e.next[[2]string{e.theirs[i].term, e.theirs[i+1].term}] = true
	}
	for from := 1; from < len(e.ours); from++ { // the middle
		for to := from + 1; to < min(len(e.ours), from+maxSwapMiddle+1) && (to == from+1 || e.follows(to-2, to-1)); to++ {
			if e.around(from, to) {
				return true
			}
		}
	}
	return false
}

// follows reports whether a term of the claim follows another one in the source.
func (e *exchange) follows(a, b int) bool { return e.next[[2]string{e.ours[a].term, e.ours[b].term}] }

// around reports whether up to three terms before a middle of the claim have changed places with some behind it.
func (e *exchange) around(from, to int) bool {
	for x := 1; x <= min(3, from); x++ {
		if e.distinct && !e.areNames(e.ours[from-x:from]) && !isNumber(e.ours[from-1].term) {
			continue
		}
		for y := 1; y <= 3 && to+y <= len(e.ours); y++ {
			turned := e.follows(to+y-1, from) && e.follows(to-1, from-x)
			same := e.follows(from-1, from) && e.follows(to-1, to) && to == from+1
			if (turned || same) && e.exchanged(e.ours[from-x:from], e.ours[from:to], e.ours[to:to+y]) {
				return true
			}
		}
	}
	return false
}

// exchanged reports whether two parts of the claim, and not what stands between them, have changed places.
func (e *exchange) exchanged(first, middle, second []placedTerm) bool {
	if !e.areAlike(first, second) {
		return false
	}
	same, other := positions(e.theirs, first, middle, second), positions(e.theirs, second, middle, first)
	if len(same) == 0 == (len(other) == 0) {
		return false
	}
	begin := slices.Concat(same, other)[0] + len(first)
	if len(same) == 0 {
		begin += len(second) - len(first)
	}
	if ours, ok := e.claim.clauses[middle[0].clause].compared(); ok { // "less" is no exchange of "more"
		if theirs, too := e.source.clauses[e.theirs[begin].clause].compared(); !too || ours.word != theirs.word {
			return false
		}
	}
	if e.claim.passiveWithin(middle) != e.source.passiveWithin(e.theirs[begin:begin+len(middle)]) {
		return len(same) > 0 && len(middle) == 1 && e.areNames(first) && e.areNames(second) && !e.areNames(middle)
	}
	return len(other) > 0
}

// areAlike reports whether two parts may change places: both are names or neither is, both are numbers or neither is, and
// they share no term.
func (e *exchange) areAlike(first, second []placedTerm) bool {
	names := e.areNames(first)
	if !names && e.claim.subordinates(first[0].clause, second[len(second)-1].clause) {
		return false
	}
	return isNumber(first[0].term) == isNumber(second[0].term) && names == e.areNames(second) && !slices.ContainsFunc(first, func(t placedTerm) bool {
		return slices.ContainsFunc(second, func(o placedTerm) bool { return t.term == o.term })
	})
}

// subordinates reports whether a part of a text goes over clauses of which one begins with a word such as "since": these may stand
// before what they belong to, or behind it.
func (t *Text) subordinates(from, to int) bool {
	for _, c := range t.clauses[from : to+1] {
		word, _, _ := strings.Cut(strings.TrimSpace(c.text), " ")
		if from < to && breaks()[word] && !joins()[word] {
			return true
		}
	}
	return false
}

var joins = data.Set("joins")

// areNames reports whether all terms are names in the claim or the source; a name at the beginning of a sentence is not
// recognised there.
func (e *exchange) areNames(terms []placedTerm) bool {
	return !slices.ContainsFunc(terms, func(t placedTerm) bool { return !e.claim.isName(t.term) && !e.source.isName(t.term) })
}

func (t *Text) isName(term string) bool {
	return slices.ContainsFunc(t.clauses, func(c *clause) bool {
		return slices.ContainsFunc(c.tokens, func(w token) bool { return w.name && w.term == term })
	})
}
