// Package character manages characters and the documents that shape a chat with them:
// cards, world books, presets, regex scripts and personas, and the user's settings. It
// stores every document byte for byte, validates input, and compiles the documents in
// use for a turn.
package character

import (
	"context"

	"nodest/internal/jobs"
	"nodest/internal/lru"
	"nodest/internal/op"
)

// Tx is what a transaction offers for the acting user's characters.
type Tx struct {
	op.Tx
	SettingsTx
	CharacterTx
	ResourceTx
	StampTx
	Jobs jobs.Tx
}

// Store keeps what a Service needs; package store provides it.
type Store = op.Store[Tx]

// Service has the operations on characters, resources and the user's settings. It
// is safe for concurrent use.
type Service struct {
	store    Store
	opts     Options
	compiled *lru.Cache[string, *Documents] // documents by version
	displays *lru.Cache[string, bool]       // Wanted.mayDisplay, by the same
}

// Options tune a Service. The zero value is ready to use.
type Options struct {
	// CheckProvider returns fault.Invalid for the name of a provider that does not
	// exist; nil = all names pass.
	CheckProvider func(ctx context.Context, userID, name string) error
	// HasToolServer reports whether there is a server of that name whose tools characters may
	// call; nil = there is none.
	HasToolServer func(name string) bool
	// Replan is called in the transaction that changes when characters post in the circle:
	// their settings, or the user's time zone; nil = nobody plans that.
	Replan func(tx jobs.Tx) error
}

// New returns a Service.
func New(store Store, o Options) *Service {
	return &Service{store: store, opts: o, compiled: lru.New[string, *Documents](keepDocs), displays: lru.New[string, bool](keepDisplays)}
}

func (svc *Service) replan(tx Tx, changed bool) error {
	if !changed || svc.opts.Replan == nil {
		return nil
	}
	return svc.opts.Replan(tx.Jobs)
}
