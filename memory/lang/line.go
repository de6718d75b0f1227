package lang

import "time"

type Role string

// Messages of any other role (system, narrator, summary) are never evidence.
const (
	RoleUser      Role = "user"
	RoleCharacter Role = "assistant"
)

type Line struct {
	Role Role
	Name string // the speaker's name; may be empty
	Text string
	At   time.Time
}

// Names are those of the two sides, for messages without a name of their own.
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

type Subject string

const (
	AboutUser         Subject = "user"
	AboutCharacter    Subject = "character"
	AboutRelationship Subject = "relationship"
	AboutWorld        Subject = "world" // the story and everything else
)

// Kind is the kind of a memory.
type Kind string

const (
	KindProfile    Kind = "profile"
	KindPreference Kind = "preference"
	KindEvent      Kind = "event"
	KindPlan       Kind = "plan"
	KindPromise    Kind = "promise"
	KindRelation   Kind = "relation"
	KindOther      Kind = "other"
)

var (
	Subjects = []Subject{AboutUser, AboutCharacter, AboutRelationship, AboutWorld}
	Kinds    = []Kind{KindProfile, KindPreference, KindEvent, KindPlan, KindPromise, KindRelation, KindOther}
)
