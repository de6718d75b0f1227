package character

import (
	"bytes"
	"encoding/json"
	"fmt"

	"nodest/card"
	"nodest/op"
)

// A card's own regex scripts work as a group of scripts that is bound to the
// character, named "<name> (Auto-Applied)": a resource like any other, to be
// seen, edited and switched off. It is made when the character is, and replaced
// when the character's scripts are. Prompts and replies use the group, never the
// card's scripts directly.

// autoGroup is the document of such a group.
type autoGroup struct {
	Name        string            `json:"name"`
	BindType    string            `json:"bindType"`
	CharacterID string            `json:"bindCharacterId"`
	AutoCreated bool              `json:"autoCreated"`
	Scripts     []json.RawMessage `json:"scripts"`
}

// isAutoGroup reports whether a resource was made from a card.
func isAutoGroup(r *Resource) bool {
	var g struct {
		AutoCreated bool `json:"autoCreated"`
	}
	return r.Kind == RegexScript && json.Unmarshal(r.Document, &g) == nil && g.AutoCreated
}

// putAutoGroup replaces the group of a character by one with its present
// scripts, and switches scripts on for the user. Without scripts the group is deleted.
func putAutoGroup(tx Tx, c *op.Call, ch *Character) error {
	bound, err := tx.BoundResources(RegexScript, ch.ID)
	if err != nil {
		return err
	}
	for _, r := range bound {
		if !r.BindAll && isAutoGroup(r) {
			if err := deleteResource(tx, c, r); err != nil {
				return err
			}
		}
	}
	scripts, err := scriptObjects(ch.RegexScripts)
	if err != nil || len(scripts) == 0 {
		return err
	}
	name := op.Truncate(ch.Name, maxResourceName-20) + " (Auto-Applied)"
	err = insertResource(tx, c, &Resource{
		Kind: RegexScript, Name: name, Dialect: ch.Dialect, Characters: []string{ch.ID},
		Document: op.MustJSON(autoGroup{name, "character", ch.ID, true, scripts}),
	})
	if err != nil {
		return err
	}
	return changeSettings(tx, c, func(s *UserSettings) bool {
		was := s.GlobalRegexEnabled
		s.GlobalRegexEnabled = true
		return !was
	})
}

// scriptObjects are the scripts of a document, each with the placement and flags
// that a card's script has when it names none: the reply, and "g".
func scriptObjects(doc json.RawMessage) ([]json.RawMessage, error) {
	scripts, err := card.SplitRegexScripts(doc)
	for i, s := range scripts {
		scripts[i] = withMember(withMember(s, "flags", `"g"`), "placement", "[2]")
	}
	return scripts, err
}

// withMember returns an object that has a member of that name: its own, or value.
func withMember(object json.RawMessage, name, value string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || !op.IsNull(members[name]) {
		return object
	}
	if members[name] != nil { // null counts as absent: the later of two equal names is read
		return fmt.Appendf(nil, "%s,%q:%s}", bytes.TrimSuffix(bytes.TrimSpace(object), []byte("}")), name, value)
	}
	comma := ","
	if len(members) == 0 {
		comma = ""
	}
	return fmt.Appendf(nil, "{%q:%s%s%s", name, value, comma, bytes.TrimSpace(object)[1:])
}
