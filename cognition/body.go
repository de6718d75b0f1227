package cognition

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nodest/internal/op"
)

// Body is the members of an event of a known type.
type Body interface{ eventType() string }

// Query says that knowledge was asked for and used.
type Query struct {
	Sequence  int64    `json:"sequence"` // the message that the answer went into
	GoalID    *string  `json:"goal_id"`
	Query     string   `json:"query"`
	Response  string   `json:"response"` // the answer that was made of the sources
	SourceIDs []string `json:"source_ids"`
	Sources   []Source `json:"sources"`
	QueryID   string   `json:"query_id,omitempty"` // tells two queries of one message apart

	Untrusted bool `json:"untrusted,omitempty"` // sources and response come from the web
}

// Source is one of what a query has found.
type Source struct {
	ID      string `json:"id"`      // a fact, a revision, a chunk or a file; or an address
	Task    string `json:"task"`    // its subject: a title
	Content string `json:"content"` // at most MostContent code points of it
}

// MostContent is how much of a source a query has, in code points.
const MostContent = 500

// Evaluation says how one source of a query has worked.
type Evaluation struct {
	QuerySequence int64  `json:"query_sequence"`
	KnowledgeID   string `json:"knowledge_id"`
	Result        Result `json:"eval_result"`
	Trigger       string `json:"evaluated_at_trigger"`
	QueryID       string `json:"query_id,omitempty"`
}

// Result is the verdict of an evaluation.
type Result struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// The statuses of a source.
const (
	Irrelevant = "irrelevant" // not about the task
	Unused     = "unused"     // about it, not used
	Helpful    = "helpful"
	Harmful    = "harmful"
	Neutral    = "neutral" // about it, no visible effect
)

// Statuses are all of them.
var Statuses = []string{Irrelevant, Unused, Helpful, Harmful, Neutral}

// The triggers that set an evaluation off.
const (
	GoalCompletion = "goal_completion"
	Compression    = "compression"
	TaskCompletion = "task_completion"
)

// ExtractionPending proposes knowledge to keep.
type ExtractionPending struct {
	ExtractionID string          `json:"extraction_id"`
	Sequence     int64           `json:"sequence"`
	GoalID       *string         `json:"goal_id"`
	BranchID     string          `json:"branch_id"` // the side branch that proposes it
	Payload      json.RawMessage `json:"payload"`
}

// NewExtractionID returns an id of an extraction.
func NewExtractionID() string { return "pending-" + shortID() }

// NewReflectionID returns an id of a run of the side branch that proposes.
func NewReflectionID() string { return BranchReflection + "-" + shortID() }

func shortID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ExtractionReviewed is a decision about an extraction.
type ExtractionReviewed struct {
	ExtractionID  string          `json:"extraction_id"`
	Decision      string          `json:"decision"`
	EditedPayload json.RawMessage `json:"edited_payload,omitempty"` // with Edit: it replaces the payload
}

// The decisions about an extraction.
const (
	Approve = "approve"
	Edit    = "edit"
	Discard = "discard"
)

// ExtractionCommitted says that an extraction became a memory.
type ExtractionCommitted struct {
	ExtractionID string `json:"extraction_id"`
	KnowledgeID  string `json:"knowledge_id"` // the memory
}

// Reflection is what was learned from a range of messages.
type Reflection struct {
	SequenceRange [2]int64 `json:"sequence_range"` // both included
	Summary       string   `json:"summary"`
	Notes         []Note   `json:"notes,omitempty"`       // the summary is made of them
	ConsumedAt    string   `json:"consumed_at,omitempty"` // RFC 3339
}

// Note is a statement of a reflection.
type Note struct {
	Text     string    `json:"text"`
	Kind     string    `json:"kind,omitempty"` // as of a fact
	Messages []Message `json:"messages"`       // that say so
}

// Message names a text of the conversation.
type Message struct {
	Sequence   int64  `json:"sequence"`
	MessageID  string `json:"message_id"`
	RevisionID string `json:"revision_id"`
}

