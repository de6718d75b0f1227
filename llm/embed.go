package llm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
)

// Batches is an Embedder that asks a provider for a limited number of texts at a
// time, and holds what it answers to the promises of Embedder. It must not be copied.
type Batches struct {
	Provider string
	Model    string
	Length   int // length of the vectors to ask for; 0 = what the model gives
	Texts    int // the most that one call takes
	Bytes    int // likewise; a single longer text goes alone

	// Call embeds one batch. It tells the tokens of it, 0 where they are unknown.
	Call func(ctx context.Context, task EmbedTask, texts []string) (vectors [][]float32, tokens int, err error)

	length atomic.Int64 // that the model gave
}

// ModelID names the provider, the model, and the length that is asked for.
func (b *Batches) ModelID() string {
	id := b.Provider + ":" + b.Model
	if b.Length > 0 {
		id += "@" + strconv.Itoa(b.Length)
	}
	return id
}

// Dim is the length of the vectors; 0 until the model has given the first one.
func (b *Batches) Dim() int {
	if b.Length > 0 {
		return b.Length
	}
	return int(b.length.Load())
}

// Embed returns one vector of length one per text.
func (b *Batches) Embed(ctx context.Context, task EmbedTask, texts []string) (Embeddings, error) {
	out := Embeddings{Model: b.ModelID(), Dim: b.Dim(), Vectors: make([][]float32, 0, len(texts))}
	for start := 0; start < len(texts); {
		end := b.end(texts, start)
		vectors, tokens, err := b.Call(ctx, task, texts[start:end])
		if err != nil {
			return Embeddings{}, err
		}
		if err := normalise(b.Provider, vectors, end-start, out.Dim); err != nil {
			return Embeddings{}, err
		}
		out.Dim = len(vectors[0])
		out.Vectors = append(out.Vectors, vectors...)
		out.Usage.PromptTokens += boundedTokens(tokens)
		start = end
	}
	b.length.Store(int64(out.Dim))
	return out, nil
}

// end returns the end of the batch that starts at start; it holds at least one text.
func (b *Batches) end(texts []string, start int) int {
	size := 0
	for i := start; i < len(texts); i++ {
		size += len(texts[i])
		if i > start && (size > b.Bytes || i-start >= b.Texts) {
			return i
		}
	}
	return len(texts)
}

// normalise gives vectors the length one, which shortened ones do not have. It returns
// an error unless they can be used as the answer to n texts: their number, their common
// dimension (dim, unless that is 0), every value finite and no vector of zeros.
func normalise(provider string, vectors [][]float32, n, dim int) error {
	if len(vectors) != n {
		return BadAnswer(provider, nil, fmt.Sprintf("sent %d vectors for %d texts", len(vectors), n))
	}
	for _, v := range vectors {
		dim = cmp.Or(dim, len(v))
		if len(v) != dim {
			return BadAnswer(provider, nil, fmt.Sprintf("sent a vector of %d numbers where %d were expected", len(v), dim))
		}
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return BadAnswer(provider, nil, "sent an embedding of zeros only")
		}
		if scale := 1 / math.Sqrt(sum); math.Abs(scale-1) > 1e-6 {
			for i := range v {
				v[i] = float32(float64(v[i]) * scale)
			}
		}
	}
	return nil
}
