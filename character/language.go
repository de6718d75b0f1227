package character

import (
	"nodest/card"
	"nodest/framework"
)

// Language is that of the built-in words in the character's prompts, and of what is written
// about it.
func (ch *Character) Language() (framework.Language, error) {
	set, err := ch.ParseSettings()
	if err != nil {
		return "", err
	}
	c, err := card.ParseRoleCard(ch.RoleCard)
	if err != nil {
		return "", err
	}
	return set.language(c), nil
}
