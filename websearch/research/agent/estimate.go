package agent

// Expected is what a run will probably take.
type Expected struct {
	Tokens  int `json:"tokens"`
	Calls   int `json:"calls"` // calls to the language model
	Seconds int `json:"seconds"`
}

// Assumptions about a run, while nothing is known of earlier ones.
const (
	usualShare   = 0.9 // share of its tokens that a run uses
	usualPrompt  = 800 // tokens of a prompt without what is known
	usualLearned = 500 // tokens that a step adds to what is known
	usualSide    = 1.5 // calls of a step beside the one that chooses it
	secondsCall  = 5.0 // a call of the model
	secondsStep  = 4.0 // searching or reading pages
	usualAnswer  = 0.3 // share of the tokens that a reply may have
)

// EstimateQuotes says what a run without a model will probably take: a search, and the reading of its pages.
func EstimateQuotes() Expected {
	const steps = 2
	return Expected{Seconds: steps * secondsStep}
}

// Estimate says what a run will probably take. earlier are the shares of their tokens that earlier runs of the
// user have used. Calls and seconds follow from steps of usual size.
func Estimate(p Plan, earlier []float64) Expected {
	share := usualShare
	for _, s := range earlier {
		share += s
	}
	share /= float64(len(earlier) + 1)
	e := Expected{Tokens: int(share * float64(p.Budget.Tokens))}
	purse := newPurse(p.Budget.Tokens, 0)
	left, known := share*float64(p.Budget.Tokens)-float64(purse.kept()), 0.0
	calls, steps := 2.0, 0.0 // the final answer, and the check of its sentences
	for left > usualPrompt+float64(sizeStep.least) {
		step := usualPrompt + min(known, knownShare*left, mostKnown) + usualAnswer*min(float64(sizeStep.most), left)
		left -= step + usualSide*(usualPrompt+usualAnswer*float64(sizeRewrite.most))
		known += usualLearned
		calls, steps = calls+1+usualSide, steps+1
	}
	e.Calls = int(calls + 0.5)
	seconds := (calls*secondsCall + steps*secondsStep) / float64(max(p.Team, 1))
	if limit := usualShare * float64(p.Budget.Seconds); limit > 0 && seconds > limit {
		seconds = limit
	}
	e.Seconds = int(seconds + 0.5)
	return e
}
