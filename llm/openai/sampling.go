package openai

import (
	"strings"

	"nodest/llm"
)

// sampling has the members of a request that not every server knows.
type sampling struct {
	FrequencyPenalty  *float64           `json:"frequency_penalty,omitempty"`
	PresencePenalty   *float64           `json:"presence_penalty,omitempty"`
	LogitBias         map[string]float64 `json:"logit_bias,omitempty"`
	TopK              *int               `json:"top_k,omitempty"`
	TopA              *float64           `json:"top_a,omitempty"`
	MinP              *float64           `json:"min_p,omitempty"`
	RepetitionPenalty *float64           `json:"repetition_penalty,omitempty"`

	Effort    string     `json:"reasoning_effort,omitempty"`
	Verbosity string     `json:"verbosity,omitempty"`
	Reasoning *reasoning `json:"reasoning,omitempty"` // OpenRouter's form of Effort
}

type reasoning struct {
	Effort string `json:"effort"`
}

// efforts are the words that servers take for those of llm.Sampling.
var efforts = map[string]string{"min": "low", "low": "low", "medium": "medium", "high": "high", "max": "high"}

// samplingOf chooses what the server takes. OpenAI refuses members that it does not know, and those
// of ordinary models for reasoning ones; OpenRouter leaves out what a model does not take; other
// servers get what local ones and gateways commonly know, and are asked without it if they refuse
// that (ask).
func (c *Client) samplingOf(model string, in *llm.Sampling) sampling {
	out := sampling{
		FrequencyPenalty: in.FrequencyPenalty, PresencePenalty: in.PresencePenalty, LogitBias: in.LogitBias,
		TopK: in.TopK, MinP: in.MinP, RepetitionPenalty: in.RepetitionPenalty, Effort: efforts[in.Effort],
	}
	switch {
	case c.opts.Name == OpenRouter:
		out.TopA, out.Verbosity = in.TopA, in.Verbosity
		if out.Effort != "" {
			out.Reasoning, out.Effort = &reasoning{out.Effort}, ""
		}
	case c.base.Host != openAIHost:
	case thinks(model):
		out = sampling{Effort: out.Effort}
		if strings.HasPrefix(model, "gpt-5") {
			out.Verbosity = in.Verbosity
		}
	default:
		out.TopK, out.MinP, out.RepetitionPenalty, out.Effort = nil, nil, nil, ""
	}
	return out
}

func (s *sampling) isZero() bool {
	return s.FrequencyPenalty == nil && s.PresencePenalty == nil && len(s.LogitBias) == 0 && s.TopK == nil && s.TopA == nil &&
		s.MinP == nil && s.RepetitionPenalty == nil && s.Effort == "" && s.Verbosity == "" && s.Reasoning == nil
}
