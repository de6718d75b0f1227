package research

import "nodest/websearch/research/agent"

// Estimate is what a run will probably cost.
type Estimate struct {
	Tokens  int      `json:"tokens"`
	Calls   int      `json:"calls"`
	Seconds int      `json:"seconds"`
	USD     *float64 `json:"usd"` // nil = the price is not known
}

func estimateOf(p *agent.Plan) Estimate {
	return Estimate{Tokens: p.Budget.Tokens / 2, Calls: 8, Seconds: p.Budget.Seconds / 2}
}
