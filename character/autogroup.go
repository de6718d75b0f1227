package character

import (
	"encoding/json"

	"nodest/card"
	"nodest/internal/op"
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

// IsOfCard reports whether a resource is such a group.
func IsOfCard(r *Resource) bool {
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
		if !r.BindAll && IsOfCard(r) {
			if err := deleteResource(tx, c, r); err != nil {
				return err
			}
		}
	}
	scripts, err := card.ScriptsAsOfCard(ch.RegexScripts, card.Dialect(ch.Dialect))
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
	_, err = switchScriptsOn(tx, c)
	return err
}

// switchScriptsOn makes the user's regex scripts work, and reports whether they did not.
func switchScriptsOn(tx Tx, c *op.Call) (changed bool, err error) {
	err = changeSettings(tx, c, func(s *UserSettings) bool {
		changed = !s.GlobalRegexEnabled
		s.GlobalRegexEnabled = true
		return changed
	})
	return changed, err
}
