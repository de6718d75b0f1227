package cognition

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// Tx is what a transaction offers for the log.
type Tx struct {
	op.Tx
	LogTx
	GoalTx
	StateTx
}

// LogTx stores the logs of conversations. Without the conversation, each method returns fault.NotFound.
type LogTx interface {
	// AppendEvents adds events to the end of a log, in this order, and sets their ordinals. It holds the lock of
	// the conversation until the transaction ends, so that the order is that of the commits. An event that the
	// log has (Identity) is not added again: its Ordinal stays 0. An evaluation ends the wait of its query and is a
	// vote on its source (package feedback), a commit ends the wait of its extraction.
	AppendEvents(conversationID string, events ...*Event) error
	// NewestSequence returns the newest sequence of a message.
	NewestSequence(conversationID string) (int64, error)
	// Events returns events behind an ordinal, the oldest first, all types if none is named.
	Events(conversationID string, after int64, limit int, types ...string) ([]*Event, error)
	// OpenEvents returns the oldest events of a type behind an ordinal that wait: queries without an evaluation,
	// extractions that are not committed, reflections that are not consumed.
	OpenEvents(conversationID, kind string, after int64, limit int) ([]*Event, error)
	// OpenQueries returns the oldest queries without an evaluation that are not older than a time.
	OpenQueries(conversationID string, since time.Time, limit int) ([]*Event, error)
}

// Store stores what a Service needs; package store implements it.
type Store = op.Store[Tx]

// Service has the operations on logs. It is safe for concurrent use.
type Service struct{ store Store }

// NewService returns a Service.
func NewService(store Store) *Service { return &Service{store} }

// mostEvents bounds an answer, and an import.
const mostEvents = 1000

// Log returns the log of a conversation as a document: events behind an ordinal, of all types or of some. An answer with a
// NextAfter is a part.
//
// Errors: NotFound; Invalid for after and limit.
func (svc *Service) Log(ctx context.Context, userID, conversationID string, after int64, limit int, types ...string) (*Document, error) {
	if err := CheckAfter(after); err != nil {
		return nil, err
	}
	if limit < 0 || limit > mostEvents {
		return nil, fault.InvalidField("limit", "range", "must be from 1 to %d", mostEvents)
	}
	if limit == 0 {
		limit = mostEvents
	}
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Document, error) {
		events, err := tx.Events(conversationID, after, limit+1, types...)
		if err != nil {
			return nil, err
		}
		d := &Document{TraceID: conversationID, Events: []json.RawMessage{}}
		if len(events) > limit {
			events = events[:limit]
			d.NextAfter = events[limit-1].Ordinal
		}
		for _, e := range events {
			d.Events = append(d.Events, e.Body)
		}
		return d, nil
	})
}

// CheckAfter refuses what is no ordinal, and not the beginning of a log.
func CheckAfter(after int64) error {
	if after < 0 {
		return fault.InvalidField("after", "range", "must be a next_after of an answer, or 0")
	}
	return nil
}

// Imported tells of an import.
type Imported struct {
	Added    int        `json:"added"`
	Known    int        `json:"known"` // events that the log had
	Unplaced []Unplaced `json:"unplaced"`
}

// mostImported bounds the events of an import, and pieceEvents those that one transaction stores: other writers must not wait
// long.
const (
	mostImported = 10_000
	pieceEvents  = 500
)

// Import adds the events of a document that the log of a conversation does not have. A repetition after a failure adds the
// rest.
//
// Errors: NotFound; Invalid for a document without a list; TooLarge.
func (svc *Service) Import(ctx context.Context, c *op.Call, conversationID string, events, entries []json.RawMessage) (*Imported, error) {
	if events == nil && entries == nil {
		return nil, fault.InvalidField("events", "required", "must be a list of events")
	}
	if n := max(len(events), len(entries)); n > mostImported {
		return nil, fault.New(fault.TooLarge, "%d events, limit %d: import the log in parts", n, mostImported).With("limit", mostImported)
	}
	found, unplaced := ReadDocument(events, entries)
	pieces := slices.Collect(slices.Chunk(found, pieceEvents))
	if len(pieces) == 0 {
		pieces = [][]*Event{nil}
	}
	so := &Imported{Unplaced: append([]Unplaced{}, unplaced...)}
	return op.InPieces(ctx, svc.store, c, so, pieces, func(tx Tx, so *Imported, piece []*Event) (*Imported, error) {
		if err := tx.AppendEvents(conversationID, piece...); err != nil {
			return nil, err
		}
		sum := *so
		for _, e := range piece {
			if e.Ordinal > 0 {
				sum.Added++
			} else {
				sum.Known++
			}
		}
		return &sum, nil
	})
}

// CheckTypes refuses words that are no types of events; other types than those with a meaning can be asked for by their names.
func CheckTypes(types []string) error {
	if slices.Contains(types, "") {
		return fault.InvalidField("type", "value", "must be the type of an event, or several with commas between them")
	}
	return nil
}
