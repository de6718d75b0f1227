package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"

	"nodest/llm"
	"nodest/llm/loose"
)

// The most that one embedding request carries. OpenAI allows 2048 texts and
// 300,000 tokens; local servers hold the whole batch in memory.
const (
	batchTexts = 128
	batchBytes = 256 << 10
)

// EmbeddingModel is the model that makes vectors where none is named: see chooseEmbedding.
func (c *Client) EmbeddingModel(ctx context.Context) string {
	if c.opts.Name == Jina {
		return jinaModel
	}
	return cmp.Or(c.def.Pick(ctx, chooseEmbedding), embeddingModel)
}

// Embedder makes an embedder of the client's server. model defaults to
// text-embedding-3-small. dim above 0 asks for vectors of that length, which not
// every model can give; 0 takes what the model gives.
func (c *Client) Embedder(model string, dim int) llm.Embedder {
	if c.opts.Name == Jina {
		return c.jinaEmbedder(model, dim)
	}
	b := &llm.Batches{
		Provider: c.opts.Name, Model: cmp.Or(model, embeddingModel), Length: dim, Texts: batchTexts, Bytes: batchBytes,
	}
	b.Call = func(ctx context.Context, _ llm.EmbedTask, texts []string) ([][]float32, int, error) { // the task makes no difference
		return c.embed(ctx, embeddingRequest{Model: b.Model, Input: texts, Dimensions: dim})
	}
	return b
}

type embeddingRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`

	// Only Jina knows these.
	Task         string `json:"task,omitempty"`
	LateChunking bool   `json:"late_chunking,omitempty"`
}

func (r embeddingRequest) texts() []string { return r.Input }

func (c *Client) embed(ctx context.Context, req embeddingRequest) (vectors [][]float32, tokens int, err error) {
	req.Input = slices.Clone(req.Input)
	for i, t := range req.Input {
		req.Input[i] = cmp.Or(t, " ") // an empty input is refused
	}
	var answer struct {
		Data loose.List[struct {
			Index     loose.Number `json:"index"`
			Embedding vector       `json:"embedding"`
		}] `json:"data"`
		Usage json.RawMessage `json:"usage"`
	}
	err = c.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		resp, err := c.post(ctx, c.address("/embeddings"), key, req)
		if err != nil {
			return err
		}
		return c.decode(ctx, resp, listLimit+vectorLimit*int64(len(req.Input)), &answer)
	})
	if err != nil {
		return nil, 0, err
	}
	if len(answer.Data) != len(req.Input) {
		return make([][]float32, len(answer.Data)), 0, nil // Batches reports it
	}
	vectors = make([][]float32, len(req.Input))
	for i, d := range answer.Data {
		at := d.Index.IntOr(i) // without a number, its place tells whose it is
		if at < 0 || at >= len(vectors) || vectors[at] != nil {
			return nil, 0, llm.BadAnswer(c.opts.Name, nil, "numbered its embeddings incorrectly")
		}
		vectors[at] = d.Embedding
	}
	var used wireUsage
	used.add(answer.Usage)
	if u := used.usage(); u != nil {
		tokens = u.PromptTokens
	}
	return vectors, tokens, nil
}

// vector is read strictly: it is the answer itself. One with anything but numbers has none. Some
// servers send the numbers as the base64 of their bytes.
type vector []float32

// UnmarshalJSON never fails.
func (v *vector) UnmarshalJSON(doc []byte) error {
	*v = vector{}
	var numbers []float32
	var packed []byte
	switch {
	case doc[0] == '"' && json.Unmarshal(doc, &packed) == nil && len(packed)%float32Size == 0:
		for bits := range slices.Chunk(packed, float32Size) {
			*v = append(*v, math.Float32frombits(binary.LittleEndian.Uint32(bits)))
		}
	case json.Unmarshal(doc, &numbers) == nil && !bytes.Contains(doc, []byte("null")):
		*v = numbers
	}
	return nil
}

const float32Size = 4 // bytes
