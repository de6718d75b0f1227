package archive

import (
	"encoding/json"

	"nodest/card"
	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// playFromLog is the Play that the metadata of a SillyTavern chat hold; nil = none. Members that are
// malformed or beyond the limits are left out, each with a warning.
func playFromLog(metadata json.RawMessage) (*chat.Play, []card.Warning) {
	var in struct {
		Variables json.RawMessage `json:"variables"`
		Timed     json.RawMessage `json:"timedWorldInfo"`
	}
	if op.IsNull(metadata) || json.Unmarshal(metadata, &in) != nil {
		return nil, nil
	}
	p := &chat.Play{}
	var warnings []card.Warning
	for _, m := range []struct {
		name  string
		sent  json.RawMessage
		to    *json.RawMessage
		check func(string, json.RawMessage) error
	}{{"variables", in.Variables, &p.Variables, character.CheckVariables}, {"timedWorldInfo", in.Timed, &p.Timed, chat.CheckTimed}} {
		err := m.check(m.name, m.sent)
		if err == nil {
			if *m.to = chat.ObjectOrNil(m.sent); p.Fits() {
				continue
			}
			*m.to, err = nil, fault.InvalidField(m.name, "range", "must have at most %s together with variables", fault.Size(chat.MaxPlay))
		}
		warnings = append(warnings, card.Warning{Code: "dropped_state", Path: "chat_metadata." + m.name, Detail: err.Error()})
	}
	if p.IsEmpty() {
		return nil, warnings
	}
	return p, warnings
}

// playInLog puts a Play into the metadata of a SillyTavern chat. Members of the metadata that say the same
// stay as they are, and so do metadata that are no object.
func playInLog(p *chat.Play, metadata json.RawMessage) json.RawMessage {
	members := map[string]json.RawMessage{}
	if !op.IsNull(metadata) && json.Unmarshal(metadata, &members) != nil {
		return metadata
	}
	changed := false
	for name, now := range map[string]json.RawMessage{"variables": p.Variables, "timedWorldInfo": p.Timed} {
		was, there := members[name]
		switch {
		case string(chat.ObjectOrNil(was)) == string(now):
		case now == nil:
			delete(members, name)
			changed = changed || there
		default:
			members[name], changed = now, true
		}
	}
	if !changed {
		return metadata
	}
	return op.MustJSON(members)
}
