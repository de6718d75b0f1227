package gemini

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"google.golang.org/genai"

	"nodest/llm"
	"nodest/llm/loose"
)

// The most that one batch carries. The API takes 100 texts.
const (
	batchTexts = 100
	batchBytes = 256 << 10
)

// EmbeddingModel is the model that makes vectors where none is named. Vectors of different models
// cannot be compared, so it stays the same as long as Google has it.
func (p *Provider) EmbeddingModel(ctx context.Context) string {
	return cmp.Or(p.def.Pick(ctx, chooseEmbedding), embeddingModel)
}

// Embedder makes an embedder of the provider. model defaults to
// gemini-embedding-001. dim above 0 requests vectors of that length, 0 takes what
// the model gives; the default model then gives 3072 numbers.
func (p *Provider) Embedder(model string, dim int) llm.Embedder {
	b := &llm.Batches{Provider: name, Model: bare(cmp.Or(model, embeddingModel)), Length: dim, Texts: batchTexts, Bytes: batchBytes}
	// The API counts nothing, so the tokens stay zero.
	b.Call = func(ctx context.Context, task llm.EmbedTask, texts []string) (vectors [][]float32, tokens int, err error) {
		err = p.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
			ctx, x := withExchange(ctx, key)
			x.hide.Texts, x.trim = texts, vectorsOf
			defer x.close()
			vectors, err = p.embed(ctx, b.Model, dim, task, texts)
			if err = cmp.Or(err, x.err); err != nil {
				return x.failure(ctx, err)
			}
			return nil
		})
		return vectors, 0, err
	}
	return b
}

func (p *Provider) embed(ctx context.Context, model string, dim int, task llm.EmbedTask, texts []string) (vectors [][]float32, err error) {
	client, err := p.current()
	if err != nil {
		return nil, noClient(err)
	}
	tasks := map[llm.EmbedTask]string{llm.Similarity: "SEMANTIC_SIMILARITY",
		llm.Passage: "RETRIEVAL_DOCUMENT", llm.Query: "RETRIEVAL_QUERY"}
	config := &genai.EmbedContentConfig{TaskType: tasks[task]}
	if dim > 0 {
		config.OutputDimensionality = new(int32(dim))
	}
	contents := make([]*genai.Content, len(texts))
	for i, t := range texts {
		contents[i] = &genai.Content{Parts: []*genai.Part{{Text: cmp.Or(t, " ")}}} // an empty part is refused
	}
	resp, err := client.Models.EmbedContent(ctx, model, contents, config)
	if err != nil {
		return nil, err
	}
	vectors = make([][]float32, len(resp.Embeddings))
	for i, v := range resp.Embeddings {
		if v != nil {
			vectors[i] = v.Values
		}
	}
	return vectors, nil
}

// vectorsOf leaves nothing in an answer but its vectors: genai fails at any other member that has an
// unexpected type, and takes null for a 0.
func vectorsOf(body []byte) []byte {
	var a struct {
		Embeddings loose.List[struct {
			Values json.RawMessage `json:"values"`
		}] `json:"embeddings"`
	}
	if loose.Unmarshal(body, &a) != nil {
		return body // which genai cannot read either
	}
	for i, v := range a.Embeddings {
		if bytes.Contains(v.Values, []byte("null")) {
			a.Embeddings[i].Values = nil
		}
	}
	return []byte(llm.JSONLine(a))
}
