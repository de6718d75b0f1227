package first

import (
	"encoding/json"

	"nodest/codec"
	"nodest/index"
)

// special are the tables whose rows differ.
var special = map[string][]Step{
	"prompts":   nil,
	"events":    nil,
	"call_keys": nil,

	"devices":           {{"devices", renamed("device_id", "device")}},
	"messages":          {{"messages", message}},
	"message_lines":     {{"message_lines", renamed("", "")}, {"messages", line}},
	"revisions":         {{"revisions", revision}},
	"generations":       {{"generations", generation}},
	"summary_texts":     {{"summary_texts", summary}},
	"memory_texts":      {{"memory_texts", halved}},
	"memories":          {{"memories", memory}},
	"knowledge_vectors": {{"knowledge_vectors", packed}},

	UsesTable: {{"revisions", uses}},
}

// renamed gives a column another name.
func renamed(column, now string) func(Row, func(Row)) error {
	return func(r Row, add func(Row)) error {
		r.rename(column, now)
		add(r)
		return nil
	}
}

func (r Row) rename(column, now string) {
	if v, ok := r[column]; ok {
		delete(r, column)
		r[now] = v
	}
}

// fill gives a column that older programs did not have its value for rows of then.
func (r Row) fill(column string, value any) {
	if _, ok := r[column]; !ok {
		r[column] = value
	}
}

// message knows the line of an imported log, which older programs had in it.
func message(r Row, add func(Row)) error {
	r.rename("client_msg_id", "client_msg_key")
	if extra, ok := r["extra"]; ok {
		r["is_imported"] = extra != nil
		delete(r, "extra")
	}
	add(r)
	return nil
}

func line(r Row, add func(Row)) error {
	if extra := r["extra"]; extra != nil {
		add(Row{"user_id": r["user_id"], "message_id": r["id"], "line": extra})
	}
	return nil
}

func revision(r Row, add func(Row)) error {
	r.fill("requested_model", "") // as the model
	delete(r, "memory_ids")
	delete(r, "uses")
	add(r)
	return nil
}

func generation(r Row, add func(Row)) error {
	r.fill("requested_model", "")
	add(r)
	return nil
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

func memory(r Row, add func(Row)) error {
	r.rename("source", "source_id")
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
