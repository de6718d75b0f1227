package chat

import (
	"cmp"
	"encoding/json"
	"fmt"

	"nodest/character"
)

// pinnedNow are the documents in effect for a conversation, to be stored with a save
// point.
func pinnedNow(tx Tx, conv *Conversation) (*character.Pins, error) {
	user, err := tx.Characters.Settings()
	if err != nil {
		return nil, err
	}
	settings := conv.Pins.SettingsInForce(user)
	set, err := OptionsOf(conv)
	if err != nil {
		return nil, err
	}
	ch := cmp.Or(set.CharacterID, conv.CharacterID)
	stamps, err := character.WantedBy(settings, conv.PersonaID, ch).Stamps(tx.Characters, conv.pinsOf(ch))
	if err != nil {
		return nil, err
	}
	pins := &character.Pins{Character: stamps.Character, Resources: stamps.Resources, Settings: settings}
	if ch != conv.CharacterID {
		pins.CharacterID = ch
	}
	return pins, nil
}

// pinsOf are the pins for a turn of that character; nil = the newest documents
// count.
func (c *Conversation) pinsOf(characterID string) *character.Pins {
	if c.Pins == nil || cmp.Or(c.Pins.CharacterID, c.CharacterID) != characterID {
		return nil
	}
	return c.Pins
}

// OptionsOf are the settings of a conversation.
func OptionsOf(conv *Conversation) (character.TurnOptions, error) {
	var set character.TurnOptions
	if len(conv.Settings) > 0 {
		if err := json.Unmarshal(conv.Settings, &set); err != nil {
			return set, fmt.Errorf("settings of conversation %s: %w", conv.ID, err)
		}
	}
	return set, nil
}
