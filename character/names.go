package character

import (
	"cmp"

	"nodest/internal/fault"
	"nodest/internal/op"
)

// UserName is what the user is called in a chat with a character: the name of
// the conversation's persona, else what the character calls them, else the name
// of the persona that is bound to the character, or of the user's own, else the
// user's name, else "User".
func UserName(tx Tx, ch *Character, personaID string) (string, error) {
	if personaID != "" {
		r, err := tx.Resource(Persona, personaID)
		if err != nil {
			return "", op.InField("personaId", err)
		}
		return personaOf(r).Name, nil
	}
	own, err := ch.ParseSettings()
	if err != nil || own.User.Name != "" {
		return own.User.Name, err
	}
	bound, err := tx.BoundResources(Persona, ch.ID)
	if err != nil {
		return "", err
	}
	if len(bound) > 0 {
		return personaOf(bound[len(bound)-1]).Name, nil
	}
	s, err := tx.Settings()
	if err != nil {
		return "", err
	}
	if s.PersonaID != "" {
		r, err := tx.Resource(Persona, s.PersonaID)
		if err == nil {
			return personaOf(r).Name, nil
		}
		if !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	return cmp.Or(s.UserName, "User"), nil
}
