// Package op has what the operations of all subjects share: the call and its idempotency
// key, the transaction and the store that runs it, ids, pages, checks of client input,
// and the formats of times, failures and events.
//
// An operation that writes runs through Once: repeating it with the same key and content
// returns the first answer, as it was stored, and has no further effect.
package op

import (
	"context"
	"time"

	"github.com/google/uuid"

	"nodest/internal/audit"
	"nodest/internal/op/id"
	"nodest/internal/stream"
)

// Call is one request of one user. A new Call is made for each request.
type Call struct {
	UserID string
	Device string // for Event.By; "" = server
	// Key is the idempotency key ("" = none), Hash a hash of the operation's
	// name and its content.
	Key, Hash string
	// Room reserves memory before something is read that may be much larger than the request,
	// by its bytes and JSON values. It returns an error if there is not enough. nil = no limit.
	Room func(bytes, values int) error
	// Replayed is set by Once: the answer is that of an earlier call.
	Replayed bool
}

// By is the device that events name as their cause.
func (c *Call) By() string {
	if c.Device == "" {
		return "server"
	}
	return c.Device
}

// Tx is what the transactions of all subjects have in common. Every method acts on
// rows of the user that Update or View was called for; a row of another user is
// fault.NotFound, as if it did not exist. What is returned belongs to the caller.
type Tx interface {
	// UserID is the acting user.
	UserID() string
	// Now is the time of the transaction: UTC, whole milliseconds, the same for
	// all calls.
	Now() time.Time
	// Emit adds events to the user's log, in this order. Seq and At are set at
	// the commit.
	Emit(events ...*stream.Event) error
	// Audit notes in the log that owners read what the acting user does in this transaction.
	Audit(e audit.Entry) error
	// Key looks an idempotency key up (nil when unknown or older than 48 h).
	Key(key string) (*KeyRecord, error)
	// ClaimKey takes an idempotency key for this transaction and returns nil, or the
	// record of the call that had it before. It stores nothing. If another transaction has claimed the
	// key, it waits for that to end: fault.InProgress after 10 seconds. A transaction
	// that is rolled back leaves no claim.
	ClaimKey(key, hash string) (*KeyRecord, error)
	// KeepReply stores the answer under a key that was claimed. Purging something that it names, by an id of
	// 36 characters, empties it.
	KeepReply(key string, reply Reply) error
}

// Store runs transactions with the Tx of a subject; package store provides it on
// SQLite and PostgreSQL. Nothing is written outside Update.
type Store[T any] interface {
	// Update runs fn in one transaction for the user and commits it. Events that
	// fn emitted get their seq in it and are handed to the stream after the
	// commit. fn may run more than once (a transaction that lost a race starts
	// again), so it must have no effect but through tx and on variables that it
	// sets anew in each run. An error of fn rolls back everything it did, and
	// nothing of other transactions in the same group commit.
	Update(ctx context.Context, userID string, fn func(tx T) error) error

	// View runs fn on a consistent snapshot. Writing methods of tx fail.
	View(ctx context.Context, userID string, fn func(tx T) error) error
}

// NewID makes an id: a UUIDv7, so that ids sort by the time they were made.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// HasIDForm reports whether a text has the form of the ids that NewID makes; names that apps and users
// give have another one.
func HasIDForm(text string) bool {
	parsed, ok := id.Parse(text)
	return ok && parsed.Version() == 7
}

// Part is the call of a step that comes before the one that is stored under the
// key of c. No client can send a blank in a key.
func (c *Call) Part(step string) *Call {
	p := &Call{UserID: c.UserID, Device: c.Device, Hash: c.Hash}
	if c.Key != "" {
		p.Key = c.Key + " " + step
	}
	return p
}
