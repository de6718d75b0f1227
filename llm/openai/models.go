package openai

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"nodest/llm"
)

// Models lists what the server offers.
func (c *Client) Models(ctx context.Context) ([]llm.Model, error) {
	return c.models.Get(ctx, c.fetchModels)
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
	Pricing      json.RawMessage `json:"pricing"`              // OpenRouter: {prompt, completion}; others mean other things by it
	Architecture json.RawMessage `json:"architecture"`         // OpenRouter: {input_modalities}
	Parameters   json.RawMessage `json:"supported_parameters"` // OpenRouter: a list
	Created      json.RawMessage `json:"created"`              // a Unix time
	Capabilities json.RawMessage `json:"capabilities"`         // Mistral: {function_calling}
}

// sees says whether the model understands images: by what the server tells, else by the
// model's name.
func (m *wireModel) sees() bool {
	var told struct {
		Input []string `json:"input_modalities"`
	}
	if json.Unmarshal(m.Architecture, &told) != nil || told.Input == nil {
		return llm.KnownToSee(m.ID)
	}
	return slices.Contains(told.Input, "image")
}

// noTools says whether the server tells that the model does not call tools.
func (m *wireModel) noTools() bool {
	var parameters []string
	if json.Unmarshal(m.Parameters, &parameters) == nil && len(parameters) > 0 {
		return !slices.Contains(parameters, "tools")
	}
	var can struct {
		Calls *bool `json:"function_calling"`
	}
	return json.Unmarshal(m.Capabilities, &can) == nil && can.Calls != nil && !*can.Calls
}

// prices are those of a million tokens, nil where the server does not tell them.
func (m *wireModel) prices() (prompt, completion *float64) {
	var tokens struct{ Prompt, Completion json.RawMessage } // of one token
	if json.Unmarshal(m.Pricing, &tokens) != nil {
		return nil, nil
	}
	return perMillion(tokens.Prompt), perMillion(tokens.Completion)
}

// perMillion reads the price of a token, which is a number in a string. -1 says that it
// depends.
func perMillion(raw json.RawMessage) *float64 {
	price, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(price >= 0 && price < 1) {
		return nil
	}
	return new(math.Round(price*1e12) / 1e6)
}

func (c *Client) fetchModels(ctx context.Context) ([]llm.Model, error) {
	var answer json.RawMessage
	err := c.keys.Ask(ctx, func(ctx context.Context, key llm.Key) error {
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
		prompt, completion := m.prices()
		list = append(list, llm.Model{
			ID: m.ID, Name: m.Name, ContextTokens: max(m.ContextLength, m.MaxModelLen),
			OutputTokens: m.TopProvider.MaxCompletionTokens, Generates: !embeds, Embeds: embeds, Sees: m.sees(), NoTools: m.noTools(),
			PromptPrice: prompt, CompletionPrice: completion, Created: unixTime(m.Created),
		})
	}
	return list, nil
}
