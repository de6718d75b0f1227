package cognition

import (
	"bytes"
	"encoding/json"
	"slices"

	"nodest/internal/op"
)

// Document is the log of a conversation as a file: cognition_log.json.
type Document struct {
	TraceID   string            `json:"trace_id"`
	Events    []json.RawMessage `json:"events"`
	NextAfter int64             `json:"next_after,omitempty"` // an answer of a part: where the next one begins
}

// Unplaced is an entry of a document that is no event.
type Unplaced struct {
	Index  int    `json:"index"` // in the list of the document, from 0
	Reason string `json:"reason"`
}

// ReadDocument reads the events of a document, and of one of the older kind, knowledge_log.json, whose list is
// called entries. What it cannot place it leaves out and reports. Unknown types and members stay as they are, and
// no timestamp is made up.
func ReadDocument(events, entries []json.RawMessage) (all []*Event, unplaced []Unplaced) {
	if events != nil {
		entries = nil
	}
	place := func(i int, raw json.RawMessage, legacy bool) {
		found, why := eventsOf(raw, legacy)
		if why != "" {
			unplaced = append(unplaced, Unplaced{i, why})
		}
		all = append(all, found...)
	}
	for i, raw := range events {
		place(i, raw, false)
	}
	for i, raw := range entries {
		place(i, raw, true)
	}
	return all, unplaced
}

// mostBytes bounds an event.
const mostBytes = 256 << 10

// eventsOf reads an entry, or says why it is none.
func eventsOf(raw json.RawMessage, legacy bool) ([]*Event, string) {
	o := membersOf(raw)
	if o == nil {
		return nil, "not an object"
	}
	if len(raw) > mostBytes {
		return nil, "longer than 256 KiB"
	}
	kind := word(o["type"])
	switch {
	case kind != "" && len(kind) <= 64:
		return []*Event{imported(kind, raw)}, ""
	case has(o, "type"):
		return nil, "its type is not a short text"
	case legacy && word(o["query"]) != "":
		return queryOf(o), ""
	case legacy:
		return nil, "neither a type nor a query"
	}
	return nil, "no type"
}

// has reports whether an object has a member; null is none.
func has(o map[string]json.RawMessage, name string) bool { return !op.IsNull(o[name]) }

// imported is an event as its document has it, but for a timestamp that is no text.
func imported(kind string, raw json.RawMessage) *Event {
	body, at := compact(raw), membersOf(raw)["timestamp"]
	if at != nil && at[0] != '"' {
		body = replaced(body, map[string]json.RawMessage{"timestamp": nil})
	}
	return &Event{Type: kind, Timestamp: timeOf(word(at)), Body: body, Undated: true}
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is valid
	return b.Bytes()
}

// evaluated are the members of an old entry that say how its sources have worked.
var evaluated = []string{"eval_result", "status", "evaluated_at", "evaluated_at_trigger"}

// queryOf reads an old entry, which is a query with its evaluation.
func queryOf(o map[string]json.RawMessage) []*Event {
	query := map[string]json.RawMessage{"type": op.MustJSON(TypeQuery)}
	for name, value := range o {
		if has(o, name) && !slices.Contains(evaluated, name) {
			query[name] = value
		}
	}
	events := []*Event{imported(TypeQuery, op.MustJSON(query))}
	for _, id := range idsOf(o) {
		result := resultOf(o, id)
		if result == nil {
			continue
		}
		evaluation := map[string]json.RawMessage{
			"type": op.MustJSON(TypeEvaluation), "knowledge_id": op.MustJSON(id), "eval_result": result,
		}
		for from, to := range map[string]string{
			"sequence": "query_sequence", "query_id": "query_id", "evaluated_at_trigger": "evaluated_at_trigger", "evaluated_at": "timestamp",
		} {
			if has(o, from) {
				evaluation[to] = o[from]
			}
		}
		events = append(events, imported(TypeEvaluation, op.MustJSON(evaluation)))
	}
	return events
}

// idsOf are the ids of the sources of an old entry.
func idsOf(o map[string]json.RawMessage) (ids []string) {
	for _, name := range []string{"source_ids", "knowledge_ids"} {
		if json.Unmarshal(o[name], &ids) == nil && len(ids) > 0 {
			return ids
		}
	}
	var sources []Source
	if json.Unmarshal(o["sources"], &sources) == nil {
		for _, s := range sources {
			ids = append(ids, s.ID)
		}
	}
	if id := word(o["knowledge_id"]); id != "" && len(ids) == 0 {
		ids = []string{id}
	}
	return ids
}

// resultOf is the verdict of an old entry about one of its sources: one for each, in an object or a list, or one for all of
// them. nil = there is none.
func resultOf(o map[string]json.RawMessage, id string) json.RawMessage {
	if status := word(o["status"]); status != "" && !has(o, "eval_result") {
		return op.MustJSON(Result{Status: status, Reason: word(o["reason"])})
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(o["eval_result"], &list) == nil {
		for _, one := range list {
			if word(one["knowledge_id"]) == id || word(one["source_id"]) == id {
				return op.MustJSON(one)
			}
		}
		return nil
	}
	var one map[string]json.RawMessage
	if json.Unmarshal(o["eval_result"], &one) != nil || one == nil {
		if status := word(o["eval_result"]); status != "" {
			return op.MustJSON(Result{Status: status})
		}
		return nil
	}
	if word(one["status"]) != "" {
		return op.MustJSON(one)
	}
	return one[id]
}
