package memory

import "strings"

// gives returns the properties of the user that a unit tells.
func (e *entry) gives(people Names) properties {
	if e.Layer == Fact { // whose wording may have the user's name
		return e.given(strings.ToLower(people.User))
	}
	const read = 1 << 8 // marks e.giving as known; the low byte is the properties
	if e.giving.Load() == 0 {
		e.giving.Store(read | uint32(e.given("")))
	}
	return properties(e.giving.Load())
}

// given is what a unit tells of a user of this name.
func (e *entry) given(name string) properties {
	said := e.Layer == Exchange
	if said && e.Speaker != RoleUser {
		return 0
	}
	return propertiesTold(e.Text, name, said, e.traits.self)
}

// pretends reports whether a line of the user has one of these properties only in play, in
// jest or by hearsay.
func (e *entry) pretends(asked properties) bool {
	return asked != 0 && e.Layer == Exchange && e.Speaker == RoleUser && e.gives(Names{})&asked == 0 && mentionsProperty(e.Text, asked)
}
