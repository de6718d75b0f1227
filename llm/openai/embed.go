package openai

import (
	"cmp"
	"context"
	"strconv"
	"sync/atomic"

	"nodest/llm"
)

// The most that one embedding request carries. OpenAI allows 2048 texts and
// 300,000 tokens; local servers hold the whole batch in memory.
const (
	batchTexts = 128
	batchBytes = 256 << 10
)

// Embedder makes an embedder of the client's server. model defaults to
// text-embedding-3-small. dim above 0 asks for vectors of that length, which not
// every model can give; 0 takes what the model gives.
func (c *Client) Embedder(model string, dim int) llm.Embedder {
	e := &embedder{client: c, model: cmp.Or(model, "text-embedding-3-small"), ask: dim}
	e.dim.Store(int64(dim))
	return e
}

type embedder struct {
	client *Client
	model  string
	ask    int
	dim    atomic.Int64
}

func (e *embedder) ModelID() string {
	id := e.client.opts.Name + ":" + e.model
	if e.ask > 0 {
		id += "@" + strconv.Itoa(e.ask)
	}
	return id
}

func (e *embedder) Dim() int { return int(e.dim.Load()) }

// Embed sends the texts in batches, one after the other. The task makes no
// difference to these models.
func (e *embedder) Embed(ctx context.Context, _ llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	batches := llm.Batches{Provider: e.client.opts.Name, Texts: batchTexts, Bytes: batchBytes, Call: e.batch}
	out, err := batches.Embed(ctx, texts, e.Dim())
	if err != nil {
		return llm.Embeddings{}, err
	}
	out.Model = e.ModelID()
	e.dim.Store(int64(out.Dim))
	return out, nil
}

type embeddingRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
}

func (r embeddingRequest) texts() []string { return r.Input }

func (e *embedder) batch(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error) {
	in := make([]string, len(texts))
	for i, t := range texts {
		in[i] = cmp.Or(t, " ") // an empty input is refused
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	c := e.client
	err = c.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		resp, err := c.post(ctx, c.address("/embeddings"), key, embeddingRequest{e.model, in, e.ask})
		if err != nil {
			return err
		}
		return c.decode(ctx, resp, &answer)
	})
	if err != nil {
		return nil, 0, err
	}
	if len(answer.Data) != len(texts) {
		return make([][]float32, len(answer.Data)), 0, nil // CheckVectors tells it
	}
	vectors = make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(vectors) || vectors[d.Index] != nil {
			return nil, 0, llm.BadAnswer(c.opts.Name, nil, "numbered its embeddings incorrectly")
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, answer.Usage.PromptTokens, nil
}
