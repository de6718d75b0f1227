package agent

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A greedy model never has enough. Whatever the budget, the run ends with an answer, within the budget or
// over it by one call at most, without searching twice for the same.
func TestGreedyRunsKeepTheirBudget(t *testing.T) {
	const runs = 1000
	r := rand.New(rand.NewPCG(46, 1))
	var shares []float64
	over, close, closeCalls, calls, ends, began := 0, 0, 0, 0, map[string]int{}, time.Now()
	for i := range runs {
		p := planOf(bridge)
		p.Budget.Tokens = int(2000 * math.Pow(100, r.Float64()))
		p.Team = 1 + r.IntN(4)
		if r.IntN(2) == 0 {
			p.Queries = []string{"arven bridge"}
		}
		if r.IntN(3) == 0 {
			p.Doubtful = Remove
		}
		g := &greedy{seed: uint64(i), ratio: 0.8 + 0.8*r.Float64(), thinks: r.IntN(4) == 0, wild: r.IntN(5) == 0}
		web, rec := newWeb(), newTape()
		res, err := Run(t.Context(), p, web.outside(g), rec)
		if err != nil {
			t.Fatal(err)
		}
		used := res.Cost.Tokens()
		if used > p.Budget.Tokens+g.worst {
			t.Errorf("run %d used %d of %d tokens; its largest call had %d", i, used, p.Budget.Tokens, g.worst)
		}
		if used > p.Budget.Tokens {
			over++
		}
		if used != rec.spent.Tokens() || res.Cost.Calls != g.calls {
			t.Errorf("run %d says that it used %d tokens in %d calls; it was %d in %d", i, used, res.Cost.Calls, rec.spent.Tokens(), g.calls)
		}
		if strings.TrimSpace(res.Answer) == "" {
			t.Errorf("run %d has no answer", i)
		}
		seen := map[string]bool{}
		for _, q := range web.searched {
			words := strings.Join(wordsOf(q), " ")
			if seen[words] {
				t.Errorf("run %d searched for %q twice", i, q)
			}
			seen[words] = true
		}
		e := Estimate(p, shares[max(0, len(shares)-20):])
		if math.Abs(float64(used-e.Tokens)) <= 0.3*float64(e.Tokens) {
			close++
		}
		if math.Abs(float64(res.Cost.Calls-e.Calls)) <= 0.3*float64(e.Calls) {
			closeCalls++
		}
		shares = append(shares, float64(used)/float64(p.Budget.Tokens))
		calls += res.Cost.Calls
		ends[res.End]++
	}
	slices.Sort(shares)
	t.Logf("%d runs in %v, %d calls, ends %v: %d over their budget; used share p10 %.2f, p50 %.2f, p90 %.2f, most %.2f; estimate within 30 %% in %d (of calls, in %d)",
		runs, time.Since(began).Round(time.Millisecond), calls, ends, over, shares[runs/10], shares[runs/2], shares[runs*9/10], shares[runs-1], close, closeCalls)
	if close < runs*8/10 {
		t.Errorf("the estimate was within 30 %% in %d of %d runs", close, runs)
	}
}
