package claim

import (
	"slices"

	"nodest/internal/cite/script"
)

var (
	surnames     = data.Set("surnames")
	pronouns     = data.Set("pronouns")
	contrasts    = data.Set("contrasts")
	only         = data.Set("only")
	institutions = data.Set("institutions")
	prepositions = data.Set("prepositions")
)

// Bounds of what stands in a slot, by weight, and of the share of the rest that must be the same.
const (
	minSlot    = 2
	maxSlot    = 10
	shortSlot  = 6
	maxCommon  = 0.4 // share of the source's words in it that the claim has too
	sameAround = 0.6
	mostAround = 0.7 // where the source does not have what is in the slot
	minAround  = 3
)

// slotted finds, in scripts without spaces, something that stands in the claim where the source has something else, with the same words
// around it: 信号系统由中晟集团提供 where it was 华讯科技. The source speaks of it elsewhere, or both are names.
var slotted = Detector{Name: "slotted", Why: WhyName, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	if !p.Claim.Dense || weightOf(c.row()) <= minSlot || len(c.row()) > maxSymbols {
		return false
	}
	for _, t := range p.Quote {
		for i, of := range t.clauses {
			if p.slotsDiffer(c, of.row(), 0, of, t) {
				return true
			}
			if i > 0 {
				before := t.clauses[i-1].row()
				if p.slotsDiffer(c, slices.Concat(before, of.row()), len(before), of, t) {
					return true
				}
			}
		}
	}
	return false
})}

// slot is a part of a clause, and what the source has in its place.
type slot struct {
	ours, theirs []symbol
	alike        bool    // both are objects, with the same particles before them
	around       float64 // the share of what stands around it that the source has
}

// slotsDiffer compares a clause with one of a sentence; or with it and the one before it, if something that they have in common
// goes over the border of both.
func (p *Pair) slotsDiffer(c *clause, theirs []symbol, border int, of *clause, t *Text) bool {
	if len(theirs) == 0 || len(theirs) > maxSymbols {
		return false
	}
	runs := runsOf(c.row(), theirs)
	if border > 0 && !slices.ContainsFunc(runs, func(r run) bool { return r.at < border && r.at+r.to-r.from > border }) {
		return false
	}
	for i := 0; i <= len(runs); i++ {
		s, ok := slotAt(c.row(), theirs, runs, i)
		if ok && s.around >= sameAround && (p.isExcluded(c, s, theirs) || p.isContrast(c, s, theirs, of, t)) {
			return true
		}
	}
	return false
}

// slotAt is the slot before the i-th of the rows that two texts have in common, or behind the last one.
func slotAt(ours, theirs []symbol, runs []run, i int) (s slot, ok bool) {
	from, to, begin, end := 0, len(ours), 0, len(theirs)
	if i > 0 {
		from, begin = runs[i-1].to, runs[i-1].at+runs[i-1].to-runs[i-1].from
	}
	if i < len(runs) {
		to = runs[i].from
		if end = indexOf(theirs, runs[i].in(ours), begin); end < 0 {
			return s, false
		}
	}
	s.alike = (to == len(ours) || has(ours[max(0, from-1):min(from+1, to)], prepositions)) && samePrefix(ours[from:to], theirs[begin:end])
	for to > from && end > begin && ours[to-1] == theirs[end-1] {
		to, end = to-1, end-1
	}
	s.ours, s.theirs, s.around = trimParticles(ours[from:to]), trimParticles(theirs[begin:end]), around(ours, from, to, runs)
	return s, isSlot(s.ours) && isSlot(s.theirs) && !hasNumber(s.ours) && !isAllNumbers(s.theirs) && s.isOther(ours, from)
}

// isOther reports whether the claim has little of the source's slot, or, where both are names, has it before the slot.
func (s slot) isOther(ours []symbol, from int) bool {
	return cover(s.theirs, ours) <= maxCommon || isName(s.ours) && isName(s.theirs) && indexOf(ours[:from], s.theirs, 0) >= 0
}

