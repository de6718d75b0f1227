package llm

import (
	"context"
	"sync"
	"time"
)

// Gates bound the calls to models, by model. The zero value is ready to use.
type Gates struct {
	mu sync.Mutex
	by map[string]*Gate
}

// Of returns the gate of a model. most is how many calls it lets run side by side when it is
// made.
func (g *Gates) Of(model string, most int) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]*Gate{}
	}
	if g.by[model] == nil {
		g.by[model] = &Gate{most: most, limit: most, left: make(chan struct{}, 1)}
	}
	return g.by[model]
}

// Gate bounds what runs side by side. After Slow half as many may; each minute without it adds
// one again. It is safe for concurrent use.
type Gate struct {
	most int
	left chan struct{} // somebody has left

	mu      sync.Mutex
	running int
	limit   int
	slowed  time.Time // when the limit was lowered last
}

// Enter waits until one more may run, or ctx ends.
func (g *Gate) Enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		if g.running < g.allowed(time.Now()) {
			g.running++
			g.mu.Unlock()
			g.wake() // there may be room for another one
			return nil
		}
		g.mu.Unlock()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-g.left:
		}
	}
}

func (g *Gate) wake() {
	select {
	case g.left <- struct{}{}:
	default:
	}
}

// Leave ends what Enter let in.
func (g *Gate) Leave() {
	g.mu.Lock()
	g.running--
	g.mu.Unlock()
	g.wake()
}

// allowed is how many may run.
func (g *Gate) allowed(now time.Time) int {
	return min(g.most, g.limit+int(now.Sub(g.slowed)/time.Minute))
}

// Slow halves how many may run: the model has refused a call for too many requests.
func (g *Gate) Slow(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = max(1, g.allowed(now)/2)
	g.slowed = now
}
