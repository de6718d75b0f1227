package memory

import (
	"strings"

	"nodest/memory/lang"
)

// gives returns the properties of the user that a unit states.
func (e *entry) gives(people lang.Names) lang.Properties {
	if e.Layer == Fact { // whose wording may have the user's name
		return e.given(strings.ToLower(people.User))
	}
	const read = 1 << 8 // marks e.giving as known; the low byte is the properties
	if e.giving.Load() == 0 {
		e.giving.Store(read | uint32(e.given("")))
	}
	return lang.Properties(e.giving.Load())
}

func (e *entry) given(name string) lang.Properties {
	said := e.Layer == Exchange
	if said && e.Speaker != lang.RoleUser {
		return 0
	}
	return lang.PropertiesTold(e.Text, name, said, e.traits.Self)
}

// pretends reports whether a line of the user states one of these properties only in play, in
// jest or by hearsay.
func (e *entry) pretends(asked lang.Properties) bool {
	return asked != 0 && e.Layer == Exchange && e.Speaker == lang.RoleUser && e.gives(lang.Names{})&asked == 0 && lang.MentionsProperty(e.Text, asked)
}
