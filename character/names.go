package character

import (
	"cmp"

	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// UserName is what the user is called in a chat with a character, see UserPersona.
func UserName(tx Tx, ch *Character, personaID string) (string, error) {
	p, err := UserPersona(tx, ch, personaID)
	return p.Name, err
}

// UserPersona is whom the user plays in a chat with a character: the conversation's persona, else the one that is bound to
// the character, else the user's own. Its name is that of the conversation's persona, else what the character calls the user,
// else the persona's, else the user's name, else "User".
func UserPersona(tx Tx, ch *Character, personaID string) (p framework.Persona, err error) {
	if personaID != "" {
		r, err := tx.Resource(Persona, personaID)
		if err != nil {
			return p, op.InField("personaId", err)
		}
		return personaOf(r), nil
	}
	own, err := ch.ParseSettings()
	if err != nil {
		return p, err
	}
	bound, err := tx.BoundResources(Persona, ch.ID)
	if err != nil {
		return p, err
	}
	s, err := tx.Settings()
	if err != nil {
		return p, err
	}
	if n := len(bound); n > 0 {
		p = personaOf(bound[n-1])
	} else if s.PersonaID != "" {
		r, err := tx.Resource(Persona, s.PersonaID)
		if err == nil {
			p = personaOf(r)
		} else if !fault.Is(err, fault.NotFound) {
			return p, err
		}
	}
	p.Name = cmp.Or(own.User.Name, p.Name, s.UserName, "User")
	return p, nil
}
