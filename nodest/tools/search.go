package tools

import (
	"slices"

	"nodest/internal/cite"
	"nodest/internal/index"
)

type pastSearch struct {
	name    string // "search 1"
	tool    string
	scope   string   // the arguments that narrow it
	terms   []string // the query in normal form
	vector  []float32
	files   []string // ids of what it has found
	refs    []int    // numbers of what was shown of it
	problem string   // why it failed; "" = it did not
}

// Two queries are the same from these on.
const (
	sameWords   = 0.8  // Jaccard index of their terms
	sameMeaning = 0.97 // cosine of their vectors
)

// repeats returns the search that s repeats, nil if it is new.
func (s *pastSearch) repeats(before []*pastSearch) *pastSearch {
	for _, b := range before {
		if b.tool != s.tool || b.scope != s.scope {
			continue
		}
		both, all := index.Overlap(b.terms, s.terms)
		if slices.Equal(b.terms, s.terms) || all > 0 && float64(both) >= sameWords*float64(all) || cite.Cosine(b.vector, s.vector) >= sameMeaning {
			return b
		}
	}
	return nil
}
