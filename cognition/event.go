package cognition

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"nodest/internal/op"
)

// The types of events. Events of other types are kept as they are.
const (
	TypeQuery      = "query"
	TypeEvaluation = "evaluation"
	TypePending    = "extraction_pending"
	TypeReviewed   = "extraction_reviewed"
	TypeCommitted  = "extraction_committed"
	TypeReflection = "reflection"
)

// Event is an entry of the log of a conversation.
type Event struct {
	ConversationID string
	Ordinal        int64 // its place in the log, from 1; 0 = it is not stored
	Type           string
	Timestamp      time.Time       // zero = the document has none
	Body           json.RawMessage // the whole event as the document shows it, unknown members too

	MessageID    string   // the event is about it, and goes with it; "" = none
	GenerationID string   // generation of a query: its text is the response; "" = the body has the response
	Revisions    []string // texts that an extraction may have words of
	Undated      bool     // without a timestamp it is stored without one, and else with the time of the transaction
}

// Origin says that an event has words of something that can be removed for good.
type Origin struct {
	ObjectID string // a fact, a revision or a file
	Source   string // the id of the source in the event; "" = its whole payload
}

// Origins returns what the sources of e are parts of.
func (e *Event) Origins() (all []Origin) {
	var ids []string
	switch e.Type {
	case TypeQuery:
		var q Query
		if Read(e, &q) == nil {
			for _, s := range q.Sources {
				ids = append(ids, s.ID)
			}
		}
	case TypeEvaluation:
		ids = []string{PlaceOf(e).KnowledgeID}
	case TypePending:
		for _, id := range e.Revisions {
			all = append(all, Origin{ObjectID: id})
		}
	case TypeReflection:
		var r Reflection
		if Read(e, &r) == nil {
			for _, n := range r.Notes {
				for _, m := range n.Messages {
					ids = append(ids, m.RevisionID)
				}
			}
		}
	}
	for _, id := range ids {
		object, _, _ := strings.Cut(id, ".") // the file of a chunk
		if op.HasIDForm(object) {
			all = append(all, Origin{object, id})
		}
	}
	return all
}

// Place has the members of an event by which the log is searched. What is missing, or of another type, is zero.
type Place struct {
	Sequence     int64 // number of a query; an evaluation has that of its query
	QueryID      string
	KnowledgeID  string // evaluations and commits have one
	ExtractionID string
	From, To     int64 // range of a reflection
}

// PlaceOf reads the place of an event.
func PlaceOf(e *Event) (p Place) {
	o := membersOf(e.Body)
	p.QueryID, p.KnowledgeID, p.ExtractionID = word(o["query_id"]), word(o["knowledge_id"]), word(o["extraction_id"])
	switch e.Type {
	case TypeEvaluation:
		p.Sequence = whole(o["query_sequence"])
	case TypeReflection:
		var ends []int64
		if json.Unmarshal(o["sequence_range"], &ends) == nil && len(ends) == 2 {
			p.From, p.To = ends[0], ends[1]
		}
	default:
		p.Sequence = whole(o["sequence"])
	}
	return p
}

// membersOf are the members of an object by their exact names; nil = it is none.
func membersOf(object json.RawMessage) (o map[string]json.RawMessage) {
	if json.Unmarshal(object, &o) != nil {
		return nil
	}
	return o
}

func word(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func whole(raw json.RawMessage) (n int64) {
	if json.Unmarshal(raw, &n) != nil {
		return 0
	}
	return n
}

// Consume notes when a reflection was worked into the memory, the only later change of an event.
func (e *Event) Consume(at time.Time) {
	e.Body = withMember(e.Body, "consumed_at", at.UTC().Format(timeFormat))
}

// Identity is equal for two events that say the same: one of them is stored. An evaluation is that of a source
// for a query, and a commit that of an extraction, whatever else they have.
func (e *Event) Identity() []byte {
	p := PlaceOf(e)
	var key []any
	switch {
	case e.Type == TypeQuery && p.QueryID != "":
		key = []any{p.QueryID}
	case e.Type == TypeEvaluation && p.QueryID != "" && p.KnowledgeID != "":
		key = []any{p.QueryID, p.KnowledgeID}
	case (e.Type == TypePending || e.Type == TypeCommitted) && p.ExtractionID != "":
		key = []any{p.ExtractionID}
	case e.Type == TypeReflection && p.To > 0 && membersOf(e.Body)["notes"] != nil:
		key = []any{p.From, "notes"} // one of another program, which has none, does not stand in its way
	case e.Type == TypeReflection && p.To > 0:
		key = []any{p.From}
	default:
		key = []any{without(e.Body, "consumed_at")}
	}
	sum := sha256.Sum256(op.MustJSON(append([]any{e.Type}, key...)))
	return sum[:16]
}

// without is a JSON object without a member, its other members in order.
func without(object json.RawMessage, member string) map[string]any {
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if d.Decode(&o) != nil {
		return nil
	}
	delete(o, member)
	return o
}

// Stamp gives e the time of now, unless it has a timestamp or is to have none.
func (e *Event) Stamp(now time.Time) {
	if !e.Timestamp.IsZero() || e.Undated {
		return
	}
	e.Timestamp = now
	e.Body = withMember(e.Body, "timestamp", now.UTC().Format(timeFormat))
}

// timeFormat is RFC 3339 with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// withMember is a JSON object with a member at its end, or in the place that it had.
func withMember(object json.RawMessage, name string, value any) json.RawMessage {
	o := membersOf(object)
	if o[name] != nil {
		return replaced(object, map[string]json.RawMessage{name: op.MustJSON(value)})
	}
	body := bytes.TrimSpace(object)
	body = slices.Clone(body[:len(body)-1])
	if len(o) > 0 {
		body = append(body, ',')
	}
	body = append(append(append(body, op.MustJSON(name)...), ':'), op.MustJSON(value)...)
	return append(body, '}')
}

// replaced is a JSON object with other values for some of its members, in its order; nil leaves a member out.
func replaced(object json.RawMessage, values map[string]json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return object
	}
	out := []byte{'{'}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return object
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return object
		}
		if other, has := values[name.(string)]; has { //nolint:forcetypeassert // the name of a member is a string
			value = other
		}
		if value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, op.MustJSON(name)...), ':'), value...)
	}
	return append(out, '}')
}

// timeOf reads a timestamp of a document; a time without a zone is UTC. Zero = it is none.
func timeOf(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
