package nodest

import (
	"context"
	"sync"
	"time"

	"nodest/internal/lru"
	"nodest/llm"
)

// toolless remembers models that have refused tools, for a day: their server may learn it.
type toolless struct {
	since *lru.Cache[toollessKey, time.Time]
}

// toollessKey names a model as one user reaches it: servers of the same name differ.
type toollessKey struct{ user, provider, model string }

const (
	rememberToolless = 24 * time.Hour
	mostToolless     = 2000 // models
)

func newToolless() toolless { return toolless{lru.New[toollessKey, time.Time](mostToolless)} }

func (l toolless) note(k toollessKey, now time.Time) { l.since.Put(k, now, 1) }

func (l toolless) knows(k toollessKey, now time.Time) bool {
	since, ok := l.since.Get(k)
	return ok && now.Sub(since) < rememberToolless
}

func (t *turn) modelKey() toollessKey {
	return toollessKey{t.gen.UserID, t.setup.model.Provider, t.setup.model.Name}
}

// mayCall finds out, when it is first called, whether the model of a turn is given tools: the turn is a
// reply, its options do not exclude it, and the model is not known to call none. It may ask the provider.
func (e *Engine) mayCall(t *turn) func(context.Context) bool {
	use, model := t.setup.Options.UseToolCalls, t.setup.model
	if t.task != llm.Reply || use != nil && !*use || e.toolless.knows(t.modelKey(), time.Now()) {
		return func(context.Context) bool { return false }
	}
	if model.Calls == nil {
		return func(context.Context) bool { return true }
	}
	var once sync.Once
	var may bool
	return func(ctx context.Context) bool {
		once.Do(func() { may = model.Calls(ctx) })
		return may
	}
}
