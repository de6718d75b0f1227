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

func distinct(terms []string) map[string]bool {
	set := make(map[string]bool, len(terms))
	for _, t := range terms {
		set[t] = true
	}
	return set
}

// share is the share of terms that has contains.
func share(terms, has map[string]bool) float64 {
	n := 0
	for t := range terms {
		if has[t] {
			n++
		}
	}
	return float64(n) / float64(max(len(terms), 1))
}
