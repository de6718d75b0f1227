package setup

import (
	"cmp"
	"context"
	"slices"
	"time"

	"nodest/internal/lru"
	"nodest/llm"
)

// contexts remembers the contexts of models, so that a provider is not asked for its list in every turn.
// Those with the same name count as one model, whoever's key asks.
type contexts struct {
	*lru.Cache[llm.Ref, modelContext]
}

type modelContext struct {
	tokens int // 0 = not known
	until  time.Time
}

// How many contexts are kept, and how long: until the list may tell another one, or tells it at all.
const (
	keepContexts = 1000
	contextAge   = time.Hour
	unknownAge   = 5 * time.Minute
)

func newContexts() contexts { return contexts{lru.New[llm.Ref, modelContext](keepContexts)} }

// of returns the context of a model in tokens, as the provider's list tells it; else as it was told before, or
// as it is with all models of the provider. 0 = it is not known.
func (c contexts) of(ctx context.Context, p llm.Provider, model string) int {
	at := llm.Ref{Provider: p.Name(), Model: model}
	known, ok := c.Get(at)
	if ok && time.Now().Before(known.until) {
		return known.tokens
	}
	asking, cancel := context.WithTimeout(ctx, askProviders)
	defer cancel()
	list, _ := p.Models(asking) // without the list, what was known counts
	if ctx.Err() != nil {
		return cmp.Or(known.tokens, sameContext[p.Name()])
	}
	told, age := 0, unknownAge
	if i := slices.IndexFunc(list, func(m llm.Model) bool { return m.ID == model }); i >= 0 && list[i].ContextTokens > 0 {
		told, age = list[i].ContextTokens, contextAge
	}
	known = modelContext{cmp.Or(told, known.tokens, sameContext[p.Name()]), time.Now().Add(age)}
	c.Put(at, known, 1)
	return known.tokens
}

// sameContext is the context of the providers whose models all have about the same.
var sameContext = map[string]int{"gemini": 1_000_000, "offline": 32_768}
