package bench

import (
	"cmp"
	"math"
	"slices"

	"nodest/internal/index"
)

// bm25 is the baseline that the memory of a chat is compared with: plain BM25 over
// the same lines, English words by their stems and without stop words, Chinese ones
// as pairs of characters. It has neither a floor nor a budget.
type bm25 struct {
	lines  []string
	counts []map[string]float64
	length []float64
	mean   float64
	in     map[string]float64 // lines by term
}

const (
	bm25K     = 1.2
	bm25B     = 0.75
	bm25Limit = 10
)

func newBM25(lines []string) *bm25 {
	b := &bm25{lines: lines, in: map[string]float64{}}
	for _, line := range lines {
		counts, terms := map[string]float64{}, index.Terms(line)
		for _, t := range terms {
			if counts[t]++; counts[t] == 1 {
				b.in[t]++
			}
		}
		b.counts = append(b.counts, counts)
		b.length = append(b.length, float64(len(terms)))
		b.mean += float64(len(terms)) / float64(len(lines))
	}
	return b
}

// top returns at most limit lines with a score above zero, the best first.
func (b *bm25) top(question string, limit int) []string {
	scores := make([]float64, len(b.lines))
	for _, t := range index.Terms(question) {
		idf := math.Log(1 + (float64(len(b.lines))-b.in[t]+0.5)/(b.in[t]+0.5))
		for i, counts := range b.counts {
			if n := counts[t]; n > 0 {
				scores[i] += idf * n * (bm25K + 1) / (n + bm25K*(1-bm25B+bm25B*b.length[i]/b.mean))
			}
		}
	}
	var best []int
	for i, score := range scores {
		if score > 0 {
			best = append(best, i)
		}
	}
	slices.SortStableFunc(best, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	var top []string
	for _, i := range best[:min(limit, len(best))] {
		top = append(top, b.lines[i])
	}
	return top
}