// around is the share of the symbols outside of a slot that are in runs; 0 if these are few.
func around(ours []symbol, from, to int, runs []run) float64 {
	n, all := 0, weightOf(ours)-weightOf(ours[from:to])
	for _, r := range runs {
		n += weightOf(r.in(ours))
	}
	if n == 0 || n < minAround && n < all {
		return 0
	}
	return float64(n) / float64(all)
}

// isExcluded reports whether what is in a slot cannot be there: the source has something else only, or at the place of an object.
func (p *Pair) isExcluded(c *clause, s slot, theirs []symbol) bool {
	if shareSymbol(s.ours, s.theirs) {
		return false // words for the same often have a character in common
	}
	object := s.alike && s.around >= mostAround && weightOf(c.row())-weightOf(s.ours) > minAround
	return has(theirs, only) && !has(c.row(), only) || object && p.isOther(s.ours, s.theirs)
}

// isContrast reports whether the source speaks of what is in a slot in another clause, that has less of the claim, and sets
// both apart: in one sentence, by a word such as "while", or by names.
func (p *Pair) isContrast(c *clause, s slot, theirs []symbol, at *clause, t *Text) bool {
	names := isName(s.ours) && isName(s.theirs)
	apart := names || has(theirs, contrasts) && !shareSymbol(s.ours, s.theirs)
	rest := without(c.row(), s.ours)
	holds := func(of *clause) bool {
		return of != at && indexOf(of.row(), s.ours, 0) >= 0 && 2*cover(rest, of.row()) <= cover(rest, theirs)
	}
	return slices.ContainsFunc(slices.Concat(p.Quote, p.Page), func(of *Text) bool { return (of == t || apart) && of.anyClause(holds) })
}

// samePrefix reports whether two texts begin with the same particle, or none.
func samePrefix(a, b []symbol) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	return a[0] == b[0] || !isParticle(a[0]) && !isParticle(b[0])
}

func (p *Pair) isElsewhere(row []symbol) bool {
	return slices.ContainsFunc(slices.Concat(p.Page, p.Quote), func(t *Text) bool { return indexOf(t.row(), row, 0) >= 0 })
}

// isOther reports whether two texts are short, and the source does not have the first one.
func (p *Pair) isOther(ours, theirs []symbol) bool {
	return weightOf(ours) <= shortSlot && weightOf(theirs) <= shortSlot && !isWordSymbol(ours[0]) && !isWordSymbol(theirs[0]) && !p.isElsewhere(ours)
}

// isAllNumbers reports whether a text says nothing but numbers and what they count.
func isAllNumbers(text []symbol) bool {
	rest := slices.DeleteFunc(slices.Clone(text), func(s symbol) bool { return isNumberSymbol(s) || measures()[string(s)] })
	return weightOf(rest) < minSlot
}

func isSlot(text []symbol) bool {
	n := weightOf(text)
	return n >= minSlot && n <= maxSlot && !has(text[:1], pronouns)
}

// has reports whether a text has one of some characters.
func has(text []symbol, some func() map[string]bool) bool {
	return slices.ContainsFunc(text, func(s symbol) bool { return !isWordSymbol(s) && some()[string(s)] })
}

func shareSymbol(a, b []symbol) bool {
	return slices.ContainsFunc(a, func(s symbol) bool { return !isParticle(s) && slices.Contains(b, s) })
}

func without(text, part []symbol) []symbol {
	at := indexOf(text, part, 0)
	return slices.Concat(text[:at], []symbol{'\n'}, text[at+len(part):])
}

// isName reports whether a text of a dense script may be a Chinese name, or ends with one, or with a word for an institution.
func isName(text []symbol) bool {
	n := len(text)
	if n < 2 || !script.IsDense(text[0]) || isWordSymbol(text[n-1]) {
		return false
	}
	for k := 2; k <= min(n, 3); k++ {
		if has(text[n-k:n-k+1], surnames) || institutions()[string(text[n-k:])] {
			return true
		}
	}
	return n <= 4 && has(text[:1], surnames) || n > 2 && has(text[n-1:], institutions)
}
