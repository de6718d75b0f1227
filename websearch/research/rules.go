package research

import (
	"context"

	"nodest/websearch/research/agent"
)

// Estimate is what a run will probably cost.
type Estimate struct {
	agent.Expected
	USD *float64 `json:"usd"` // nil = the price is not known
}

// earlierRuns is how many runs an estimate is made of.
const earlierRuns = 20

// asksModel reports whether runs of a user ask a model now. One that cannot be asked for counts as one: a plan
// needs none, and its run says why it has failed.
func (s *Service) asksModel(ctx context.Context, userID string) bool {
	model, err := s.opts.Model(ctx, userID)
	return model != nil || err != nil
}

// estimate says what a plan will probably cost, by what the newest runs of the user have. asks is asksModel.
func estimate(tx Tx, p *agent.Plan, asks bool) (Estimate, error) {
	if !asks {
		return Estimate{agent.EstimateQuotes(), new(0.0)}, nil
	}
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
