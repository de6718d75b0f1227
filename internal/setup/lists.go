package setup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"nodest/internal/lru"
	"nodest/llm"
	"nodest/llm/openai"
)

// lists remembers the lists of models that providers have told, by the key with which they were asked. A turn
// does not wait for a list: it is asked for beside the turn, once for all of them, and what was told before counts
// until the answer is there. Only the first turns with a key wait for it, a moment.
type lists struct {
	told   *lru.Cache[ownKey, list]
	begun  *lru.Cache[ownKey, time.Time] // when a list was asked for first
	asking singleflight.Group
}

type list struct {
	models []llm.Model
	asked  time.Time
	failed bool // models are those of the time before
}

const (
	keepModels  = 20_000 // all lists together
	listAge     = time.Hour
	unlistedAge = 5 * time.Minute        // instead, for a list that lacks the model, and after a failure
	firstList   = 300 * time.Millisecond // from the first question on, in which turns wait; nobody notices it
	askBeside   = 30 * time.Second       // in which the answer must come; nobody waits for it
)

func newLists() *lists {
	return &lists{told: lru.New[ownKey, list](keepModels), begun: lru.New[ownKey, time.Time](keepOwn)}
}

// keyOf names a provider with a key, as which its clients and its lists are kept. The server's key is "".
func keyOf(provider, secret string) ownKey {
	if secret == "" {
		return ownKey{provider: provider}
	}
	return ownKey{provider, sha256.Sum256([]byte(secret))}
}

// find returns a model as the list of a provider tells it, as far as it is known; by is the key that p has.
func (l *lists) find(ctx context.Context, p llm.Provider, by ownKey, model string) (llm.Model, bool) {
	known, has := l.told.Get(by)
	if m, found := known.find(model); has && known.serves(found) {
		return m, found
	}
	seen := known.asked
	answer := l.asking.DoChan(fmt.Sprintf("%s %x", by.provider, by.key), func() (any, error) {
		if now, _ := l.told.Get(by); !now.asked.After(seen) { // else the answer has just come
			l.ask(context.WithoutCancel(ctx), p, by)
		}
		return nil, nil
	})
	if !has {
		ctx, cancel := context.WithDeadline(ctx, l.firstAsked(by).Add(firstList))
		defer cancel()
		select {
		case <-answer:
		case <-ctx.Done():
		}
		known, _ = l.told.Get(by)
	}
	return known.find(model)
}

// firstAsked returns when a list was asked for first: now, if it was not.
func (l *lists) firstAsked(by ownKey) time.Time {
	at, ok := l.begun.Get(by)
	if !ok {
		at = time.Now()
		l.begun.Put(by, at, 1)
	}
	return at
}

// ask asks a provider for its list. A failure is remembered too; the list from before stays.
func (l *lists) ask(ctx context.Context, p llm.Provider, by ownKey) {
	ctx, cancel := context.WithTimeout(ctx, askBeside)
	defer cancel()
	models, err := p.Models(ctx)
	if err != nil {
		known, _ := l.told.Get(by)
		models = known.models
	}
	l.told.Put(by, list{models: models, asked: time.Now(), failed: err != nil}, len(models)+1)
}

func (l *list) find(model string) (llm.Model, bool) {
	i := slices.IndexFunc(l.models, func(m llm.Model) bool { return m.ID == model })
	if i < 0 {
		return llm.Model{}, false
	}
	return l.models[i], true
}

// serves reports whether a list is new enough; found says whether it has the model.
func (l *list) serves(found bool) bool {
	if l.failed || !found {
		return time.Since(l.asked) < unlistedAge
	}
	return time.Since(l.asked) < listAge
}

// context returns the context of a model in tokens, as the list tells it, else as it is with all models of the
// provider; 0 = it is not known.
func (l *lists) context(ctx context.Context, p llm.Provider, by ownKey, model string) int {
	m, _ := l.find(ctx, p, by, model)
	return cmp.Or(m.ContextTokens, sameContext[p.Name()])
}

// calls reports whether a model calls tools. Without the list, the model's answer tells it.
func (l *lists) calls(ctx context.Context, p llm.Provider, by ownKey, model string) bool {
	m, _ := l.find(ctx, p, by, model)
	return !m.NoTools
}

// sees reports whether a model understands images. Only OpenRouter tells more in its list of models than a name does.
func (l *lists) sees(ctx context.Context, p llm.Provider, by ownKey, model string) bool {
	model = cmp.Or(model, p.DefaultModel(ctx))
	if p.Name() == openai.OpenRouter {
		if m, found := l.find(ctx, p, by, model); found {
			return m.Sees
		}
	}
	return llm.KnownToSee(model)
}

// sameContext is the context of the providers whose models all have about the same.
var sameContext = map[string]int{"gemini": 1_000_000, "offline": 32_768}
