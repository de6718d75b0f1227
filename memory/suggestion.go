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
	Gist        *lang.Gist // that of a fact; nil = only the same words repeat it
	Anew        []string   // revisions of texts in which the user says it later; see WithCopies
	CreatedAt   time.Time
}

// Buries reports whether t forbids a statement: its words; any statement from the same texts alone,
// so that other words cannot bring it back; and, in other words and from other texts, what repeats
// it, unless the user has said that anew.
func (t *Tombstone) Buries(s *Buried) bool {
	if s.hash == t.ContentHash || len(s.evidence) > 0 && !hasNew(t.Evidence, s.evidence) {
		return true
	}
	if t.Gist == nil || t.anew(s.evidence) {
		return false
	}
	if s.told == nil {
		s.told = lang.Tell(lang.Line{Text: s.text}, lang.Names{})
	}
	gist := *t.Gist
	gist.Of = "" // whoever a statement is about, it says so with other words than a line
	return len(gist.In(s.told)) > 0
}

// anew reports whether some of the evidence is a text in which the user says the same later.
func (t *Tombstone) anew(evidence []Evidence) bool {
	return slices.ContainsFunc(evidence, func(e Evidence) bool { return slices.Contains(t.Anew, e.RevisionID) })
}

// Buried is a statement that tombstones may forbid.
type Buried struct {
	text, hash string
	evidence   []Evidence
	told       *lang.Telling // once it is needed
}

// IsBuried reports whether one of some tombstones forbids a statement.
func IsBuried(tombstones []Tombstone, text string, evidence []Evidence) bool {
	s := &Buried{text: text, hash: lang.ContentHash(text), evidence: evidence}
	return slices.ContainsFunc(tombstones, func(t Tombstone) bool { return t.Buries(s) })
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
