package openai

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"nodest/llm"
)

// modelsAge is how long a list of models is good.
const modelsAge = 24 * time.Hour

// Models lists what the server offers. The list is kept for 24 hours; when the
// server cannot be asked after that, the old one is returned in place of an error.
func (c *Client) Models(ctx context.Context) ([]llm.Model, error) {
	c.mu.Lock()
	list, age := c.models, time.Since(c.asked)
	c.mu.Unlock()
	if list != nil && age < modelsAge {
		return slices.Clone(list), nil
	}
	fresh, err := c.fetchModels(ctx)
	if err != nil {
		if list != nil {
			return slices.Clone(list), nil
		}
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.models, c.asked = fresh, time.Now()
	return slices.Clone(fresh), nil
}

// wireModel is a model as a server lists it.
type wireModel struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	ContextLength int    `json:"context_length"` // OpenRouter
	MaxModelLen   int    `json:"max_model_len"`  // vLLM
	TopProvider   struct {
		MaxCompletionTokens int `json:"max_completion_tokens"`
	} `json:"top_provider"`
}

func (c *Client) fetchModels(ctx context.Context) ([]llm.Model, error) {
	var answer json.RawMessage
	err := c.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		return c.get(ctx, c.address("/models"), key, &answer)
	})
	if err != nil {
		return nil, err
	}
	var listed struct{ Data []wireModel }
	if json.Unmarshal(answer, &listed) != nil && json.Unmarshal(answer, &listed.Data) != nil { // Together sends the list alone
		return nil, llm.BadAnswer(c.opts.Name, nil, "sent unexpected JSON")
	}
	list := make([]llm.Model, 0, len(listed.Data))
	for _, m := range listed.Data {
		embeds := strings.Contains(m.ID, "embed")
		list = append(list, llm.Model{
			ID: m.ID, Name: m.Name, ContextTokens: max(m.ContextLength, m.MaxModelLen),
			OutputTokens: m.TopProvider.MaxCompletionTokens, Generates: !embeds, Embeds: embeds,
		})
	}
	return list, nil
}
