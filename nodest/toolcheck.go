package nodest

import (
	"context"
	"time"

	"nodest/llm"
	"nodest/lru"
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
	return toollessKey{t.question.UserID, t.setup.model.Provider, t.setup.model.Name}
}

// mayCall reports whether the model of a turn is given tools: the turn is a reply, its
// options do not exclude it, and the model is not known to call none.
func (e *Engine) mayCall(ctx context.Context, t *turn) bool {
	if use := t.setup.Options.UseToolCalls; t.task != llm.Reply || use != nil && !*use {
		return false
	}
	if e.toolless.knows(t.modelKey(), time.Now()) {
		return false
	}
	calls := t.setup.model.Calls
	return calls == nil || calls(ctx)
}
