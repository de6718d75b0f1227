package research

import (
	"strings"
	"unicode"

	"nodest/websearch/intent"
	"nodest/websearch/research/agent"
)

// Estimate is what a run will probably cost.
type Estimate struct {
	Tokens  int      `json:"tokens"`
	Calls   int      `json:"calls"`
	Seconds int      `json:"seconds"`
	USD     *float64 `json:"usd"` // nil = the price is not known
}

// languageOf is the language of a question.
func languageOf(question string) string {
	if strings.ContainsFunc(question, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return "zh"
	}
	return "en"
}

func queriesOf(question string) []string { return []string{intent.Query(question)} }

func estimateOf(p *agent.Plan) Estimate {
	return Estimate{Tokens: p.Budget.Tokens / 2, Calls: 8, Seconds: p.Budget.Seconds / 2}
}
