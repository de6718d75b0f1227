package agent

import (
	"context"

	"nodest/internal/cite"
	"nodest/llm"
)

// sameQuery is the cosine from which two queries ask for the same.
const sameQuery = 0.86

// Fresh returns the queries that ask for something else than the earlier ones and those before
// them, in their order. All are returned if they cannot be embedded.
func Fresh(ctx context.Context, emb llm.Embedder, queries, earlier []string) []string {
	if len(queries) == 0 || len(queries) == 1 && len(earlier) == 0 || emb == nil {
		return queries
	}
	texts := append(append([]string{}, queries...), earlier...)
	e, err := emb.Embed(ctx, llm.Similarity, texts)
	if err != nil || len(e.Vectors) != len(texts) {
		return queries
	}
	asked := e.Vectors[len(queries):]
	asked = asked[:len(asked):len(asked)]
	var fresh []string
next:
	for i, q := range queries {
		for _, v := range asked {
			if cite.Cosine(e.Vectors[i], v) >= sameQuery {
				continue next
			}
		}
		asked = append(asked, e.Vectors[i])
		fresh = append(fresh, q)
	}
	return fresh
}
