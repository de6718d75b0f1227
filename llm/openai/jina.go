package openai

import (
	"cmp"
	"context"

	"nodest/llm"
)

const jinaModel = "jina-embeddings-v3"

// lateBytes bounds the chunks that Jina reads together: they must not have more than 8,192 tokens, and a
// token has more than two bytes in all languages, if not in all texts.
const lateBytes = 16 << 10

// jinaTasks are the names that Jina has for the purposes of vectors.
var jinaTasks = map[llm.EmbedTask]string{
	llm.Similarity: "text-matching", llm.Passage: "retrieval.passage", llm.Query: "retrieval.query",
}

// lateEmbedder is an Embedder that can read the chunks of a text together: it is a cite.LateChunker.
type lateEmbedder struct {
	*llm.Batches
	late *llm.Batches
}

func (c *Client) jinaEmbedder(model string, dim int) *lateEmbedder {
	model = cmp.Or(model, jinaModel)
	batches := func(bytes int, late bool) *llm.Batches {
		return &llm.Batches{Provider: c.opts.Name, Model: model, Length: dim, Texts: batchTexts, Bytes: bytes,
			Call: func(ctx context.Context, task llm.EmbedTask, texts []string) ([][]float32, int, error) {
				return c.embed(ctx, embeddingRequest{Model: model, Input: texts, Dimensions: dim, Task: jinaTasks[task], LateChunking: late})
			}}
	}
	return &lateEmbedder{Batches: batches(batchBytes, false), late: batches(lateBytes, true)}
}

// EmbedChunks returns a vector for each chunk of one text, which knows what the chunks beside it are about.
// A text that is too long for the model is read in parts.
func (e *lateEmbedder) EmbedChunks(ctx context.Context, chunks []string) (llm.Embeddings, error) {
	return e.late.Embed(ctx, llm.Passage, chunks)
}
