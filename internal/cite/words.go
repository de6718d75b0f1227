package cite

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/cite/claim"
	"nodest/internal/cite/script"
)

// Ranked is a document with its score.
type Ranked struct {
	Index int     `json:"index"`
	Score float64 `json:"relevance_score"`
}

// JaccardRank sorts the documents by the share of words that they and the query have in
// common, of all words of both: 0 to 1. Dense scripts are compared by pairs of characters.
func JaccardRank(query string, documents []string) []Ranked {
	x := newOverlap(len(documents), words)
	for _, d := range documents {
		x.add(d)
	}
	scores := x.scores(query)
	ranked := make([]Ranked, len(documents))
	for i, s := range scores {
		ranked[i] = Ranked{i, s}
	}
	slices.SortStableFunc(ranked, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return ranked
}

// overlap compares texts by the terms they share.
type overlap struct {
	terms  func(string) []string
	posted map[string][]int32 // by term: the documents that have it
	sizes  []int              // by document: how many terms it has
}

func newOverlap(documents int, terms func(string) []string) *overlap {
	return &overlap{terms, make(map[string][]int32, 8*documents), make([]int, 0, documents)}
}

func (x *overlap) add(document string) {
	terms := claim.Distinct(x.terms(document))
	for t := range terms {
		x.posted[t] = append(x.posted[t], int32(len(x.sizes)))
	}
	x.sizes = append(x.sizes, len(terms))
}

// scores returns the similarity of query to each document.
func (x *overlap) scores(query string) []float64 {
	shared := make([]int, len(x.sizes))
	terms := claim.Distinct(x.terms(query))
	for t := range terms {
		for _, doc := range x.posted[t] {
			shared[doc]++
		}
	}
	scores := make([]float64, len(shared))
	for i, s := range shared {
		if s > 0 {
			scores[i] = float64(s) / float64(len(terms)+x.sizes[i]-s)
		}
	}
	return scores
}

// words returns the words of text in lower case, and the pairs of neighbouring characters of
// dense scripts; a lone one is a word.
func words(text string) []string {
	text = strings.ToLower(text)
	out := make([]string, 0, len(text)/6)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case script.IsDense(r):
			end := script.RunOf(text, i, script.IsDense)
			for lone := i+n == end; i < end; i += n {
				_, n = utf8.DecodeRuneInString(text[i:])
				_, next := utf8.DecodeRuneInString(text[i+n : end])
				if next > 0 || lone {
					out = append(out, text[i:i+n+next])
				}
			}
		case script.IsWord(r):
			end := script.RunOf(text, i, script.IsWord)
			out = append(out, text[i:end])
			i = end
		default:
			i += n
		}
	}
	return out
}
