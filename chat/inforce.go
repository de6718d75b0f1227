package chat

import (
	"cmp"

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
	set, err := SettingsOf(conv)
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
