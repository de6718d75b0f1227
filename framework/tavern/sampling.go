package tavern

import "nodest/llm"

// Sample gives a request the settings of the preset beyond temperature, top_p and the numbers of
// tokens, which users can set as well. A seed and stop sequences that the request has already stay.
func (c *Compiled) Sample(r *llm.Request) {
	s := &c.preset.Sampling
	r.Sampling = llm.Sampling{
		TopK: s.TopK, TopA: s.TopA, MinP: s.MinP,
		FrequencyPenalty: s.FrequencyPenalty, PresencePenalty: s.PresencePenalty, RepetitionPenalty: s.RepetitionPenalty,
		LogitBias: s.LogitBias, Effort: s.ReasoningEffort, Verbosity: s.Verbosity,
	}
	if r.Seed == nil {
		r.Seed = s.Seed
	}
	if len(r.Stop) == 0 {
		r.Stop = s.Stop
	}
}
