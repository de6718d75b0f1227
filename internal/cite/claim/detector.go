package claim

import (
	"slices"
	"strings"
	"unicode"
)

// The codes of a finding: why a source does not support a sentence.
const (
	WhyNothing   = "nothing"   // no source says anything like it, or not this part of it
	WhyNumber    = "number"    // a number, date or unit is another one
	WhyName      = "name"      // a name is another one
	WhyNegation  = "negation"  // one of both says not
	WhyDirection = "direction" // up and down, before and after, more and less are exchanged
	WhyRole      = "role"      // who did it to whom, or which value belongs to which, is exchanged
	WhyHearsay   = "hearsay"   // the source only says that somebody claims it
)

// Pair is a claim beside the sentences of a source that may support it.
type Pair struct {
	Claim *Text
	Quote []*Text
	Title map[string]bool // terms of what the source is about
	Page  []*Text         // sentences of the source that have something of the claim

	// Lenient leaves out detectors that are Strict: a reply of a character says more than its sources.
	Lenient bool

	source *Text // the quote as one
	near   map[*clause][]*clause
	all    []*clause
	names  map[string]bool // by their terms; nil = not looked for yet
}

// A Detector finds one kind of contradiction.
type Detector struct {
	Name   string
	Why    string // a code
	Weak   bool   // the source does not say the opposite: it may be said elsewhere
	Strict bool   // for texts that say nothing but what their sources do
	// Find returns what contradicts the source, "" if nothing can be named, and whether something does.
	Find func(p *Pair) (what string, found bool)
}

// Detectors are all detectors, in the order in which they are asked.
var Detectors = []Detector{negated, silent, turned, bounded, kinds, quantified, heard, unreal, held, posted, slotted, renamed, swapped, added}

// Finding is what contradicts a claim.
type Finding struct {
	Detector
	What string
}

// Contradiction asks the detectors, and returns what the first one finds; nil if the source does not contradict the
// claim.
func (p *Pair) Contradiction() *Finding {
	p.source = join(p.Quote)
	verbatim := p.isVerbatim()
	for _, d := range Detectors {
		if d.Strict && p.Lenient || verbatim && (d.Why == WhyRole || d.Why == WhyName) {
			continue
		}
		if what, found := d.Find(p); found {
			return &Finding{d, what}
		}
	}
	return nil
}

// isVerbatim reports whether the source has the claim letter by letter. Then nothing in it has changed places, though a
// sentence of the source before or behind it may have the same words in another order.
func (p *Pair) isVerbatim() bool {
	claim := letters(p.Claim.plain)
	return claim != "" && strings.Contains(letters(p.source.plain), claim)
}

// letters is a text in lower case, with its letters and digits alone.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// anyClause makes a detector of a rule for a clause and the clauses of the quote that say most of it.
func anyClause(contradicts func(p *Pair, c *clause, near []*clause) bool) func(p *Pair) (string, bool) {
	return func(p *Pair) (string, bool) {
		for i := range p.Claim.clauses {
			c := p.Claim.clauses[i]
			if contradicts(p, c, p.nearest(c)) {
				return strings.TrimSpace(c.text), true
			}
		}
		return "", false
	}
}

// nearest returns the clauses of the quote that have most of the terms of a clause; rare ones count more.
func (p *Pair) nearest(c *clause) (near []*clause) {
	if found, ok := p.near[c]; ok {
		return found
	}
	all := p.source.clauses
	weights := p.weigh(c.terms)
	scores, top := make([]float64, len(all)), 0.0
	for i, of := range all {
		scores[i] = of.score(weights)
		top = max(top, scores[i])
	}
	for i, score := range scores {
		if score > 0 && score >= 0.75*top {
			near = append(near, all[i])
		}
	}
	if p.near == nil {
		p.near = map[*clause][]*clause{}
	}
	p.near[c] = near
	return near
}

// weigh gives each of some terms its weight: the fewer clauses of the source have it, the more.
func (p *Pair) weigh(terms map[string]bool) map[string]float64 {
	weights := make(map[string]float64, len(terms))
	for t := range terms {
		n := 0
		for _, c := range p.clauses() {
			if c.terms[t] {
				n++
			}
		}
		weights[t] = 1 / float64(max(n, 1))
	}
	return weights
}

// score is the weight of the terms that a clause has.
func (c *clause) score(weights map[string]float64) (score float64) {
	for t, weight := range weights {
		if c.terms[t] {
			score += weight
		}
	}
	return score
}

// clauses are those of the page that have something of the claim, and of the quote.
func (p *Pair) clauses() []*clause {
	if p.all == nil {
		seen := map[*Text]bool{}
		for _, t := range slices.Concat(p.Quote, p.Page) {
			if !seen[t] {
				seen[t] = true
				p.all = append(p.all, t.clauses...)
			}
		}
	}
	return p.all
}

func (t *Text) anyClause(is func(c *clause) bool) bool {
	return slices.ContainsFunc(t.clauses, func(c *clause) bool { return is(c) })
}
