package bench

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"nodest/llm"
)

// randomVectors is an embedding model whose vectors, of so many numbers, mean nothing: each text has
// a direction of its own, the same at all times.
type randomVectors int

// randomDim is a common length of the vectors of embedding models.
const randomDim = 384

func (e randomVectors) ModelID() string { return fmt.Sprintf("random-%d", int(e)) }
func (e randomVectors) Dim() int        { return int(e) }

func (e randomVectors) Embed(_ context.Context, _ llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	out := llm.Embeddings{Model: e.ModelID(), Dim: e.Dim()}
	for _, text := range texts {
		out.Vectors = append(out.Vectors, e.of(text))
	}
	return out, nil
}

// of is the direction of a text, of length one.
func (e randomVectors) of(text string) []float32 {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(text))
	r := rand.New(rand.NewPCG(seed.Sum64(), uint64(e)))
	v := make([]float32, e)
	var square float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		square += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(square))
	}
	return v
}
