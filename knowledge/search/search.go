package search

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/feedback"
	"nodest/internal/index"
)

// Modes of a search.
const (
	Hybrid  = "hybrid"
	Lexical = "lexical"
	Vector  = "vector"
)

// Library has the files of a search. They may need more memory than there is, so a search reads
// them group by group, some of them several times, and holds one group at a time. Files are
// named by their places. It is used by one search, and not concurrently.
type Library interface {
	// IDs names all files.
	IDs() []string
	// Segments calls do with groups of the files, in their order, until it returns an error,
	// which it returns; nil = the file is not found by words. A file has the same segment each
	// time, or none.
	Segments(ctx context.Context, files []int, do func(files []int, segments []*Segment) error) error
	// Vectors does it with vectors; nil = the file is not found by vectors.
	Vectors(ctx context.Context, files []int, do func(files []int, vectors []*Vectors) error) error
}

// Files is a Library in memory.
type Files []File

// File is a file to search.
type File struct {
	ID      string
	Segment *Segment // nil = not found by words
	Vectors *Vectors // nil = not found by vectors
}

// IDs names all files.
func (f Files) IDs() []string {
	ids := make([]string, len(f))
	for i := range f {
		ids[i] = f[i].ID
	}
	return ids
}

// Segments calls do once.
func (f Files) Segments(_ context.Context, files []int, do func(files []int, segments []*Segment) error) error {
	segments := make([]*Segment, len(files))
	for i, file := range files {
		segments[i] = f[file].Segment
	}
	return do(files, segments)
}

// Vectors calls do once.
func (f Files) Vectors(_ context.Context, files []int, do func(files []int, vectors []*Vectors) error) error {
	vectors := make([]*Vectors, len(files))
	for i, file := range files {
		vectors[i] = f[file].Vectors
	}
	return do(files, vectors)
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
	Vector []float32 // vector of Text, in the space of the files' vectors; nil = words only
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
	// Known returns what evaluations say of the best 30 chunks, in the order of refs; nil = nothing.
	Known func(ctx context.Context, refs []Ref) ([]Known, error)
}

// Known is what evaluations say of a chunk.
type Known struct {
	Factor float64 // multiplies its score
	Judged bool    // there are any; of a chunk that was never shown there are none
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
	Factor     float64 // from Query.Known
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
	Files     []FileHit // those with a chunk in Hits
	Dropped   int       // hits below MinSimilarity
	Truncated bool      // the question was longer than what is used
	Degraded  []string  // steps that failed: "rerank"
}

// Search ranks the chunks of all files of a library. The same input gives the same result, in
// whichever groups the library gives its files.
//
// It fails when ctx ends or the library fails, never with a part of the result, and with Invalid
// for an unknown mode, or for a search by vectors without one.
func Search(ctx context.Context, lib Library, q Query) (*Result, error) {
	q.TopK = min(max(cmp.Or(q.TopK, DefaultTopK), 1), MostTopK)
	q.Mode = cmp.Or(q.Mode, Hybrid)
	q.VectorWeight = cmp.Or(q.VectorWeight, 1)
	r := &Result{}
	q.Text, r.Truncated = shortened(q.Text)
	s := &searching{lib: lib, ids: lib.IDs(), q: &q, result: r, at: map[Ref]*candidate{}}
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
	if err := s.outline(ctx); err != nil {
		return nil, err
	}
	s.distinct()
	if err := s.rerank(ctx); err != nil {
		return nil, err
	}
	if err := s.weigh(ctx); err != nil {
		return nil, err
	}
	s.collect()
	return r, nil
}

// explored gives a share of the places, the last ones, to chunks that were found and never evaluated, if
// there are evaluations. perFile counts the chosen ones.
func (s *searching) explored(chosen, others []*candidate, perFile map[int]int) []*candidate {
	next, tried, replaced := feedback.Explore(chosen, others, func(c *candidate) bool { return c.known.Judged })
	for i := range tried {
		if f := replaced[i].File; perFile[f] == 1 {
			delete(perFile, f)
		} else {
			perFile[f]--
		}
		perFile[tried[i].File]++
	}
	return next
}

// weigh multiplies the scores of the best chunks with their factors. Where all are 1, nothing moves.
func (s *searching) weigh(ctx context.Context) error {
	if s.q.Known == nil || len(s.list) == 0 {
		return nil
	}
	head := s.list[:min(reranked, len(s.list))]
	refs := make([]Ref, len(head))
	for i, c := range head {
		refs[i] = c.Ref
	}
	known, err := s.q.Known(ctx, refs)
	if err != nil {
		return err
	}
	moved := false
	for i, k := range known {
		head[i].known, moved = k, moved || k.Factor != 1
		head[i].score *= k.Factor
	}
	if moved {
		slices.SortFunc(head, s.before)
	}
	return nil
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
	lib     Library
	ids     []string
	q       *Query
	result  *Result
	words   []*index.Question // the question first
	byWords *lexicalLeg       // search for the question itself
	more    []*lexicalLeg
	byVec   *vectorLeg   // its probe is nil when the question's vector says nothing
	list    []*candidate // best first, once fused
	at      map[Ref]*candidate
	chunks  map[int]int // chunk counts of the files of candidates
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
	known         Known
	reranked      bool
	repeats       bool // shares text with a better one

	first   uint32 // window of its file
	windows []int  // terms of its windows
}

