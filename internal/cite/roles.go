package cite

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"nodest/internal/index"
)

// Bounds of the search for exchanged parts.
const (
	maxSwapTokens = 40
	maxSwapMiddle = 6
	maxSwapGap    = 3  // characters, where the exchanged parts stand
	maxInnerGap   = 15 // likewise, between others
)

// takesOver reports whether a number of a clause belongs to something else in the source: to
// what a neighbouring clause, with a number of its own, does not speak of.
func takesOver(claim *reading, c *clause, e *reading) bool {
	for _, q := range c.amounts {
		of := e.clausesWith(q.value)
		if len(of) != 1 {
			continue
		}
		about := c.terms
		if len(claim.numbersLike(q)) == 1 {
			about = claim.terms
		}
		own := of[0]
		for i := range e.clauses {
			other := &e.clauses[i]
			if other == own || !slices.ContainsFunc(other.amounts, func(x quantity) bool { return x.like(q) && !claim.hasNumber(x.value) }) {
				continue
			}
			if belongsElsewhere(about, own, other, e.title, q.unit >= 0) {
				return true
			}
		}
	}
	return false
}

// belongsElsewhere compares what only one of two clauses has with what a sentence is about. Without a
// unit, two amounts may be of other kinds, so more must be in common.
func belongsElsewhere(about map[string]bool, own, other *clause, title map[string]bool, unit bool) bool {
	mine, theirs := own.only(other, title, true), other.only(own, title, true)
	if len(mine) > 0 && len(theirs) > 0 {
		return share(mine, about) == 0 && share(theirs, about) > 0
	}
	mine, theirs = own.only(other, title, false), other.only(own, title, false)
	if len(mine) == 0 || len(theirs) == 0 {
		return false
	}
	known, least := share(theirs, about), 1.0
	if hasDense(own.text) || !unit { // pairs of characters say less than words
		least = 2
	}
	return known*float64(len(theirs)) > least-0.5 && known > share(mine, about)+0.15
}

// only returns the terms, or the names, that another clause has not, without those of the title.
func (c *clause) only(other *clause, title map[string]bool, names bool) map[string]bool {
	terms := map[string]bool{}
	for _, t := range c.tokens {
		if !other.terms[t.term] && !title[t.term] && !isNumber(t.term) && (t.name || !names) {
			terms[t.term] = true
		}
	}
	return terms
}

func (r *reading) clausesWith(number string) (of []*clause) {
	for i := range r.clauses {
		if slices.ContainsFunc(r.clauses[i].amounts, func(q quantity) bool { return q.value == number }) {
			of = append(of, &r.clauses[i])
		}
	}
	return of
}

func (r *reading) numbersLike(q quantity) (like []quantity) {
	for _, c := range r.clauses {
		for _, x := range c.amounts {
			if x.like(q) {
				like = append(like, x)
			}
		}
	}
	return like
}

func (r *reading) hasNumber(value string) bool { return len(r.clausesWith(value)) > 0 }

// like reports whether two amounts are of one kind.
func (q quantity) like(other quantity) bool {
	if q.unit >= 0 && other.unit >= 0 && q.dense == other.dense {
		return q.unit == other.unit
	}
	return q.isYear() == other.isYear()
}

func (q quantity) isYear() bool {
	return len(q.value) == 4 && !q.counts && (q.value[0] == '1' || q.value[0] == '2') && !strings.Contains(q.value, ".")
}

// placedTerm is a term and the clause that it stands in.
type placedTerm struct {
	term   string
	clause int
}

// sequence returns the terms of a reading that another one has too, in their order.
func sequence(r *reading, shared map[string]bool, most int) (out []placedTerm) {
	for i, c := range r.clauses {
		for _, t := range c.tokens {
			first, _ := utf8.DecodeRuneInString(t.term)
			if shared[t.term] && !isDense(first) && len(out) < most {
				out = append(out, placedTerm{t.term, i})
			}
		}
	}
	return out
}

