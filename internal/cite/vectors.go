package cite

import (
	"cmp"
	"context"
	"math"
	"slices"

	"nodest/llm"
)

// vectors are the embeddings of some texts with what cosines need.
type vectors struct {
	of     [][]float32
	length []float64
}

// vectorsFor returns the vectors of texts; ok is false if there are none to be had.
func vectorsFor(ctx context.Context, emb llm.Embedder, task llm.EmbedTask, texts []string) (v vectors, ok bool) {
	if emb == nil || len(texts) == 0 {
		return v, false
	}
	answer, err := emb.Embed(ctx, task, texts)
	if err != nil {
		return v, false
	}
	return newVectors(answer.Vectors, len(texts))
}

// vectorsOfPages returns the vectors of texts and behind them those of passages, whose pages are read as a
// whole if the model can. The texts are read as one then too: those of an answer are.
func vectorsOfPages(ctx context.Context, emb llm.Embedder, texts []string, passages []passage) (vectors, bool) {
	late, ok := emb.(LateChunker)
	if !ok {
		return vectorsFor(ctx, emb, llm.Similarity, withPassages(texts, passages))
	}
	all := make([][]float32, 0, len(texts)+len(passages))
	read := func(chunks []string) bool {
		if len(chunks) == 0 {
			return true
		}
		answer, err := late.EmbedChunks(ctx, chunks)
		all = append(all, answer.Vectors...)
		return err == nil
	}
	if !read(texts) {
		return vectors{}, false
	}
	for from := 0; from < len(passages); {
		to := from + 1
		for to < len(passages) && passages[to].source == passages[from].source {
			to++
		}
		if !read(withPassages(nil, passages[from:to])) {
			return vectors{}, false
		}
		from = to
	}
	return newVectors(all, len(texts)+len(passages))
}

func withPassages(texts []string, passages []passage) []string {
	texts = slices.Clip(texts)
	for _, p := range passages {
		texts = append(texts, p.text)
	}
	return texts
}

func newVectors(of [][]float32, n int) (v vectors, ok bool) {
	if len(of) != n {
		return v, false
	}
	v = vectors{of, make([]float64, n)}
	for i, x := range of {
		if len(x) != len(of[0]) {
			return v, false
		}
		v.length[i] = math.Sqrt(float64(dot(x, x)))
	}
	return v, true
}

// slice returns the vectors in [from, to).
func (v vectors) slice(from, to int) vectors { return vectors{v.of[from:to], v.length[from:to]} }

// cosine is the similarity of vector i of v and j of w; 0 if one of them is zero.
func (v vectors) cosine(i int, w vectors, j int) float64 {
	if v.length[i] == 0 || w.length[j] == 0 || len(v.of[i]) != len(w.of[j]) {
		return 0
	}
	return float64(dot(v.of[i], w.of[j])) / (v.length[i] * w.length[j])
}

// Cosine is the similarity of two vectors; 0 if one of them is zero, or they are not of one dimension.
func Cosine(a, b []float32) float64 {
	v, ok := newVectors([][]float32{a, b}, 2)
	if !ok {
		return 0
	}
	return v.cosine(0, v, 1)
}

// dot needs vectors of the same dimension. Eight sums let the processor work on several
// products at a time.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}

// hit is a chunk of a source that may support a chunk of the answer.
type hit struct {
	chunk int
	score float64
}

// best keeps the k hits of the highest scores; of equal ones, those added first. It is a
// sorted list: k is small, and nearly all scores end at the first comparison.
type best struct {
	k    int
	hits []hit
}

func (b *best) add(h hit) {
	if len(b.hits) == b.k {
		if b.k == 0 || h.score <= b.hits[b.k-1].score {
			return
		}
		b.hits = b.hits[:b.k-1]
	}
	i, _ := slices.BinarySearchFunc(b.hits, h, func(x, h hit) int {
		if x.score >= h.score {
			return -1
		}
		return cmp.Compare(h.score, x.score)
	})
	b.hits = slices.Insert(b.hits, i, h)
}
