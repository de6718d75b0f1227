// Package stream delivers changes to a user's devices: one ordered log per user in the
// database (durable events), and short-lived events beside it (token deltas, progress)
// that are never stored.
//
// A durable event is written in the transaction of its change, so the two become
// visible together. Its position is (epoch, seq); seq starts at 1 and has no gaps.
// After the commit the writer hands the events to the Hub, which delivers them in order
// of seq to every joined Sink of that user, before any transient event that was
// published later.
package stream

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Event is one thing that happened for one user. It is immutable once published. Its JSON is that of
// the log; clients get its Frame.
type Event struct {
	UserID         string          `json:"-"`
	Seq            int64           `json:"-"`  // position in the user's log; 0 = transient
	Type           string          `json:"ev"` // "message.created", "gen.delta", …: the list in server/asyncapi.yaml
	ConversationID string          `json:"conversationId,omitempty"`
	MessageID      string          `json:"messageId,omitempty"`
	GenerationID   string          `json:"generationId,omitempty"`
	Off            int             `json:"-"`              // deltas: position of the text, in code points
	At             time.Time       `json:"-"`              // server time
	By             string          `json:"by,omitempty"`   // device that caused it, or "server"
	Data           json.RawMessage `json:"data,omitempty"` // the rest, one JSON object
	Logged         json.RawMessage `json:"kept,omitempty"` // the log keeps this in place of Data, which is made of it again; nil = Data

	delta Delta // a gen.delta has one
	once  sync.Once
	frame []byte
}

// Frame returns the event as the JSON object that clients get. It is encoded
// once and shared: callers must not change it.
func (e *Event) Frame() []byte {
	e.once.Do(func() { e.frame = encode(e) })
	return e.frame
}

// Size is about the length of the payload in bytes.
func (e *Event) Size() int { return len(e.Data) + len(e.delta.Text) }

// Durable says whether the event has a place in the log.
func (e *Event) Durable() bool { return e.Seq > 0 }

// Position is a place in a user's log. Positions of different epochs cannot be
// compared.
type Position struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
}

// Store reads the logs; package store provides it. Writing happens in the
// transactions of those who have something to tell.
type Store interface {
	// Position returns the newest position of the user's log, and the oldest seq
	// that is still kept (1 if nothing was removed; newest+1 if nothing is kept).
	Position(ctx context.Context, userID string) (newest Position, oldest int64, err error)

	// Events returns at most limit events with seq > after, in order.
	Events(ctx context.Context, userID string, after int64, limit int) ([]*Event, error)

	// Newest returns the newest seq of each of these users' logs; a user without
	// a log may be left out.
	Newest(ctx context.Context, userIDs []string) (map[string]int64, error)
}

// Sink receives events of one user. Deliver is called in order, never
// concurrently for one user, under a lock: it must not block and must not call
// the Hub.
type Sink interface {
	Deliver(e *Event)
}
