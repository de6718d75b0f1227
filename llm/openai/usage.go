package openai

import (
	"encoding/json"

	"nodest/llm"
	"nodest/llm/loose"
)

// wireUsage is the usage that a server has told so far. Servers differ in the names, and some tell
// the prompt in one event and the reply in another.
type wireUsage struct {
	PromptTokens     loose.Number `json:"prompt_tokens"`
	InputTokens      loose.Number `json:"input_tokens"`
	CompletionTokens loose.Number `json:"completion_tokens"`
	OutputTokens     loose.Number `json:"output_tokens"`
	TotalTokens      loose.Number `json:"total_tokens"`
	CacheHits        loose.Number `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cost             loose.Number `json:"cost"`                    // OpenRouter, USD
	Prompt           cachedTokens `json:"prompt_tokens_details"`
	Input            cachedTokens `json:"input_tokens_details"`
}

type cachedTokens struct {
	CachedTokens loose.Number `json:"cached_tokens"`
}

// add reads what can be read of a report.
func (u *wireUsage) add(raw json.RawMessage) {
	_ = loose.Unmarshal(raw, u) // anything but an object tells nothing
}

// usage is what was told; nil = nothing. A number that was not told is 0.
func (u *wireUsage) usage() *llm.Usage {
	prompt, askedFor := larger(u.PromptTokens, u.InputTokens)
	completion, written := larger(u.CompletionTokens, u.OutputTokens)
	total, summed := u.TotalTokens.Int()
	cost := u.Cost.Float()
	if !askedFor && !written && !summed && cost == nil {
		return nil
	}
	if !written && askedFor {
		completion = max(total-prompt, 0)
	}
	if !askedFor && written {
		prompt = max(total-completion, 0)
	}
	cached, _ := larger(u.Prompt.CachedTokens, u.Input.CachedTokens)
	out := &llm.Usage{PromptTokens: prompt, CompletionTokens: completion, CachedTokens: max(cached, u.CacheHits.IntOr(0))}
	if cost != nil {
		out.CostUSD = new(*cost)
	}
	return out
}

// larger is the larger of two numbers that mean the same: some servers send 0 under the name that
// they do not use.
func larger(a, b loose.Number) (n int, known bool) {
	x, known := a.Int()
	y, also := b.Int()
	return max(x, y), known || also
}
