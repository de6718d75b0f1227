package openai

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"nodest/llm"
	"nodest/llm/loose"
)

// Models lists what the server offers.
func (c *Client) Models(ctx context.Context) ([]llm.Model, error) {
	return c.models.Get(ctx, c.fetchModels)
}

// wireModel is a model as a server lists it.
type wireModel struct {
	ID            loose.Text   `json:"id"`
	Name          loose.Text   `json:"name"`
	ContextLength loose.Number `json:"context_length"`     // OpenRouter
	MaxModelLen   loose.Number `json:"max_model_len"`      // vLLM
	ContextWindow loose.Number `json:"context_window"`     // Groq
	MaxContext    loose.Number `json:"max_context_length"` // Mistral
	TopProvider   struct {
		MaxCompletionTokens loose.Number `json:"max_completion_tokens"`
	} `json:"top_provider"`
	Pricing struct {
		Prompt, Completion loose.Number
	} `json:"pricing"` // OpenRouter, of one token; others mean other things by it
	Architecture struct {
		Input loose.List[loose.Text] `json:"input_modalities"`
	} `json:"architecture"` // OpenRouter
	Parameters   loose.List[loose.Text] `json:"supported_parameters"` // OpenRouter
	Created      loose.Number           `json:"created"`              // a Unix time
	Capabilities struct {
		Calls json.RawMessage `json:"function_calling"`
	} `json:"capabilities"` // Mistral
}

// context is the size of the context in tokens, as the server calls it; 0 = it does not tell.
func (m *wireModel) context() int {
	return max(m.ContextLength.IntOr(0), m.MaxModelLen.IntOr(0), m.ContextWindow.IntOr(0), m.MaxContext.IntOr(0))
}

// sees says whether the model understands images: by what the server tells, else by the
// model's name.
func (m *wireModel) sees() bool {
	if m.Architecture.Input == nil {
		return llm.KnownToSee(string(m.ID))
	}
	return slices.Contains(m.Architecture.Input, "image")
}

// noTools says whether the server tells that the model does not call tools.
func (m *wireModel) noTools() bool {
	if len(m.Parameters) > 0 {
		return !slices.Contains(m.Parameters, "tools")
	}
	return string(m.Capabilities.Calls) == "false"
}

// perMillion is the price of a million tokens, nil where the server does not tell it. A price of
// -1 says that it depends.
func perMillion(price loose.Number) *float64 {
	p := price.Float()
	if p == nil || *p < 0 || *p >= 1 {
		return nil
	}
	return new(math.Round(*p*1e12) / 1e6)
}

func (c *Client) fetchModels(ctx context.Context) ([]llm.Model, error) {
	var answer json.RawMessage
	err := c.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		return c.get(ctx, c.address("/models"), key, &answer)
	})
	if err != nil {
		return nil, err
	}
	var listed struct{ Data loose.List[wireModel] }
	if loose.Unmarshal(answer, &listed) != nil && loose.Unmarshal(answer, (*[]wireModel)(&listed.Data)) != nil { // Together sends the list alone
		return nil, llm.BadAnswer(c.opts.Name, nil, "sent unexpected JSON")
	}
	list := make([]llm.Model, 0, len(listed.Data))
	for _, m := range listed.Data {
		id := string(m.ID)
		embeds := strings.Contains(id, "embed")
		list = append(list, llm.Model{
			ID: id, Name: string(m.Name), ContextTokens: m.context(),
			OutputTokens: m.TopProvider.MaxCompletionTokens.IntOr(0), Generates: !embeds, Embeds: embeds, Sees: m.sees(), NoTools: m.noTools(),
			PromptPrice: perMillion(m.Pricing.Prompt), CompletionPrice: perMillion(m.Pricing.Completion),
			Created: int64(m.Created.IntOr(0)),
		})
	}
	return list, nil
}
