// Package carried reads and makes the stored form of what prompts of the SillyTavern dialect hand on to later ones:
// the variables of a chat and of a user, and the timed effects of world-book entries.
package carried

import (
	"encoding/json"
	"fmt"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/tavern"
	"nodest/framework/worldinfo"
	"nodest/internal/op"
)

// Read returns the state of a branch and the variables of the user. A part that cannot be read is empty, with a
// warning, so that the chat can go on.
func Read(play *chat.Play, user json.RawMessage) (s tavern.State, globals *macro.Vars, unreadable []framework.Warning) {
	s.Variables, globals = macro.NewVars(nil), macro.NewVars(nil)
	var timed worldinfo.Timed
	for _, part := range []struct {
		name string
		doc  json.RawMessage
		into any
	}{{"variables", play.Variables, s.Variables}, {"timedWorldInfo", play.Timed, &timed}, {"globalVariables", user, globals}} {
		if op.IsNull(part.doc) {
			continue
		}
		if err := json.Unmarshal(part.doc, part.into); err != nil {
			unreadable = append(unreadable, framework.Warning{Code: "unreadable_state", Path: part.name, Detail: "the stored value cannot be read and counts as empty"})
			if part.into == &timed { // it may be half read; the others are read whole or not at all
				timed = worldinfo.Timed{}
			}
		}
	}
	s.Timed = timed
	return s, globals, unreadable
}

// Play is a state of a chat, to be stored.
func Play(conversationID string, s *tavern.State) *chat.Play {
	next := &chat.Play{ID: op.NewID(), ConversationID: conversationID}
	if len(s.Variables.All()) > 0 {
		next.Variables = op.MustJSON(s.Variables)
	}
	if len(s.Timed.Sticky)+len(s.Timed.Cooldown) > 0 {
		next.Timed = op.MustJSON(s.Timed)
	}
	return next
}

// Changed returns an object of the variables in after that are new or differ from the user's stored ones, with null for
// those that after lacks; nil = nothing differs. Stored variables that cannot be read count as none.
func Changed(user json.RawMessage, after *macro.Vars) json.RawMessage {
	was := macro.NewVars(nil)
	if !op.IsNull(user) {
		_ = json.Unmarshal(user, was) // Read warns
	}
	before, changed := was.All(), map[string]any{}
	for name, v := range after.All() {
		if old, ok := before[name]; !ok || old != v {
			changed[name] = v
		}
	}
	for name := range before {
		if _, ok := after.All()[name]; !ok {
			changed[name] = nil
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return op.MustJSON(changed)
}

// Merge applies what Changed returned to the user's stored variables, name by name, so replies that end at once keep each
// other's changes. It returns nil if the result exceeds the limits, because other replies have added variables since.
func Merge(user, changes json.RawMessage) (json.RawMessage, error) {
	all, changed := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(user, &all); err != nil {
		return nil, fmt.Errorf("variables of the user: %w", err)
	}
	if err := json.Unmarshal(changes, &changed); err != nil {
		return nil, fmt.Errorf("changes of the user's variables: %w", err)
	}
	for name, v := range changed {
		if op.IsNull(v) {
			delete(all, name)
		} else {
			all[name] = v
		}
	}
	doc := op.MustJSON(all)
	if character.CheckVariables("variables", doc) != nil {
		return nil, nil //nolint:nilerr // the limit is no failure of the reply
	}
	return doc, nil
}
