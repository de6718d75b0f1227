package llm

import (
	"context"
	"math"
)

// Batches embeds texts by several calls of a provider, one after the other, and
// holds what it answers to the promises of Embedder.
type Batches struct {
	Provider string // for errors
	Texts    int    // the most that one call takes
	Bytes    int    // likewise; a single longer text goes alone

	// Call embeds one batch. It tells the tokens of it, 0 where they are unknown.
	Call func(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error)
}

// Embed returns one vector of length one per text, with Dim and Usage. Every
// vector has dim numbers, unless that is 0: then as many as the first one.
func (b Batches) Embed(ctx context.Context, texts []string, dim int) (Embeddings, error) {
	out := Embeddings{Dim: dim, Vectors: make([][]float32, 0, len(texts))}
	for start := 0; start < len(texts); {
		end := b.end(texts, start)
		vectors, tokens, err := b.Call(ctx, texts[start:end])
		if err != nil {
			return Embeddings{}, err
		}
		if err := CheckVectors(b.Provider, vectors, end-start, out.Dim); err != nil {
			return Embeddings{}, err
		}
		out.Dim = len(vectors[0])
		out.Vectors = append(out.Vectors, vectors...)
		out.Usage.PromptTokens += tokens
		start = end
	}
	for _, v := range out.Vectors {
		normalise(v)
	}
	return out, nil
}

// end returns the end of the batch that starts at start; it holds at least one
// text.
func (b Batches) end(texts []string, start int) int {
	size := 0
	for i := start; i < len(texts); i++ {
		size += len(texts[i])
		if i > start && (size > b.Bytes || i-start >= b.Texts) {
			return i
		}
	}
	return len(texts)
}

// normalise gives v the length one: shortened vectors come without.
func normalise(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if scale := 1 / math.Sqrt(sum); math.Abs(scale-1) > 1e-6 {
		for i := range v {
			v[i] = float32(float64(v[i]) * scale)
		}
	}
}
