package memory

import (
	"slices"
	"time"

	"nodest/memory/lang"
)

// Event says what a decision does with what is known.
type Event string

const (
	EventAdd    Event = "ADD"
	EventUpdate Event = "UPDATE"
	EventDelete Event = "DELETE"
	EventNone   Event = "NONE"
)

// Suggestion is a change that only the user may make: to a memory that is pinned, locked or
// written by the user, or of a run that is held for review.
type Suggestion struct {
	MemoryID string     `json:"memoryId,omitempty"` // that would change; "" of EventAdd
	Event    Event      `json:"event"`              // not EventNone
	Text     string     `json:"text,omitempty"`     // that would be known; "" of EventDelete
	Reason   string     `json:"reason"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Key is equal for suggestions that would do the same.
func (s Suggestion) Key() string {
	return s.MemoryID + " " + string(s.Event) + " " + lang.ContentHash(s.Text)
}

// Tombstone is what the user had forgotten: its words and its sources.
type Tombstone struct {
	ContentHash string
	Evidence    []Evidence
	Gist        *lang.Gist // of a fact; nil = only the same words repeat it
	CreatedAt   time.Time
}

// Buries reports whether t forbids a statement: its words, or, so that other words cannot bring
// it back, any statement from the same texts alone.
func (t *Tombstone) Buries(hash string, evidence []Evidence) bool {
	if hash == t.ContentHash {
		return true
	}
	return len(evidence) > 0 && !hasNew(t.Evidence, evidence)
}

// hasNew reports whether evidence names a text that is not in old.
func hasNew(old, evidence []Evidence) bool {
	return slices.ContainsFunc(evidence, func(e Evidence) bool {
		return !slices.ContainsFunc(old, func(o Evidence) bool {
			return o.ConversationID == e.ConversationID && o.RevisionID == e.RevisionID
		})
	})
}

func HashOf(m *Memory) string {
	if m.ContentHash != "" {
		return m.ContentHash
	}
	return lang.ContentHash(m.Text)
}

func LaterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// WithSighting adds evidence as a sighting of its own, and reports whether any of it is new.
func WithSighting(old, evidence []Evidence) ([]Evidence, bool) {
	sighting, more := 0, len(evidence) == 0 || hasNew(old, evidence)
	for _, e := range old {
		sighting = max(sighting, e.Sighting+1)
	}
	if !more || sighting >= maxSighting || len(old) == 0 || len(old)+len(evidence) > MaxEvidence {
		return old, more
	}
	out := slices.Clone(old)
	for _, e := range evidence {
		e.Sighting = sighting
		out = append(out, e)
	}
	return out, true
}
