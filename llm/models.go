package llm

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// ModelList keeps the list of a provider's models for a few minutes. The zero value is
// ready to use, by many goroutines at once.
type ModelList struct {
	mu     sync.Mutex
	models []Model
	asked  time.Time     // when models was read
	places chan struct{} // places for those who fetch it; nil = nobody has
}

// How long a list is kept, how many models it has at most, and the longest id and name in
// bytes. A model with a longer id is left out, a longer name is cut.
const (
	modelsAge  = 5 * time.Minute
	maxModels  = 2000
	longModel  = 256
	longCalled = 200
	// An answer takes several times its bytes while it is read, so few are at once.
	fetchedAtOnce = 2
)

// Get returns the list, asked for with fetch unless it is fresh. An error is not kept.
func (l *ModelList) Get(ctx context.Context, fetch func(context.Context) ([]Model, error)) ([]Model, error) {
	known, places := l.fresh()
	if known != nil {
		return known, nil
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if known, _ := l.fresh(); known != nil { // somebody else has fetched it meanwhile
		return known, nil
	}
	list, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	list = boundedModels(list)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.models, l.asked = list, time.Now()
	return slices.Clone(list), nil
}

// fresh returns a copy of the list, nil if it has to be fetched, and the places for that.
func (l *ModelList) fresh() (list []Model, places chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil {
		l.places = make(chan struct{}, fetchedAtOnce)
	}
	if time.Since(l.asked) < modelsAge {
		list = slices.Clone(l.models)
	}
	return list, l.places
}

// boundedModels limits what a provider can make us keep and send.
func boundedModels(list []Model) []Model {
	kept := make([]Model, 0, min(len(list), maxModels))
	for _, m := range list {
		if len(kept) == maxModels {
			break
		}
		if m.ID == "" || len(m.ID) > longModel {
			continue
		}
		if m.Name = oneLine(m.Name); len(m.Name) > longCalled {
			m.Name = strings.ToValidUTF8(m.Name[:longCalled], "") + "…"
		}
		kept = append(kept, m)
	}
	return kept
}
