package first

import (
	"encoding/json"

	"nodest/internal/codec"
	"nodest/internal/index"
)

// renamed are the columns that have another name now, by table.
var renamed = map[string]map[string]string{
	"circle_comments":  {"reply_to": "reply_to_id", "thread": "thread_id"},
	"devices":          {"device_id": "device"},
	"knowledge_grants": {"granted_by": "granted_by_id"},
	"memories":         {"source": "source_id", "superseded_by": "superseded_by_id"},
	"messages":         {"client_msg_id": "client_msg_key", "author_id": "author_key"},
}

// special are the tables of today whose rows are not those of the table with their name.
var special = map[string][]Step{
	"prompts":   nil,
	"events":    nil,
	"call_keys": nil,

	"messages":            {{"messages", message}},
	"message_lines":       {{"message_lines", same}, {"messages", line}},
	"message_states":      {{"message_states", state}},
	"conversations":       {{"conversations", played}},
	"conversation_states": {{"conversation_states", played}},
	"revisions":           {{"revisions", revision}},
	"generations":         {{"generations", generation}},
	"summary_texts":       {{"summary_texts", summary}},
	"memory_texts":        {{"memory_texts", said}},
	"memories":            {{"memories", halved}},
	"memory_tombstones":   {{"memory_tombstones", tombstone}},
	"knowledge_vectors":   {{"knowledge_vectors", packed}},

	UsesTable: {{"revisions", uses}},
}

func same(r Row, add func(Row)) error {
	add(r)
	return nil
}

// fill gives a column that older programs did not have its value for rows of then.
func (r Row) fill(column string, value any) {
	if _, ok := r[column]; !ok {
		r[column] = value
	}
}

// message knows the line of an imported log, which older programs had in it.
func message(r Row, add func(Row)) error {
	if extra, ok := r["extra"]; ok {
		r["is_imported"] = extra != nil
		delete(r, "extra")
	}
	add(r)
	return nil
}

// state does not know whether its message was hidden: HiddenStates says it of all states at once.
func state(r Row, add func(Row)) error {
	r["is_hidden"] = false
	add(r)
	return nil
}

// HiddenStates marks the states of messages that were hidden, which in this schema they were for ever. It
// runs when all rows are stored.
const HiddenStates = "UPDATE message_states SET is_hidden = TRUE WHERE EXISTS (SELECT 1 FROM messages m WHERE m.user_id = message_states.user_id" +
	" AND m.id = message_states.message_id AND m.is_hidden)"

func line(r Row, add func(Row)) error {
	if extra := r["extra"]; extra != nil {
		add(Row{"user_id": r["user_id"], "message_id": r["id"], "line": extra})
	}
	return nil
}

// played had no variables.
func played(r Row, add func(Row)) error {
	r["play_id"] = nil
	add(r)
	return nil
}

func revision(r Row, add func(Row)) error {
	r.fill("requested_model", "") // as the model
	delete(r, "memory_ids")
	delete(r, "uses")
	return played(r, add)
}

func generation(r Row, add func(Row)) error {
	r.fill("requested_model", "")
	r["globals"] = nil
	return played(r, add)
}

func summary(r Row, add func(Row)) error {
	document, _ := r["document"].([]byte)
	text, err := inflate(document)
	if err != nil {
		return err
	}
	r["document"] = codec.Pack([]byte(text))
	add(r)
	return nil
}

// said is a text, of which no prompt is known that had it.
func said(r Row, add func(Row)) error {
	r.fill("is_used", false)
	return halved(r, add)
}

// halved has a vector in roots.
func halved(r Row, add func(Row)) error {
	if stored, ok := r["vector"].([]byte); ok {
		r["vector"] = pack(whole(stored))
	}
	add(r)
	return nil
}

// tombstone has only the words of what was purged.
func tombstone(r Row, add func(Row)) error {
	r["gist"] = nil
	add(r)
	return nil
}

// packed has a vector of signed bytes.
func packed(r Row, add func(Row)) error {
	if stored, ok := r["vector"].([]byte); ok {
		r["vector"] = pack(signed(stored))
	}
	add(r)
	return nil
}

// pack is a vector as it is stored today; NULL if it has no direction.
func pack(v []float32) any {
	if p := index.Pack(v); p != nil {
		return []byte(p)
	}
	return nil
}

// UsesTable gets what was recalled for revisions, without the conversations of their messages and
// with units that were purged since. Its columns are those of memory_uses, with message_id instead of
// the conversation.
const UsesTable = "first_uses"

// uses are the units of memory that were sent for a text: those that were found for it, by rank, and
// what the profile had. A fork knows the former alone.
func uses(r Row, add func(Row)) error {
	found, _ := r["memory_ids"].([]byte)
	why, _ := r["uses"].([]byte)
	ids, err := unitsOf(found)
	if err != nil {
		return err
	}
	sent, err := usesOf(why, ids)
	if err != nil {
		return err
	}
	rank := int64(0)
	row := func(unit, layer string, score, signals any) {
		rank++
		add(Row{
			"user_id": r["user_id"], "message_id": r["message_id"], "generation_id": r["generation_id"], "unit_id": unit,
			"rank": rank, "layer": layer, "score": score, "signals": signals,
		})
	}
	isFound := map[string]bool{}
	for _, id := range ids {
		isFound[id] = true
	}
	for _, u := range sent {
		signals, err := json.Marshal(u.signals)
		if err != nil {
			return err
		}
		if u.layer == inFacts && !isFound[u.unit] {
			u.layer = inProfile
		}
		delete(isFound, u.unit)
		row(u.unit, u.layer, u.score, string(signals))
	}
	for _, id := range ids {
		if isFound[id] {
			row(id, "", nil, nil)
		}
	}
	return nil
}
