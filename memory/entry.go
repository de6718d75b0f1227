package memory

import (
	"strings"

	"nodest/memory/lang"
)

// gives returns the properties of the user that a unit states. They are remembered, except of
// facts that name the user.
func (e *entry) gives(people lang.Names) lang.Properties {
	if e.Layer == Exchange && e.Speaker != lang.RoleUser {
		return 0
	}
	if name := strings.ToLower(people.User); e.Layer == Fact && name != "" && strings.Contains(strings.ToLower(e.Text), name) {
		return lang.PropertiesTold(e.Text, name, false, e.traits.Self)
	}
	const known = 1 << 8 // the low byte is the properties
	if e.giving.Load() == 0 {
		e.giving.Store(known | uint32(lang.PropertiesTold(e.Text, "", e.Layer == Exchange, e.traits.Self)))
	}
	return lang.Properties(e.giving.Load())
}

// pretends reports whether a line of the user states one of these properties only in play, in
// jest or by hearsay.
func (e *entry) pretends(asked lang.Properties) bool {
	return asked != 0 && e.Layer == Exchange && e.Speaker == lang.RoleUser && e.gives(lang.Names{})&asked == 0 && lang.MentionsProperty(e.Text, asked)
}
