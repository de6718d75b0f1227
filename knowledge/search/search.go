package search

import (
	"cmp"
	"context"
	"slices"

	"nodest/fault"
)

// Modes of a search.
const (
	Hybrid  = "hybrid"
	Lexical = "lexical"
	Vector  = "vector"
)

// File is a file to search.
type File struct {
	ID      string
	Segment *Segment // nil = not found by words
	Vectors *Vectors // nil = not found by vectors
}

// The bounds of a search.
const (
	longestQuestion = 8000 // code points that are used
	mostWordings    = 8    // further ones that are used
	DefaultTopK     = 15
	MostTopK        = 100
	reranked        = 30 // chunks whose texts are looked at
)

// Query is a question. The zero value of everything but Text is usable.
type Query struct {
	Text   string    // at most 8,000 code points are used
	More   []string  // further wordings, at most 8; they only add
	Vector []float32 // of Text, in the space of the files' vectors; nil = words only
	Mode   string    // "" = Hybrid
	TopK   int       // chunks, 1 to 100; 0 = 15

	// VectorWeight is how much vectors count beside words; 0 = 1. Vectors that know the spelling
	// of words only, and not their meaning, have SpellingWeight.
	VectorWeight float64
	// MinSimilarity drops hits that only their vector found and whose cosine is below; 0 = off.
	MinSimilarity float64
	// PerFile bounds the chunks of one file unless fewer than three files match; 0 = no bound.
	PerFile int
	// Texts returns the texts of chunks in the order of refs: the best 30 are then ordered by
	// what their texts say, and equal ones are dropped; nil = no reranking. An error leaves the
	// order as it was.
	Texts func(ctx context.Context, refs []Ref) ([]Passage, error)
}

// Ref names a chunk by its file's place in the list that was searched, and its index.
type Ref struct{ File, Chunk int }

// Passage is the text of a chunk.
type Passage struct{ Name, Heading, Context, Text string }

// Hit is a chunk that was found.
type Hit struct {
	Ref
	Similarity float64 // cosine; of a search by words BM25 divided by the best of the query
	Lexical    int     // rank by words, from 1; 0 = not found by words
	Vector     int     // likewise by vectors
}

// FileHit is a file that was found. Its relevance, from 0 to 1, comes from its best chunk, as
// reranked, and from the mean of its best three, or of all if it has fewer.
type FileHit struct {
	File      int
	Relevance float64
}

// Result is what was found, best first.
type Result struct {
	Hits      []Hit
	Files     []FileHit // of which Hits has a chunk
	Dropped   int       // hits below MinSimilarity
	Truncated bool      // the question was longer than what is used
	Degraded  []string  // what failed: "rerank"
}

// Search ranks the chunks of files. The same input gives the same result.
//
// It fails when ctx ends, and with Invalid for an unknown mode, or for a search by vectors
// without one.
func Search(ctx context.Context, files []File, q Query) (*Result, error) {
	q.TopK = min(max(cmp.Or(q.TopK, DefaultTopK), 1), MostTopK)
	q.Mode = cmp.Or(q.Mode, Hybrid)
	q.VectorWeight = cmp.Or(q.VectorWeight, 1)
	r := &Result{}
	q.Text, r.Truncated = shortened(q.Text)
	s := &searching{files: files, q: &q, result: r, at: map[Ref]*candidate{}}
	switch q.Mode {
	case Hybrid, Lexical:
	case Vector:
		if q.Vector == nil {
			return nil, fault.New(fault.Invalid, "mode: a search by vectors needs an embedding model")
		}
	default:
		return nil, fault.New(fault.Invalid, "mode must be one of hybrid, lexical, vector")
	}
	if err := s.legs(ctx); err != nil {
		return nil, err
	}
	s.fuse()
	s.distinct()
	if err := s.rerank(ctx); err != nil {
		return nil, err
	}
	s.collect()
	return r, nil
}

// shortened cuts a question that is too long.
func shortened(text string) (string, bool) {
	n := 0
	for i := range text {
		if n == longestQuestion {
			return text[:i], true
		}
		n++
	}
	return text, false
}

// searching is one search.
type searching struct {
	files   []File
	q       *Query
	result  *Result
	words   []*wording // the question first
	byWords *leg       // of the question
	more    []*leg     // of further wordings
	byVec   *leg
	list    []*candidate // best first, once fused
	at      map[Ref]*candidate
}

// candidate is a chunk that may be a hit.
type candidate struct {
	Ref
	words, cosine float32 // 0 = not by that leg
	lexical       int     // ranks
	vector        int
	further       int     // best rank by a further wording
	score         float64 // 0 to 1; by the ranks of the legs, then by the text
	similarity    float64
	reranked      bool
	repeats       bool // shares text with a better one
}

// leg is what one way of searching finds.
type leg struct {
	top  []scored
	best [][3]float32 // of each file; its best three scores
}

// legs searches by words and by vectors.
func (s *searching) legs(ctx context.Context) (err error) {
	depth := max(50, 3*s.q.TopK)
	if s.q.Mode != Vector {
		for i, text := range append([]string{s.q.Text}, s.q.More[:min(len(s.q.More), mostWordings)]...) {
			text, _ = shortened(text)
			w := newWording(text)
			l, err := byWords(ctx, s.files, w, depth)
			if err != nil {
				return err
			}
			s.words = append(s.words, w)
			if i == 0 {
				s.byWords = l
			} else {
				s.more = append(s.more, l)
			}
		}
	}
	if s.q.Mode != Lexical && s.q.Vector != nil {
		if s.byVec, err = byVectors(ctx, s.files, s.q.Vector, depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *searching) candidate(ref Ref) *candidate {
	c := s.at[ref]
	if c == nil {
		c = &candidate{Ref: ref}
		s.at[ref] = c
		s.list = append(s.list, c)
	}
	return c
}

// before is the order of equal scores, which does not depend on the order of the files.
func (s *searching) before(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.cosine, a.cosine),
		cmp.Compare(s.files[a.File].ID, s.files[b.File].ID), cmp.Compare(a.File, b.File), cmp.Compare(a.Chunk, b.Chunk))
}

func (s *searching) sort() { slices.SortFunc(s.list, s.before) }

// collect turns the best candidates into the result.
func (s *searching) collect() {
	perFile, best := map[int]int{}, map[int]*candidate{}
	for _, c := range s.list {
		if best[c.File] == nil {
			best[c.File] = c
		}
	}
	for _, c := range s.list {
		if len(s.result.Hits) == s.q.TopK {
			break
		}
		if s.q.PerFile > 0 && len(best) >= 3 && perFile[c.File] >= s.q.PerFile {
			continue
		}
		perFile[c.File]++
		s.result.Hits = append(s.result.Hits, Hit{c.Ref, c.similarity, c.lexical, c.vector})
	}
	for f := range perFile {
		s.result.Files = append(s.result.Files, FileHit{f, s.relevance(f, best[f])})
	}
	slices.SortFunc(s.result.Files, func(a, b FileHit) int {
		return cmp.Or(cmp.Compare(b.Relevance, a.Relevance), s.before(best[a.File], best[b.File]))
	})
}
