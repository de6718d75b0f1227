package llm

import (
	"context"
	"sync"
	"time"

	"nodest/internal/fair"
)

// Gates bound the calls to models, by model. The zero value is ready to use.
type Gates struct {
	mu sync.Mutex
	by map[string]*Gate
}

// For returns the gate of a model; most is how many calls it lets run side by side when it is made.
func (g *Gates) For(model string, most int) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]*Gate{}
	}
	if g.by[model] == nil {
		gate := &Gate{most: most, limit: most}
		gate.turns = fair.New(fair.Rules{Places: func() int64 { return int64(gate.allowed(time.Now())) }})
		g.by[model] = gate
	}
	return g.by[model]
}

// Gate bounds what runs side by side, in turns of the users it runs for. After Slow half as many
// may run; each minute without it adds one again. It is safe for concurrent use.
type Gate struct {
	most  int
	turns *fair.Gate

	mu     sync.Mutex
	limit  int
	slowed time.Time // when the limit was lowered last
}

// Enter waits until one more may run for a user, or ctx ends. leave ends what it let in.
func (g *Gate) Enter(ctx context.Context, userID string) (leave func(), err error) {
	return g.turns.Enter(ctx, userID, 1, false)
}

// allowed is how many may run.
func (g *Gate) allowed(now time.Time) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allowedLocked(now)
}

func (g *Gate) allowedLocked(now time.Time) int {
	return min(g.most, g.limit+int(now.Sub(g.slowed)/time.Minute))
}

// Slow halves how many may run: the model has refused a call for too many requests.
func (g *Gate) Slow(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = max(1, g.allowedLocked(now)/2)
	g.slowed = now
}