// passiveWithin reports whether the clauses of a part of a sequence are in the passive.
func (r *reading) passiveWithin(part []placedTerm) bool {
	for i := part[0].clause; i <= part[len(part)-1].clause; i++ {
		if r.clauses[i].isPassive() {
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

// swaps reports whether two parts of a sentence stand on each other's place in the source: x verb y
// where the source says y verb x. A passive turns the order around.
func swaps(claim, e *reading) bool {
	ours := sequence(claim, e.terms, maxSwapTokens)
	theirs := sequence(e, claim.terms, 3*maxSwapTokens)
	next := map[[2]string]bool{} // pairs of neighbours of the source
	for i := range len(theirs) - 1 {
		next[[2]string{theirs[i].term, theirs[i+1].term}] = true
	}
	follows := func(a, b int) bool { return next[[2]string{ours[a].term, ours[b].term}] }
	for from := 1; from < len(ours); from++ { // the middle
		for to := from + 1; to < min(len(ours), from+maxSwapMiddle+1) && (to == from+1 || follows(to-2, to-1)); to++ {
			for x := 1; x <= min(3, from); x++ {
				for y := 1; y <= 3 && to+y <= len(ours); y++ {
					turned := follows(to+y-1, from) && follows(to-1, from-x)
					same := follows(from-1, from) && follows(to-1, to) && to == from+1
					if (turned || same) && exchanged(claim, e, ours[from-x:to+y], theirs, x, to-from) {
						return true
					}
				}
			}
		}
	}
	return false
}

// exchanged is swaps for a part of the sentence whose first x terms may be exchanged with those behind the m
// in its middle.
func exchanged(claim, e *reading, part, theirs []placedTerm, x, m int) bool {
	first, middle, second := part[:x], part[x:x+m], part[x+m:]
	if isNumber(first[0].term) != isNumber(second[0].term) || slices.ContainsFunc(first, func(t placedTerm) bool {
		return slices.ContainsFunc(second, func(o placedTerm) bool { return t.term == o.term })
	}) {
		return false
	}
	same, other := positions(theirs, part), positions(theirs, second, middle, first)
	if len(same) == 0 == (len(other) == 0) {
		return false
	}
	begin := slices.Concat(same, other)[0] + x
	if len(same) == 0 {
		begin += len(second) - x
	}
	if claim.passiveWithin(middle) != e.passiveWithin(theirs[begin:begin+m]) {
		return len(same) > 0 && m == 1 && isNames(first, claim, e) && isNames(second, claim, e) && !isNames(middle, claim, e)
	}
	return len(other) > 0
}

// otherSlot reports whether a name stands in a sentence between two words between which the source has
// another name, and the name elsewhere.
func otherSlot(claim, e *reading) bool {
	ours := sequence(claim, e.terms, maxSwapTokens)
	theirs := sequence(e, claim.terms, 3*maxSwapTokens)
	for i := 1; i+1 < len(ours); i++ {
		for n := 1; n <= 2 && i+n < len(ours); n++ {
			slot := ours[i-1 : i+n+1]
			if isNames(slot[1:n+1], claim, e) && tellsPlace(slot[0], claim, e) && tellsPlace(slot[n+1], claim, e) &&
				len(positions(theirs, slot)) == 0 && taken(claim, e, slot, theirs) {
				return true
			}
		}
	}
	return false
}

// tellsPlace reports whether a term beside a name tells which name it is: other names, numbers and units do not.
func tellsPlace(t placedTerm, claim, e *reading) bool {
	return !isNumber(t.term) && !isUnit(t.term) && !isNames([]placedTerm{t}, claim, e)
}

// taken reports whether another name stands in a source where the slot has one.
func taken(claim, e *reading, slot, theirs []placedTerm) bool {
	name := slot[1 : len(slot)-1]
	for k := 1; k+1 < len(theirs); k++ {
		if theirs[k-1].term != slot[0].term {
			continue
		}
		for m := 1; m <= 3 && k+m < len(theirs); m++ {
			other := theirs[k : k+m]
			if theirs[k+m].term == slot[len(slot)-1].term && isNames(other, claim, e) && len(positions(other, name)) == 0 &&
				claim.passiveWithin(name) == e.passiveWithin(other) {
				return true
			}
		}
	}
	return false
}

// isUnit reports whether a term is that of a unit.
func isUnit(term string) bool { return unitTerms()[term] }

var unitTerms = sync.OnceValue(func() map[string]bool {
	terms := map[string]bool{}
	for name := range unitRanks() {
		for _, t := range index.Terms(name) {
			terms[t] = true
		}
	}
	return terms
})

func isNumber(term string) bool {
	r, _ := utf8.DecodeRuneInString(term)
	return isDigit(r)
}

// isNames reports whether all of some terms are names in one of two readings; a name at the
// beginning of a sentence cannot be told there.
func isNames(terms []placedTerm, in ...*reading) bool {
	return !slices.ContainsFunc(terms, func(t placedTerm) bool {
		return !slices.ContainsFunc(in, func(r *reading) bool { return r.isName(t.term) })
	})
}

func (r *reading) isName(term string) bool {
	return slices.ContainsFunc(r.clauses, func(c clause) bool {
		return slices.ContainsFunc(c.tokens, func(t token) bool { return t.name && t.term == term })
	})
}

// standsIn reports whether a sentence says of one person what its source says of another: the
// word behind a name (before it, in the passive) stands in the source only with other names, which the
// sentence does not have.
func standsIn(claim *reading, quote []*reading) bool {
	e := join(quote)
	for i := range claim.clauses {
		c := &claim.clauses[i]
		voice := c.isPassive()
		for j := range len(c.tokens) - 1 {
			name, word := c.tokens[j], c.tokens[j+1]
			if voice {
				name, word = word, name
				for k := j; k > 0 && isNumber(word.term); k-- {
					word = c.tokens[k-1]
				}
			}
			if !name.name && !e.isName(name.term) || word.name || e.isName(word.term) || isNumber(word.term) || !e.terms[name.term] || !e.terms[word.term] {
				continue
			}
			if !e.tells(c, name.term, word.term) && othersOnly(claim, quote, name.term, word.term, voice) {
				return true
			}
		}
	}
	return false
}

// tells reports whether a clause of the source has a name together with a word of another clause, other
// than the one that is in question: "Ida taught music, Lotte mathematics".
func (r *reading) tells(c *clause, name, but string) bool {
	return slices.ContainsFunc(r.clauses, func(of clause) bool {
		return of.terms[name] && slices.ContainsFunc(c.tokens, func(t token) bool {
			return t.term != but && t.term != name && !r.isName(t.term) && of.terms[t.term]
		})
	})
}

// othersOnly reports whether a word stands in the source with other names only: behind them, or in the
// passive before them.
func othersOnly(claim *reading, quote []*reading, name, word string, voice bool) bool {
	others := 0
	for _, r := range quote {
		if !r.terms[word] {
			continue
		}
		all := join(quote)
		for i := range r.clauses {
			c := &r.clauses[i]
			if !c.terms[word] {
				continue
			}
			if c.isPassive() != voice {
				return false
			}
			who := r.nameBefore(i, word, all)
			if voice {
				who = r.nameAfter(i, word, all)
			}
			if who == "" || who == name || claim.terms[who] {
				return false
			}
			others++
		}
	}
	return others > 0
}

// nameBefore returns the last name before a word of a clause, also of the clauses before it.
func (r *reading) nameBefore(i int, word string, all *reading) (name string) {
	for k := 0; k <= i; k++ {
		for _, t := range r.clauses[k].tokens {
			if k == i && t.term == word {
				return name
			}
			if t.name || all.isName(t.term) {
				name = t.term
			}
		}
	}
	return name
}

// nameAfter returns the first name behind a word of a clause, in that clause.
func (r *reading) nameAfter(i int, word string, all *reading) string {
	behind := false
	for _, t := range r.clauses[i].tokens {
		if behind && (t.name || all.isName(t.term)) {
			return t.term
		}
		behind = behind || t.term == word
	}
	return ""
}

// mixes reports whether a clause says of one of two opposites what the source says of the other: "walls in the new
// wing cracked", where those in the old one did.
func mixes(c *clause, e *reading) bool {
	least := 2
	if hasDense(c.text) {
		least = 3
	}
	for _, s := range c.opposite {
		if c.has(s.rank, !s.second) {
			continue
		}
		for i := range e.clauses {
			for k := range e.clauses {
				same, other := &e.clauses[i], &e.clauses[k]
				if !same.hasOnly(s.rank, s.second) || !other.hasOnly(s.rank, !s.second) {
					continue
				}
				own := func(t string) bool { return c.terms[t] && !isSide(t, s) }
				taken := count(other.only(same, e.title, false), own)
				if taken >= least && taken > count(same.only(other, e.title, false), own) {
					return true
				}
			}
		}
	}
	return false
}

func (c *clause) hasOnly(rank int, second bool) bool {
	return c.has(rank, second) && !c.has(rank, !second)
}

func count(terms map[string]bool, is func(string) bool) (n int) {
	for t := range terms {
		if is(t) {
			n++
		}
	}
	return n
}

// isSide reports whether a term is one of two opposites.
func isSide(term string, s side) bool {
	return slices.ContainsFunc(opposites().of[term], func(x side) bool { return x.rank == s.rank })
}
