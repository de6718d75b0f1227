package kb

import (
	"cmp"
	"math"
	"slices"

	"nodest/internal/index"
	"nodest/knowledge/search"
)

// The constants of plain BM25.
const (
	saturation = 1.2
	lengthNorm = 0.75
)

// plainIndex is the baseline of a search in documents: plain BM25 over chunks, without windows,
// headings or reranking.
type plainIndex struct {
	library  *library
	chunks   []search.Ref
	lengths  []float64
	mean     float64
	postings map[string][]posting
}

type posting struct {
	chunk int
	count float64
}

func newPlainIndex(l *library) *plainIndex {
	p := &plainIndex{library: l, postings: map[string][]posting{}}
	for f, chunks := range l.chunks {
		for i, c := range chunks {
			n := len(p.chunks)
			terms := index.Terms(c.Text)
			for _, t := range terms {
				if list := p.postings[t]; len(list) > 0 && list[len(list)-1].chunk == n {
					list[len(list)-1].count++
				} else {
					p.postings[t] = append(list, posting{n, 1})
				}
			}
			p.chunks = append(p.chunks, search.Ref{File: f, Chunk: i})
			p.lengths = append(p.lengths, float64(len(terms)))
			p.mean += float64(len(terms))
		}
	}
	p.mean /= float64(max(1, len(p.chunks)))
	return p
}

// ask ranks the chunks, and the files by the mean of their best three chunks.
func (p *plainIndex) ask(q *question, gold map[search.Ref]bool) (rank ranks) {
	scores := make([]float64, len(p.chunks))
	for _, t := range index.Terms(q.Question) {
		in := p.postings[t]
		rarity := math.Log(1 + (float64(len(p.chunks))-float64(len(in))+0.5)/(float64(len(in))+0.5))
		for _, one := range in {
			scores[one.chunk] += rarity * one.count * (saturation + 1) / (one.count + saturation*(1-lengthNorm+lengthNorm*p.lengths[one.chunk]/p.mean))
		}
	}
	var best []int
	for i, s := range scores {
		if s > 0 {
			best = append(best, i)
		}
	}
	slices.SortStableFunc(best, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	type file struct {
		sum float64
		n   int
	}
	files := map[int]*file{}
	for i, c := range best {
		if rank.quote == 0 && gold[p.chunks[c]] {
			rank.quote = i + 1
		}
		f := files[p.chunks[c].File]
		if f == nil {
			f = &file{}
			files[p.chunks[c].File] = f
		}
		if f.n < 3 {
			f.sum += scores[c]
			f.n++
		}
	}
	right, ok := p.library.byName[q.File]
	if !ok || files[right] == nil {
		return rank
	}
	rank.file = 1
	for _, f := range files {
		if f.sum/float64(f.n) > files[right].sum/float64(files[right].n) {
			rank.file++
		}
	}
	return rank
}