// Summarise writes the notes as the summary.
func (r *Reflection) Summarise() {
	lines := make([]string, len(r.Notes))
	for i, n := range r.Notes {
		lines[i] = "- " + n.Text
	}
	r.Summary = strings.Join(lines, "\n")
}

// forget drops the notes that rest on one of these revisions.
func (r *Reflection) forget(revisions []string) {
	r.Notes = slices.DeleteFunc(r.Notes, func(n Note) bool {
		return slices.ContainsFunc(n.Messages, func(m Message) bool { return slices.Contains(revisions, m.RevisionID) })
	})
	r.Summarise()
}

func (*Query) eventType() string               { return TypeQuery }
func (*Evaluation) eventType() string          { return TypeEvaluation }
func (*ExtractionPending) eventType() string   { return TypePending }
func (*ExtractionReviewed) eventType() string  { return TypeReviewed }
func (*ExtractionCommitted) eventType() string { return TypeCommitted }
func (*Reflection) eventType() string          { return TypeReflection }

// New returns an event for the log of a conversation, which gets its time when it is appended.
func New(conversationID string, b Body) *Event {
	if q, ok := b.(*Query); ok {
		q.tidy()
	}
	members := op.MustJSON(b)
	body := append([]byte(`{"type":`), op.MustJSON(b.eventType())...)
	if string(members) != "{}" {
		body = append(append(body, ','), members[1:len(members)-1]...)
	}
	return &Event{ConversationID: conversationID, Type: b.eventType(), Body: append(body, '}')}
}

// tidy cuts what is too long, and derives the ids of the sources.
func (q *Query) tidy() {
	q.Sources, q.SourceIDs = slices.Clone(q.Sources), []string{}
	if q.Sources == nil {
		q.Sources = []Source{}
	}
	for i := range q.Sources {
		s := &q.Sources[i]
		s.Content = op.Truncate(s.Content, MostContent)
		q.SourceIDs = append(q.SourceIDs, s.ID)
	}
}

// Read reads the members of an event of a known type into b, a pointer to a Body.
func Read(e *Event, b Body) error {
	if e.Type != b.eventType() {
		return fmt.Errorf("cognition: an event of type %s is read as %s", e.Type, b.eventType())
	}
	return json.Unmarshal(e.Body, b)
}

// Respond puts the response into a query that was stored without it.
func (e *Event) Respond(text string) {
	var q Query
	if Read(e, &q) == nil && q.Response == "" {
		e.Body = withMember(e.Body, "response", text)
	}
}

// Forget takes the words of sources out of e: of a query the response too, unless it is that of a message, and the whole
// payload if one of them is "".
func (e *Event) Forget(sources ...string) {
	switch e.Type {
	case TypeQuery:
		var q Query
		if Read(e, &q) != nil {
			return
		}
		for i := range q.Sources {
			if slices.Contains(sources, q.Sources[i].ID) {
				q.Sources[i].Task, q.Sources[i].Content = "", ""
			}
		}
		e.Body = replaced(e.Body, map[string]json.RawMessage{"sources": op.MustJSON(q.Sources), "response": op.MustJSON("")})
	case TypeEvaluation:
		var v Evaluation
		if Read(e, &v) == nil && slices.Contains(sources, v.KnowledgeID) {
			v.Result.Reason = ""
			e.Body = replaced(e.Body, map[string]json.RawMessage{"eval_result": op.MustJSON(v.Result)})
		}
	case TypeReflection:
		var r Reflection
		if Read(e, &r) == nil {
			r.forget(sources)
			e.Body = replaced(e.Body, map[string]json.RawMessage{"summary": op.MustJSON(r.Summary), "notes": op.MustJSON(r.Notes)})
		}
	case TypePending, TypeReviewed:
		empty := json.RawMessage("{}")
		e.Body = replaced(e.Body, map[string]json.RawMessage{"payload": empty, "edited_payload": empty})
	}
}
