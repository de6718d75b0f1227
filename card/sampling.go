package card

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Sampling is what a preset sets of the request besides the prompts; nil or "" where it
// sets nothing that can be used. The members are those of section 4.1 of the
// specification of character cards.
type Sampling struct {
	Temperature   *float64 // 0–2
	TopP          *float64 // 0–1
	MaxTokens     *int     // tokens of the reply
	ContextTokens *int     // tokens of the request and the reply

	TopK              *int     // from 1; SillyTavern's 0 sets nothing
	MinP              *float64 // above 0, to 1
	TopA              *float64 // above 0, to 1
	FrequencyPenalty  *float64 // -2–2
	PresencePenalty   *float64 // -2–2
	RepetitionPenalty *float64 // above 0, to 2; SillyTavern's 1 sets nothing
	Seed              *int64   // from 0; SillyTavern's -1 sets nothing

	ReasoningEffort string // min, low, medium, high or max; SillyTavern's auto sets nothing
	Verbosity       string // low, medium or high; SillyTavern's auto sets nothing

	Stop      []string           // the reply ends before any of these
	LogitBias map[string]float64 // -100–100 for a token, by its number in the model's vocabulary
}

// The least context and the largest numbers of tokens that make sense in a preset.
const (
	leastContext = 512
	mostContext  = 10_000_000
	mostTokens   = 1_000_000
)

// The most stop sequences and biases that a preset can set.
const (
	mostStops  = 64
	mostBiases = 1024
)

// parseSampling reads the settings by the names that SillyTavern gives them. The
// TavernKit library keeps them in an object of their own.
func parseSampling(f fields) Sampling {
	if own := fieldsOf(f["generation_settings"]); own != nil {
		maps.Copy(own, f)
		f = own
	}
	s := Sampling{
		Temperature: f.floatWithin("temperature", 0, 2), TopP: f.floatWithin("top_p", 0, 1),
		MaxTokens:        f.intWithin("openai_max_tokens", 1, mostTokens),
		ContextTokens:    f.intWithin("openai_max_context", leastContext, mostContext),
		TopK:             f.intWithin("top_k", 1, mostTokens),
		MinP:             unless(f.floatWithin("min_p", 0, 1), 0),
		TopA:             unless(f.floatWithin("top_a", 0, 1), 0),
		FrequencyPenalty: f.floatWithin("frequency_penalty", -2, 2), PresencePenalty: f.floatWithin("presence_penalty", -2, 2),
		RepetitionPenalty: unless(unless(f.floatWithin("repetition_penalty", 0, 2), 0), 1),
		ReasoningEffort:   oneOf(f.text("reasoning_effort", ""), "min", "low", "medium", "high", "max"),
		Verbosity:         oneOf(f.text("verbosity", ""), "low", "medium", "high"),
		Stop:              nonEmpty(f.texts("stop")),
	}
	if seed, ok := f.number("seed"); ok && seed >= 0 && seed < 1<<53 {
		s.Seed = new(int64(seed))
	}
	s.Stop = s.Stop[:min(len(s.Stop), mostStops)]
	s.LogitBias = parseBias(f["logit_bias"])
	return s
}

// unless returns nil for the value by which a preset sets nothing.
func unless(value *float64, nothing float64) *float64 {
	if value != nil && *value == nothing {
		return nil
	}
	return value
}

func oneOf(word string, known ...string) string {
	if word = strings.ToLower(word); slices.Contains(known, word) {
		return word
	}
	return ""
}

func parseBias(doc json.RawMessage) map[string]float64 {
	f := fieldsOf(doc)
	if len(f) == 0 || len(f) > mostBiases {
		return nil
	}
	bias := map[string]float64{}
	for token := range f {
		if value := f.floatWithin(token, -100, 100); value != nil {
			bias[token] = *value
		}
	}
	return bias
}
