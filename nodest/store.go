package nodest

import (
	"context"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/cognition"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
)

// Store keeps what the engine needs; package store provides it on SQLite and
// PostgreSQL.
type Store interface {
	op.Store[Tx]

	// Checkpoint stores the text so far of a generation that has not ended (Text,
	// Reasoning and Blocks) and lets its lease last for lease from now. It emits no event.
	// It returns fault.Conflict, and changes nothing, if the generation has ended
	// meanwhile or its lease is no longer g.LeaseOwner's.
	Checkpoint(ctx context.Context, g *chat.Generation, lease time.Duration) error

	// Abandoned returns generations that have not ended (queued ones too) although
	// their lease is over (a crash), over all users, oldest first, at most limit.
	// With owner not empty, those whose lease is not owner's count as well, over or
	// not: that is for a process that has the database to itself.
	Abandoned(ctx context.Context, owner string, limit int) ([]*chat.Generation, error)

	// UsageByUser adds up the meter of each user from day to day, both inclusive
	// ("2006-01-02"), by id; users who used nothing are left out.
	UsageByUser(ctx context.Context, from, to, cursor string, limit int) (items []UserUsage, next string, err error)
}

// Tx is the user's data within one transaction.
type Tx struct {
	op.Tx
	Jobs       jobs.Tx
	Memory     memory.Tx
	Characters character.Tx
	Chats      chat.Tx
	Cognition  cognition.Tx
	UserTx
	GenerationTx
}

// UserTx keeps what belongs to the user as a whole.
type UserTx interface {
	// AddUsage adds to the meter of (day of Now, provider, model).
	AddUsage(u UsageRow) error
	// Usage returns the meter from day to day, both inclusive ("2006-01-02"), oldest first: at
	// most the newest 5,000 rows.
	Usage(from, to string) ([]UsageRow, error)
	// Limits returns the user's own limits (0 = the server's default).
	Limits() (UserLimits, error)
	// NoteWarned notes that the user was warned of a limit of money; false = it was noted before.
	NoteWarned(limit string) (bool, error)
	// LockLimits is Limits for a transaction that admits a generation: others that call
	// it for this user wait until this one ends, so that Running counts the generations
	// that they admitted. It comes after LockConversation.
	LockLimits() (UserLimits, error)
	// Ack stores how far a device has read; nil read = seq only.
	Ack(deviceID string, seq int64, read map[string]string) error
}

// GenerationTx keeps generations and the prompts they sent.
type GenerationTx interface {
	InsertGeneration(g *chat.Generation) error
	Generation(id string) (*chat.Generation, error)
	// UpdateGeneration stores g; NotFound for one that has ended.
	UpdateGeneration(g *chat.Generation) error
	PutPrompt(p *StoredPrompt) error
	Prompt(id string) (*StoredPrompt, error)
	// LastPrompt returns the id of the newest prompt of a conversation, "" without one.
	LastPrompt(conversationID string) (id string, err error)
}
