package gemini

import (
	"cmp"
	"context"

	card "github.com/google/generative-ai-go/genai"
	"google.golang.org/genai"

	"nodest/llm"
)

// The most that one batch carries. The API takes 100 texts.
const (
	batchTexts = 100
	batchBytes = 256 << 10
)

// Embedder makes an embedder of the provider. model defaults to
// gemini-embedding-001. dim above 0 asks for vectors of that length, 0 takes what
// the model gives; the default model then gives 3072 numbers.
//
// Only models that generative-ai-go was made for, at their own length, go through
// that SDK: it cannot ask for a length.
func (p *Provider) Embedder(model string, dim int) llm.Embedder {
	e := &embedder{provider: p, model: bare(cmp.Or(model, "gemini-embedding-001")), ask: dim}
	return &llm.Batches{Provider: name, Model: e.model, Length: dim, Texts: batchTexts, Bytes: batchBytes, Call: e.batch}
}

type embedder struct {
	provider *Provider
	model    string
	ask      int
}

// viaCard reports whether generative-ai-go serves this model.
func (e *embedder) viaCard() bool {
	return e.ask == 0 && e.provider.opts.Prefer != currentSDK &&
		(e.model == "text-embedding-004" || e.model == "embedding-001")
}

// batch embeds texts. The API counts nothing, so the tokens stay zero.
func (e *embedder) batch(ctx context.Context, task llm.EmbedTask, texts []string) (vectors [][]float32, tokens int, err error) {
	err = e.provider.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		ctx, x := withExchange(ctx, key)
		x.texts = texts
		defer x.close()
		if e.viaCard() {
			vectors, err = e.cardBatch(ctx, task, texts)
		} else {
			vectors, err = e.currentBatch(ctx, task, texts)
		}
		if err == nil {
			err = x.err
		}
		if err != nil {
			return x.failure(ctx, err)
		}
		return nil
	})
	return vectors, 0, err
}

func (e *embedder) cardBatch(ctx context.Context, task llm.EmbedTask, texts []string) ([][]float32, error) {
	client, err := e.provider.card()
	if err != nil {
		return nil, noClient(err)
	}
	tasks := map[llm.EmbedTask]card.TaskType{llm.Similarity: card.TaskTypeSemanticSimilarity,
		llm.Passage: card.TaskTypeRetrievalDocument, llm.Query: card.TaskTypeRetrievalQuery}
	model := client.EmbeddingModel(e.model)
	model.TaskType = tasks[task]
	batch := model.NewBatch()
	for _, t := range texts {
		batch.AddContent(card.Text(cmp.Or(t, " "))) // an empty part is refused
	}
	resp, err := model.BatchEmbedContents(ctx, batch)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(resp.Embeddings))
	for i, v := range resp.Embeddings {
		if v != nil {
			vectors[i] = v.Values
		}
	}
	return vectors, nil
}

func (e *embedder) currentBatch(ctx context.Context, task llm.EmbedTask, texts []string) ([][]float32, error) {
	client, err := e.provider.current()
	if err != nil {
		return nil, noClient(err)
	}
	tasks := map[llm.EmbedTask]string{llm.Similarity: "SEMANTIC_SIMILARITY",
		llm.Passage: "RETRIEVAL_DOCUMENT", llm.Query: "RETRIEVAL_QUERY"}
	config := &genai.EmbedContentConfig{TaskType: tasks[task]}
	if e.ask > 0 {
		dim := int32(e.ask)
		config.OutputDimensionality = &dim
	}
	contents := make([]*genai.Content, len(texts))
	for i, t := range texts {
		contents[i] = &genai.Content{Parts: []*genai.Part{{Text: cmp.Or(t, " ")}}}
	}
	resp, err := client.Models.EmbedContent(ctx, e.model, contents, config)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(resp.Embeddings))
	for i, v := range resp.Embeddings {
		if v != nil {
			vectors[i] = v.Values
		}
	}
	return vectors, nil
}
