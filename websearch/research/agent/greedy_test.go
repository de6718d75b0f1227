package agent

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"

	"nodest/llm"
)

// greedy is a model that is never satisfied. Its reply depends on the prompt and the seed only, so that
// a run which is played again gets the same one if, and only if, it asks the same.
type greedy struct {
	seed    uint64
	content bool    // it accepts every answer
	ratio   float64 // tokens of prompts to their estimate; 0 = 1
	thinks  bool    // it also uses what it may think
	wild    bool    // it writes up to twice as much as it may

	mu    sync.Mutex
	calls int
	worst int // tokens of the largest call
}

var nonce = regexp.MustCompile(`⟦/?\w{8}`)

func (g *greedy) Ask(_ context.Context, p llm.Prompt) (string, error) {
	h := fnv.New64a()
	for _, m := range p.Messages {
		h.Write([]byte(nonce.ReplaceAllString(m.Text, "")))
	}
	fmt.Fprint(h, p.Task)
	r := rand.New(rand.NewPCG(g.seed, h.Sum64()))
	reply := g.reply(r, p)
	ratio := g.ratio
	if ratio == 0 {
		ratio = 1
	}
	u := llm.Usage{PromptTokens: int(ratio * float64(llm.EstimatePrompt(p.Messages)))}
	if u.CompletionTokens = int((0.2 + 0.8*r.Float64()) * float64(p.MaxTokens)); g.thinks {
		u.CompletionTokens += int(r.Float64() * float64(p.MaxThought))
	}
	if g.wild {
		u.CompletionTokens += int(r.Float64() * float64(u.CompletionTokens))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	g.worst = max(g.worst, u.PromptTokens+u.CompletionTokens)
	p.Used(u)
	return reply, nil
}

func (g *greedy) reply(r *rand.Rand, p llm.Prompt) string {
	word := func() string { return fmt.Sprintf("word%d", r.Int64N(1e12)) }
	pass := g.content || r.IntN(10) == 0
	switch strings.TrimPrefix(string(p.Task), "research.") {
	case "step":
		return g.step(r, offered(p), word)
	case "question":
		return fmt.Sprintf(`{"needsDefinitive":%v,"needsFreshness":%v,"needsCompleteness":%v}`, r.IntN(5) > 0, r.IntN(5) == 0, r.IntN(3) == 0)
	case "check":
		return fmt.Sprintf(`{"think":"%s","pass":%v,"improvement_plan":"For the best answer, you must mention %s."}`, word(), pass, word())
	case "rewrite":
		return fmt.Sprintf(`{"queries":[{"q":"%s %s"},{"q":"%s","tbs":"qdr:y"}]}`, word(), word(), word())
	case "cluster":
		return `{"clusters":[]}`
	case "analysis":
		return fmt.Sprintf(`{"recap":"%s","blame":"%s","improvement":"%s"}`, word(), word(), word())
	case "verify":
		return fmt.Sprintf(`{"verdicts":[{"n":1,"verdict":"%s"}]}`, []string{"supported", "not supported", "cannot tell"}[r.IntN(3)])
	case "split":
		return fmt.Sprintf(`{"subproblems":["Who is %s?","What is %s?","Where is %s?"]}`, word(), word(), word())
	}
	return "The bridge of Arven was opened on 3 May 1931 [^1]. Nothing else is known about " + word() + "."
}

func (g *greedy) step(r *rand.Rand, offers string, word func() string) string {
	if r.IntN(30) == 0 {
		return "I would rather not use JSON."
	}
	switch offers[r.IntN(len(offers))] {
	case 'v':
		return fmt.Sprintf(`{"think":"%s","action":"visit","URLTargets":[%d,%d]}`, word(), r.IntN(30), r.IntN(30))
	case 'r':
		return fmt.Sprintf(`{"think":"%s","action":"reflect","questionsToAnswer":["What about %s?","Which %s?"]}`, word(), word(), word())
	case 'a':
		if g.content || r.IntN(3) == 0 {
			return fmt.Sprintf(`{"think":"%s","action":"answer","answer":"The bridge of Arven was opened on 3 May 1931 [^1], says %s."}`, word(), word())
		}
	}
	if strings.Contains(offers, "s") {
		return fmt.Sprintf(`{"think":"%s","action":"search","searchRequests":["%s %s","%s"]}`, word(), word(), word(), word())
	}
	return `{"action":"visit"}`
}
