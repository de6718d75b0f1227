package research

import "nodest/websearch/research/agent"

// Estimate is what a run will probably cost.
type Estimate struct {
	agent.Expected
	USD *float64 `json:"usd"` // nil = the price is not known
}

// earlierRuns is how many runs an estimate is made of.
const earlierRuns = 20

// estimate says what a plan will probably cost, by what the newest runs of the user have.
func estimate(tx Tx, p *agent.Plan) (Estimate, error) {
	earlier, _, err := tx.Researches("", "", earlierRuns)
	if err != nil {
		return Estimate{}, err
	}
	var shares []float64
	usd, tokens := 0.0, 0
	for _, r := range earlier {
		if r.State != Done || r.Cost.Tokens() == 0 {
			continue
		}
		shares = append(shares, float64(r.Cost.Tokens())/float64(r.Plan.Budget.Tokens))
		if r.Cost.USD > 0 {
			usd, tokens = usd+r.Cost.USD, tokens+r.Cost.Tokens()
		}
	}
	e := Estimate{Expected: agent.Estimate(*p, shares)}
	if tokens > 0 {
		e.USD = new(usd / float64(tokens) * float64(e.Tokens))
	}
	return e, nil
}
