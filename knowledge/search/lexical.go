package search

import (
	"cmp"
	"context"
	"slices"

	"nodest/internal/index"
	"nodest/internal/index/dict"
)

// What bounds the terms of a question: a long one is searched by those that it repeats, then by
// its first ones.
const (
	mostTerms = 128
	mostLone  = 4 // when all are single characters, for which dictionaries are read as a whole
)

// wording is a question as it is searched by words.
type wording struct {
	terms []term
	lone  []string // the terms, if all are single characters, which are looked for inside of pairs
}

// term is a term of a question.
type term struct {
	text   string
	weight float32 // 1, less for a function word
	rarity float32 // inverse document frequency within the files
}

// worth is what a term counts in a question.
func (t *term) worth() float64 { return float64(t.weight * t.rarity) }

// newWording returns the terms of a question, each once.
func newWording(question string) *wording {
	w, counts, most := &wording{}, map[string]int{}, mostLone
	for _, t := range index.DocumentTerms(question) {
		if counts[t]++; counts[t] > 1 {
			continue
		}
		w.terms = append(w.terms, term{text: t, weight: functionWeight(t)})
		if index.Key(t) == t { // it finds what is meant
			most = mostTerms
		}
	}
	if len(w.terms) > most {
		slices.SortStableFunc(w.terms, func(a, b term) int { return cmp.Compare(counts[b.text], counts[a.text]) })
		w.terms = w.terms[:most]
	}
	if most == mostLone {
		for _, t := range w.terms {
			w.lone = append(w.lone, t.text)
		}
	}
	return w
}

// found has where a file has each term of a wording; nil = it has none.
type found [][]index.Postings

// lookUp finds the terms in a segment.
func (w *wording) lookUp(s *Segment) found {
	f := make(found, len(w.terms))
	if w.lone != nil {
		f = s.Around(w.lone)
	}
	for t := range w.terms {
		if p := s.Find(w.terms[t].text); p.Rows > 0 && w.lone == nil {
			f[t] = []index.Postings{p}
		}
	}
	if !slices.ContainsFunc(f, func(all []index.Postings) bool { return len(all) > 0 }) {
		return nil
	}
	return f
}

// lexicalLeg is a search by words.
type lexicalLeg struct {
	leg
	words *wording
	found []found // by file, while what the files have fits into the memory
	match []bool  // of files: they have a term
	have  []int   // of terms: chunks that have them
	size  struct{ chunks, terms, windows, windowTerms int }

	chunk, window index.Falloff
}

// count finds the terms in a group of files and counts the chunks that have them.
func (l *lexicalLeg) count(ctx context.Context, files []int, segments []*Segment) error {
	got, chunks := make([]found, len(files)), make([][]int, len(files))
	err := inParallel(ctx, len(files), func(i int) {
		if segments[i] == nil {
			return
		}
		got[i] = l.words.lookUp(segments[i])
		for _, all := range got[i] {
			chunks[i] = append(chunks[i], segments[i].having(all))
		}
	})
	if err != nil {
		return err
	}
	for i, s := range segments {
		if s == nil {
			continue
		}
		l.size.chunks += len(s.chunks)
		l.size.terms += s.terms
		l.size.windows += s.windows
		l.size.windowTerms += s.windowTerms
		for t, n := range chunks[i] {
			l.have[t] += n
		}
		l.match[files[i]] = got[i] != nil
		if l.found != nil {
			l.found[files[i]] = got[i]
		}
	}
	return nil
}

// weigh sets how rare the terms are in all files together.
func (l *lexicalLeg) weigh() {
	n := &l.size
	l.chunk = index.FalloffOf(float32(max(1, n.terms)) / float32(max(1, n.chunks)))
	l.window = index.FalloffOf(float32(max(1, n.windowTerms)) / float32(max(1, n.windows)))
	for t, have := range l.have {
		l.words.terms[t].rarity = index.IDF(have, n.chunks)
	}
}

// rank scores the chunks of a group of files.
func (l *lexicalLeg) rank(ctx context.Context, files []int, segments []*Segment) error {
	return l.collect(ctx, len(files), func(t *top) func(int) {
		x := &scratch{}
		return func(i int) {
			file, s := files[i], segments[i]
			if s == nil || !l.match[file] {
				return
			}
			var f found
			if l.found != nil {
				f = l.found[file]
			} else {
				f = l.words.lookUp(s)
			}
			l.score(x, s, f, func(chunk int, score float32) {
				three(&l.best[file], score)
				t.add(scored{Ref{file, chunk}, score})
			})
		}
	})
}

// scratch is the memory in which one file after another is scored.
type scratch struct {
	score    []float32      // of chunks, over all terms
	cover    []float32      // of chunks: rarity of the terms that are in them
	count    []float32      // of chunks: how often one term is in them
	window   []float32      // of windows
	touched  []uint32       // chunks with a score
	counted  []uint32       // chunks with a count
	windows  []uint32       // windows with a score
	postings []dict.Posting // of one term
}

func (x *scratch) grow(s *Segment) {
	if n := len(s.chunks); n > len(x.score) {
		x.score, x.cover, x.count = make([]float32, n), make([]float32, n), make([]float32, n)
	}
	if s.windows > len(x.window) {
		x.window = make([]float32, s.windows)
	}
}

// score calls add for every chunk of a segment that has a term of the question.
func (l *lexicalLeg) score(x *scratch, s *Segment, f found, add func(chunk int, score float32)) {
	if f == nil {
		return
	}
	x.grow(s)
	asked := float32(0)
	for t := range l.words.terms {
		q := &l.words.terms[t]
		weight := q.weight * q.rarity
		asked += weight
		for _, p := range f[t] {
			x.posted(s, l, weight*index.Saturated, p)
		}
		x.termDone(s, l, weight)
	}
	for _, c := range x.touched {
		k := &s.chunks[c]
		best := float32(0)
		for w := k.first; w < k.last; w++ {
			best = max(best, x.window[w])
		}
		add(int(c), x.score[c]+weightWindow*best+weightCover*x.cover[c]*x.cover[c]/max(asked, 1e-6))
		x.score[c], x.cover[c] = 0, 0
	}
	for _, w := range x.windows {
		x.window[w] = 0
	}
	x.touched, x.windows = x.touched[:0], x.windows[:0]
}

// posted counts the postings of a term.
func (x *scratch) posted(s *Segment, l *lexicalLeg, weight float32, p index.Postings) {
	x.postings = s.Append(x.postings[:0], p, nil)
	for _, p := range x.postings {
		at, count := int(p.Row), float32(p.Count)
		switch {
		case at < s.windows:
			if x.window[at] == 0 {
				x.windows = append(x.windows, uint32(at))
			}
			x.window[at] += weight * l.window.Of(count, int32(s.Terms(at, at+1)))
		case at == s.Rows-1:
			count = weightName
		default:
			count = weightHeading
		}
		first, last := s.belongs(at)
		for c := first; c < last; c++ {
			if x.count[c] == 0 {
				x.counted = append(x.counted, c)
			}
			x.count[c] += count
		}
	}
}

// termDone turns the counts of a term into scores.
func (x *scratch) termDone(s *Segment, l *lexicalLeg, weight float32) {
	for _, c := range x.counted {
		if x.cover[c] == 0 {
			x.touched = append(x.touched, c)
		}
		x.cover[c] += weight
		x.score[c] += weight * index.Saturated * l.chunk.Of(x.count[c], int32(s.chunks[c].terms))
		x.count[c] = 0
	}
	x.counted = x.counted[:0]
}
