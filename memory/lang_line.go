package memory

import "time"

// Role says which side speaks.
type Role string

// The roles whose words are evidence. Messages of any other role (system,
// narrator, summary) never are.
const (
	RoleUser      Role = "user"
	RoleCharacter Role = "assistant"
)

// Speech is what one side says.
type Speech struct {
	Role Role
	Name string // of the speaker; may be empty
	Text string
	At   time.Time
}

// Names are what the two sides are called where a message has no name of its own.
type Names struct{ User, Character string }

func (n Names) speaker(m Speech) string {
	switch {
	case m.Name != "":
		return m.Name
	case m.Role == RoleUser && n.User != "":
		return n.User
	case m.Role == RoleUser:
		return "User"
	case n.Character != "":
		return n.Character
	}
	return "Character"
}

// Subject says whom or what a memory is about.
type Subject string

// The subjects.
const (
	AboutUser         Subject = "user"
	AboutCharacter    Subject = "character"
	AboutRelationship Subject = "relationship"
	AboutWorld        Subject = "world" // the story and everything else
)

// Sort is the kind of a memory ("kind" on the wire).
type Sort string

// The sorts.
const (
	Profile    Sort = "profile"
	Preference Sort = "preference"
	Happening  Sort = "event"
	Intention  Sort = "plan"
	Promise    Sort = "promise"
	Relation   Sort = "relation"
	OtherSort  Sort = "other"
)

// What a statement may be about, and of which kind.
var (
	subjects = []Subject{AboutUser, AboutCharacter, AboutRelationship, AboutWorld}
	sorts    = []Sort{Profile, Preference, Happening, Intention, Promise, Relation, OtherSort}
)
