package claim

import "slices"

// A quote must share this much of a claim to say the same: a third of the words, where a detector looks for added
// ones; half of them where none does; and half of the characters of a script without spaces, which unrelated texts
// share too. Texts that say the same in other words often share no more.
const (
	minWords   = 0.3
	minSymbols = 0.5
)

// stated is the share of a claim from which the source makes the statement, so that the rest is added to it.
const stated = 0.5

// MinCoverage is the share of a claim from which a quote may say the same.
func (t *Text) MinCoverage(lenient bool) float64 {
	if t.Dense || lenient {
		return minSymbols
	}
	return minWords
}

// maxSymbols bounds the claims that are compared symbol by symbol, and 12 times as many what they are compared with.
const maxSymbols = 300

// Coverage is how much of a claim its quote says, or the title of the source, 0 to 1.
func (p *Pair) Coverage() float64 {
	p.source = join(p.Quote)
	if p.Claim.Dense {
		return cover(p.Claim.row(), slices.Concat(p.source.row(), p.titleSymbols()))
	}
	return p.share(p.Claim.terms)
}

// cover is the share of a text that stands in rows which another text has too; single characters count half.
func cover(ours, theirs []symbol) float64 {
	if len(ours) > maxSymbols || len(theirs) > 12*maxSymbols {
		return 0
	}
	covered := 0.0
	i := 0
	for _, r := range append(runsOf(ours, theirs), run{len(ours), len(ours), 0}) {
		for ; i < r.from; i++ {
			if slices.Contains(theirs, ours[i]) {
				covered += float64(weight(ours[i])) / 2
			}
		}
		covered += float64(weightOf(r.in(ours)))
		i = r.to
	}
	return covered / float64(max(weightOf(ours), 1))
}

// rowsCover is cover without single characters.
func rowsCover(ours, theirs []symbol) float64 {
	n := 0
	for _, r := range runsOf(ours, theirs) {
		n += weightOf(r.in(ours))
	}
	return float64(n) / float64(max(weightOf(ours), 1))
}

// share is the share of some terms of the claim that the source has. A number may stand there with another unit.
func (p *Pair) share(terms map[string]bool) float64 {
	n := 0
	for t := range terms {
		if p.source.terms[t] || p.Title[t] || isNumber(t) && p.hasNumber(t) {
			n++
		}
	}
	return float64(n) / float64(max(len(terms), 1))
}

func (p *Pair) hasNumber(value string) bool {
	return p.Claim.anyClause(func(c *clause) bool {
		return slices.ContainsFunc(c.amounts, func(q quantity) bool { return q.value == value && p.source.hasAmount(q) })
	})
}

// titleSymbols are the characters of the title: its terms are their pairs.
func (p *Pair) titleSymbols() (out []symbol) {
	for t := range p.Title {
		s := symbolsOf(t, nil)
		out = append(append(out, s...), '\n')
	}
	return out
}
