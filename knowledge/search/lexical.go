package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"unicode/utf8"

	"nodest/index"
	"nodest/index/dict"
)

// The constants of BM25.
const (
	saturation = 1.2
	lengthNorm = 0.75
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
	lone  bool // all are single characters, which are looked for inside of pairs
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
	w, counts := &wording{}, map[string]int{}
	lone := 0
	for _, t := range index.DocumentTerms(question) {
		if counts[t]++; counts[t] > 1 {
			continue
		}
		if r, size := utf8.DecodeRuneInString(t); size == len(t) && r >= firstDense {
			lone++
		}
		w.terms = append(w.terms, term{text: t, weight: functionWeight(t)})
	}
	most := mostTerms
	if lone > 0 && lone == len(w.terms) { // else other terms find what is meant
		w.lone, most = true, mostLone
	}
	if len(w.terms) > most {
		slices.SortStableFunc(w.terms, func(a, b term) int { return cmp.Compare(counts[b.text], counts[a.text]) })
		w.terms = w.terms[:most]
	}
	return w
}

// found says what a file has of the terms of a wording; the zero value is nothing.
type found struct {
	postings []dict.Postings
	lone     [][]entry // further ones by term; only of lone characters
	chunks   []int     // that have a term
}

// lookUp finds the terms in a segment.
func (w *wording) lookUp(s *Segment) (f found) {
	if s == nil {
		return f
	}
	var lone [][]entry
	if w.lone {
		lone = s.around(w.terms)
	}
	for t := range w.terms {
		var entries []entry
		if w.lone {
			entries = lone[t]
		} else if e := s.find(w.terms[t].text); e.postings != nil {
			entries = []entry{e}
		}
		if len(entries) == 0 {
			continue
		}
		if f.postings == nil {
			f.postings, f.chunks = make([]dict.Postings, len(w.terms)), make([]int, len(w.terms))
		}
		f.postings[t] = entries[0].postings
		if len(entries) > 1 {
			if f.lone == nil {
				f.lone = make([][]entry, len(w.terms))
			}
			f.lone[t] = entries[1:]
		}
		for _, e := range entries {
			f.chunks[t] = min(f.chunks[t]+e.chunks, len(s.chunks))
		}
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

	mean   float32 // terms of a chunk
	window float32 // terms of a window
}

// count finds the terms in a group of files and counts the chunks that have them.
func (l *lexicalLeg) count(ctx context.Context, files []int, segments []*Segment) error {
	got := make([]found, len(files))
	if err := inParallel(ctx, len(files), func(i int) { got[i] = l.words.lookUp(segments[i]) }); err != nil {
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
		for t, n := range got[i].chunks {
			l.have[t] += n
		}
		l.match[files[i]] = got[i].postings != nil
		if l.found != nil {
			l.found[files[i]] = got[i]
		}
	}
	return nil
}

// weigh sets how rare the terms are in all files together.
func (l *lexicalLeg) weigh() {
	n := &l.size
	l.mean = float32(max(1, n.terms)) / float32(max(1, n.chunks))
	l.window = float32(max(1, n.windowTerms)) / float32(max(1, n.windows))
	for t, have := range l.have {
		l.words.terms[t].rarity = float32(math.Log(1 + (float64(n.chunks-have)+0.5)/(float64(have)+0.5)))
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
			l.score(x, s, &f, func(chunk int, score float32) {
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
func (l *lexicalLeg) score(x *scratch, s *Segment, f *found, add func(chunk int, score float32)) {
	if f.postings == nil {
		return
	}
	x.grow(s)
	asked := float32(0)
	for t := range l.words.terms {
		q := &l.words.terms[t]
		weight := q.weight * q.rarity
		asked += weight
		if f.postings[t] == nil {
			continue
		}
		x.posted(s, l, weight, f.postings[t])
		if f.lone != nil {
			for _, e := range f.lone[t] {
				x.posted(s, l, weight, e.postings)
			}
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
func (x *scratch) posted(s *Segment, l *lexicalLeg, weight float32, postings dict.Postings) {
	x.postings = postings.Append(x.postings[:0], nil)
	for _, p := range x.postings {
		at, count := int(p.Row), float32(p.Count)
		r := &s.rows[at]
		switch {
		case at < s.windows:
			if x.window[at] == 0 {
				x.windows = append(x.windows, uint32(at))
			}
			x.window[at] += weight * saturated(count, float32(r.terms)/l.window)
		case at == len(s.rows)-1:
			count = weightName
		default:
			count = weightHeading
		}
		for c := r.first; c < r.last; c++ {
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
		x.score[c] += weight * saturated(x.count[c], float32(s.chunks[c].terms)/l.mean)
		x.count[c] = 0
	}
	x.counted = x.counted[:0]
}

// saturated is the share of BM25 that a term adds which is so often in a text of that length,
// where the mean length is 1.
func saturated(count, length float32) float32 {
	return count * (saturation + 1) / (count + saturation*(1-lengthNorm+lengthNorm*length))
}
