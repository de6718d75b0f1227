package weburl

import (
	"math"

	"nodest/internal/index"
)

// The constants of BM25; texts are snippets of similar length.
const (
	saturation = 1.2
	lengthBias = 0.4
)

// lexical scores texts by the words of the question they have, from 0 to 1. Rare words count
// more. A text that repeats all words of the question comes close to 1.
func lexical(question string, texts []string) []float64 {
	frequency := make([]map[string]float64, len(texts))
	length, sum := make([]float64, len(texts)), 0.0
	having := map[string]float64{}
	for i, text := range texts {
		terms := index.Terms(text)
		length[i] = float64(len(terms))
		sum += length[i]
		frequency[i] = map[string]float64{}
		for _, t := range terms {
			if frequency[i][t]++; frequency[i][t] == 1 {
				having[t]++
			}
		}
	}
	average := max(sum/float64(len(texts)), 1)
	scores, best := make([]float64, len(texts)), 0.0
	seen := map[string]bool{}
	for _, t := range index.Terms(question) {
		if seen[t] {
			continue
		}
		seen[t] = true
		rarity := math.Log1p((float64(len(texts)) - having[t] + 0.5) / (having[t] + 0.5))
		best += rarity * (saturation + 1)
		for i := range texts {
			if f := frequency[i][t]; f > 0 {
				scores[i] += rarity * f * (saturation + 1) / (f + saturation*(1-lengthBias+lengthBias*length[i]/average))
			}
		}
	}
	for i := range scores {
		if best > 0 {
			scores[i] /= best
		}
	}
	return scores
}
