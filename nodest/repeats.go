package nodest

import (
	"slices"
	"strings"

	"nodest/index"
)

// pastSearch is a search of a turn.
type pastSearch struct {
	name   string // "search 1"
	tool   string
	scope  string   // the arguments that narrow it
	terms  []string // the query in normal form
	vector []float32
	files  []string // ids of what it has found
	refs   []int    // numbers of what was shown of it
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
		if slices.Equal(b.terms, s.terms) || all > 0 && float64(both) >= sameWords*float64(all) || cosine(b.vector, s.vector) >= sameMeaning {
			return b
		}
	}
	return nil
}

// normalForm is a query as its terms, without stop words, sorted. A query of nothing but
// stop words keeps them.
func normalForm(query string) []string {
	terms := index.Terms(fillers.Replace(query))
	kept := slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return stopWords[t] })
	if len(kept) == 0 {
		kept = index.Terms(query)
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// fillers are Chinese and Japanese particles: they would be parts of bigrams.
var fillers = strings.NewReplacer("的", " ", "了", " ", "吗", " ", "呢", " ", "吧", " ", "啊", " ", "は", " ", "の", " ", "を", " ", "が", " ", "に", " ")

// stopWords are terms, that is stems.
var stopWords = func() map[string]bool {
	words := map[string]bool{}
	for _, t := range index.Terms("a an the of in on at to for from by with about and or is are was were be been do does did has have had " +
		"what which who whom whose when where why how that this these those it its i me my you your we our they their he she him her his " +
		"can could will would should may might please tell find search show 请 什么 怎么 如何 哪里 哪个 谁") {
		words[t] = true
	}
	return words
}()

// cosine of two vectors of length one; 0 if one is missing.
func cosine(a, b []float32) (sum float64) {
	if len(a) != len(b) {
		return 0
	}
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
