package lang

import "time"

// Role says which side speaks.
type Role string

// The roles whose words are evidence. Messages of any other role (system,
// narrator, summary) never are.
const (
	RoleUser      Role = "user"
	RoleCharacter Role = "assistant"
)

// Line is what one side says.
type Line struct {
	Role Role
	Name string // of the speaker; may be empty
	Text string
	At   time.Time
}

// Names are what the two sides are called where a message has no name of its own.
type Names struct{ User, Character string }

func (n Names) Speaker(m Line) string {
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

// Kind is the kind of a memory ("kind" on the wire).
type Kind string

// The sorts.
const (
	KindProfile    Kind = "profile"
	KindPreference Kind = "preference"
	KindEvent      Kind = "event"
	KindPlan       Kind = "plan"
	KindPromise    Kind = "promise"
	KindRelation   Kind = "relation"
	KindOther      Kind = "other"
)

// What a statement may be about, and of which kind.
var (
	Subjects = []Subject{AboutUser, AboutCharacter, AboutRelationship, AboutWorld}
	Kinds    = []Kind{KindProfile, KindPreference, KindEvent, KindPlan, KindPromise, KindRelation, KindOther}
)
