package recall

import (
	"math"
	"slices"

	"nodest/internal/index"
)

// A cosine means nothing by itself: those of one model lie between 0.7 and 0.9, those of another one
// around 0. What it means in a memory is told by a sample of all cosines of the question there: most
// texts have nothing to do with a question. A row stands out if its cosine is higher than the best of all
// rows would be by chance; with vectors that mean nothing that happens to one question in 200.
// For a prompt the model then has a say in the order as well, and else none.
const (
	sampled      = 256   // rows of a sample
	leastVectors = 8     // with fewer there is nothing to stand out from
	byChance     = 0.005 // how likely the best of all rows is to stand out by chance
	leastStand   = 0.06  // how far above the middle it is at least
	looseStand   = 3     // spreads above the middle from which on a search, which shows what fits best, takes a row
	relatedFrom  = 4     // spreads above the middle, by the lower half, from which on a row is no chance
	fewSpread    = 0.05  // spread where there are too few vectors to measure it
)

// yardstick tells what the cosines of a question mean.
type yardstick struct {
	base float32 // cosine with a text that has nothing to do with it
	mark float32 // from here on a row stands out
}

// yardstick makes that of a memory of which the nearest rows are found.
func (r *ranking) yardstick(sample index.Sample, found []index.Near) yardstick {
	top, last := found[0].Cosine, found[len(found)-1].Cosine
	n := len(sample.Cosines)
	switch {
	case n < leastVectors && r.q.gated():
		return yardstick{top, float32(math.Inf(1))}
	case n < leastVectors:
		base := min(max(0, last), top/2)
		return yardstick{base, base + looseStand*fewSpread}
	}
	middle, spread, n := chance(sample.Cosines)
	stand := float32(looseStand)
	if r.q.gated() {
		stand = standing(sample.Of, n)
	}
	return yardstick{middle, middle + max(leastStand, stand*spread)}
}

// chance returns the mean and the spread of the cosines that are chance, and how many they are.
func chance(cosines []float32) (mean, spread float32, n int) {
	slices.Sort(cosines)
	half := len(cosines) / 2
	middle := float64(cosines[half])
	deviation := func(of []float32, from float64) float64 {
		var square float64
		for _, c := range of {
			square += (float64(c) - from) * (float64(c) - from)
		}
		return math.Sqrt(square / float64(len(of)))
	}
	most := middle + relatedFrom*deviation(cosines[:half], middle)
	n = len(cosines)
	for n > half+1 && float64(cosines[n-1]) > most {
		n--
	}
	var sum float64
	for _, c := range cosines[:n] {
		sum += float64(c)
	}
	sum /= float64(n)
	return float32(sum), float32(deviation(cosines[:n], sum)), n
}

// standing is how many spreads the best of so many rows stands out if the spread is that of a sample: the
// quantile of the normal distribution, and by how much Student's is wider (Cornish and Fisher).
func standing(rows, sample int) float32 {
	z := math.Sqrt2 * math.Erfcinv(2*byChance/float64(max(1, rows)))
	return float32(z + (z*z*z+z)/(4*float64(sample-1)))
}

// measureVectors scores the neighbours by the model from 0 to 1, and notes from which score on they stand out.
func (r *ranking) measureVectors(near neighbours) {
	c := r.columns
	c.vector.reset(r.v.Slots())
	c.whole, c.standsOutFrom = c.whole && near.whole, 0
	if len(near.rows) == 0 {
		return
	}
	y, top := r.yardstick(near.sample, near.rows), near.rows[0].Cosine
	if r.q.gated() && top < y.mark {
		return
	}
	width := max(top, y.mark) - y.base
	r.cosineBase, c.standsOutFrom = y.base, (y.mark-y.base)/width
	for _, f := range near.rows {
		if f.Cosine > y.base {
			c.vector.put(f.Row, (f.Cosine-y.base)/width)
		}
	}
}

// measureSpelling scores the neighbours by spelling from 0, the last one that is considered, to 1.
func (r *ranking) measureSpelling(near neighbours) {
	c := r.columns
	c.spell.reset(r.v.Slots())
	c.whole = c.whole && near.whole
	found := near.rows
	if len(found) == 0 {
		return
	}
	top, last := found[0].Cosine, max(0, found[len(found)-1].Cosine)
	if len(found) < vectorHits { // all of them: the last one is not a mark
		last = min(last, top/2)
	}
	for _, f := range found {
		if top > last {
			c.spell.put(f.Row, max(0, f.Cosine-last)/(top-last))
		}
	}
}

// standsOut reports whether the model finds row i nearer than chance would.
func (r *ranking) standsOut(i int) bool {
	return r.columns.standsOutFrom > 0 && r.columns.vector.of[i] >= r.columns.standsOutFrom
}