// legs searches by words and by vectors.
func (s *searching) legs(ctx context.Context) error {
	all := make([]int, len(s.ids))
	for i := range all {
		all[i] = i
	}
	depth := max(50, 3*s.q.TopK)
	if s.q.Mode != Vector {
		for _, text := range append([]string{s.q.Text}, s.q.More[:min(len(s.q.More), mostWordings)]...) {
			text, _ = shortened(text)
			w := wordsOf(text)
			s.words = append(s.words, w)
			s.more = append(s.more, &lexicalLeg{leg: newLeg(s.ids, depth), words: w, found: make([]index.Places, len(s.ids)), match: make([]bool, len(s.ids))})
		}
		if err := s.byTerms(ctx, all); err != nil {
			return err
		}
		s.byWords, s.more = s.more[0], s.more[1:]
	}
	if s.q.Mode != Lexical && s.q.Vector != nil {
		s.byVec = &vectorLeg{newLeg(s.ids, depth), index.Pack(s.q.Vector)}
	}
	s.gather()
	return s.byCosine(ctx, all)
}

// byTerms searches by words: how rare a term is must be known before chunks are scored, so files
// are read twice. What was found in a single group is kept until then.
func (s *searching) byTerms(ctx context.Context, all []int) error {
	groups := 0
	err := s.lib.Segments(ctx, all, func(files []int, segments []*Segment) error {
		groups++
		for _, l := range s.more {
			if groups > 1 {
				l.found = nil
			}
			if err := l.count(ctx, files, segments); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range s.more {
		l.words.Weigh()
	}
	matching := slices.DeleteFunc(slices.Clone(all), func(file int) bool {
		return !slices.ContainsFunc(s.more, func(l *lexicalLeg) bool { return l.match[file] })
	})
	return s.lib.Segments(ctx, matching, func(files []int, segments []*Segment) error {
		for _, l := range s.more {
			if err := l.rank(ctx, files, segments); err != nil {
				return err
			}
		}
		return nil
	})
}

// byCosine searches by vectors, and sets the cosines of what words found.
func (s *searching) byCosine(ctx context.Context, all []int) error {
	if s.byVec == nil || s.byVec.probe == nil {
		return nil
	}
	of := s.byFile()
	return s.lib.Vectors(ctx, all, func(files []int, vectors []*Vectors) error {
		for i, file := range files {
			for _, c := range of[file] {
				c.cosine, _ = vectors[i].cosine(s.byVec.probe, c.Chunk)
			}
		}
		return s.byVec.rank(ctx, files, vectors)
	})
}

// outline reads which windows the candidates have.
func (s *searching) outline(ctx context.Context) error {
	of := s.byFile()
	s.chunks = make(map[int]int, len(of))
	return s.lib.Segments(ctx, slices.Sorted(maps.Keys(of)), func(files []int, segments []*Segment) error {
		for i, segment := range segments {
			if segment == nil {
				continue
			}
			s.chunks[files[i]] = len(segment.Units)
			for _, c := range of[files[i]] {
				k := segment.Units[c.Chunk]
				c.first = k.First
				for w := int(k.First); w < int(k.Last); w++ {
					c.windows = append(c.windows, segment.Terms(w, w+1))
				}
			}
		}
		return nil
	})
}

// byFile groups the candidates by their files.
func (s *searching) byFile() map[int][]*candidate {
	of := map[int][]*candidate{}
	for _, c := range s.list {
		of[c.File] = append(of[c.File], c)
	}
	return of
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
		cmp.Compare(s.ids[a.File], s.ids[b.File]), cmp.Compare(a.File, b.File), cmp.Compare(a.Chunk, b.Chunk))
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
	var chosen, others []*candidate
	for i, c := range s.list {
		if s.q.PerFile > 0 && len(best) >= 3 && perFile[c.File] >= s.q.PerFile {
			continue
		}
		if len(chosen) < s.q.TopK {
			perFile[c.File]++
			chosen = append(chosen, c)
		} else if i < reranked {
			others = append(others, c)
		}
	}
	for _, c := range s.explored(chosen, others, perFile) {
		s.result.Hits = append(s.result.Hits, Hit{c.Ref, c.similarity, c.lexical, c.vector, cmp.Or(c.known.Factor, 1)})
	}
	for f := range perFile {
		s.result.Files = append(s.result.Files, FileHit{f, s.relevance(f, best[f])})
	}
	slices.SortFunc(s.result.Files, func(a, b FileHit) int {
		return cmp.Or(cmp.Compare(b.Relevance, a.Relevance), s.before(best[a.File], best[b.File]))
	})
}
