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
	asked  time.Time // when models was read
}

// How long a list is kept, how many models it has at most, and the longest id and name in
// bytes. A model with a longer id is left out, a longer name is cut.
const (
	modelsAge  = 5 * time.Minute
	maxModels  = 2000
	longModel  = 256
	longCalled = 200
)

// Get returns the list, asked for with fetch unless it is fresh. An error is not kept.
func (l *ModelList) Get(ctx context.Context, fetch func(context.Context) ([]Model, error)) ([]Model, error) {
	l.mu.Lock()
	known, age := l.models, time.Since(l.asked)
	l.mu.Unlock()
	if known != nil && age < modelsAge {
		return slices.Clone(known), nil
	}
	fresh, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	fresh = boundedModels(fresh)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.models, l.asked = fresh, time.Now()
	return slices.Clone(fresh), nil
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
