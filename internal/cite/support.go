package cite

const (
	minSupport      = 0.55 // cosine
	minWordsSupport = 0.5  // share of the terms of a sentence that its source has
	minContained    = 0.8  // likewise, where there are vectors
)

// contained is the score of a source that has a share of the terms of a sentence: most of
// them say as much as vectors, which are far apart for a short sentence and a long one.
func contained(share float64) float64 {
	if share < minContained {
		return 0
	}
	return share
}
