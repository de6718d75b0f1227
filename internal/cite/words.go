package cite

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	ids    map[string]int32
	posted [][]int32 // by term: the documents that have it
	sizes  []int     // by document: how many terms it has
	seen   []int32   // by term: the last text that had it, from 1
	texts  int32
}

func newOverlap(documents int, terms func(string) []string) *overlap {
	return &overlap{terms: terms, ids: make(map[string]int32, 8*documents), sizes: make([]int, 0, documents)}
}

// each calls do once per distinct term of text; id is -1 if no document has the term.
func (x *overlap) each(text string, add bool, do func(id int32)) {
	x.texts++
	var unknown map[string]bool
	for _, t := range x.terms(text) {
		id, ok := x.ids[t]
		switch {
		case !ok && !add:
			if unknown == nil {
				unknown = map[string]bool{}
			}
			if !unknown[t] {
				unknown[t] = true
				do(-1)
			}
			continue
		case !ok:
			id = int32(len(x.posted))
			x.ids[t] = id
			x.posted, x.seen = append(x.posted, nil), append(x.seen, 0)
		}
		if x.seen[id] != x.texts {
			x.seen[id] = x.texts
			do(id)
		}
	}
}

func (x *overlap) add(document string) {
	n, doc := 0, int32(len(x.sizes))
	x.each(document, true, func(id int32) {
		x.posted[id] = append(x.posted[id], doc)
		n++
	})
	x.sizes = append(x.sizes, n)
}

// scores returns the similarity of query to each document.
func (x *overlap) scores(query string) []float64 {
	shared := make([]int32, len(x.sizes))
	n := 0
	x.each(query, false, func(id int32) {
		n++
		if id >= 0 {
			for _, doc := range x.posted[id] {
				shared[doc]++
			}
		}
	})
	scores := make([]float64, len(shared))
	for i, s := range shared {
		if s > 0 {
			scores[i] = float64(s) / float64(n+x.sizes[i]-int(s))
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
		case isDense(r):
			end := runOf(text, i, isDense)
			for lone := i+n == end; i < end; i += n {
				_, n = utf8.DecodeRuneInString(text[i:])
				_, next := utf8.DecodeRuneInString(text[i+n : end])
				if next > 0 || lone {
					out = append(out, text[i:i+n+next])
				}
			}
		case isWord(r):
			end := runOf(text, i, isWord)
			out = append(out, text[i:end])
			i = end
		default:
			i += n
		}
	}
	return out
}

func runOf(text string, from int, is func(rune) bool) int {
	if i := strings.IndexFunc(text[from:], func(r rune) bool { return !is(r) }); i >= 0 {
		return from + i
	}
	return len(text)
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)) && !isDense(r)
}
