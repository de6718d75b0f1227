// Package chat manages conversations: trees of messages with branches, swipes, summaries
// and save points. It decides what a conversation shows, how a change affects its
// branches and its summary, and which events announce the change. Package nodest adds
// the text that models write.
package chat

import (
	"cmp"
	"context"
	"log/slog"

	"nodest/character"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
)

// Tx is what a transaction offers for the acting user's conversations.
type Tx struct {
	op.Tx
	Jobs       jobs.Tx
	Memory     memory.Tx
	Characters character.Tx
	ConversationTx
	MessageTx
	HistoryTx
	PlayTx
	ForkTx
	SaveTx
	ArchiveTx
	SummaryTx
	RunningTx
	WordTx
}

// Store keeps what a Service needs; package store provides it.
type Store = op.Store[Tx]

// Service has the operations on conversations that need no reply of a model. It is
// safe for concurrent use.
type Service struct {
	store      Store
	characters *character.Service
	opts       Options
}

// Options tune a Service. The zero value is ready to use.
type Options struct {
	// Memory enables the memory.
	Memory bool
	// Model returns the model that writes a user's summaries, and its name; nil = none,
	// and rules write them.
	Model func(ctx context.Context, userID string) (model llm.Asker, name string, err error)
	// Context returns the tokens of the context of the model that such options choose; 0 = it is not
	// known, as where Context is nil.
	Context func(ctx context.Context, userID string, o character.TurnOptions) int
	// Before runs before messages of a conversation are summarised, if it is not nil; the summary waits for it.
	Before func(ctx context.Context, userID, conversationID string)
	// ForkStep is how many texts of a fork one transaction copies; default 300.
	ForkStep int
	// SearchReach is how many messages one call of Search reads; default 20,000.
	SearchReach int
	// Log is slog.Default() where it is nil.
	Log *slog.Logger
}

// New returns a Service.
func New(store Store, characters *character.Service, o Options) *Service {
	o.ForkStep, o.SearchReach = cmp.Or(o.ForkStep, 300), cmp.Or(o.SearchReach, 20_000)
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Service{store: store, characters: characters, opts: o}
}
