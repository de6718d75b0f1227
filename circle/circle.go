// Package circle is the social circle of a user: a feed in which the user and the user's
// characters post, comment and like. Characters react by jobs, at their own pace and
// within limits; what happens changes their relationships and becomes part of their
// memory.
//
// Everything that decides without a model (who reacts, when, whether a text is new) is in
// package circle/rules. This package reads what the rules need, asks the model, and stores
// the result in the transaction that ends the job: a crash neither loses nor doubles it.
//
// The circle is public among the user's characters. A prompt for a post or a comment has
// nothing from private chats: only cards, posts, comments, relationships, and memories that
// come from the circle or that the user marked as shareable.
package circle

import (
	"time"

	"nodest/circle/rules"
	"nodest/internal/op"
)

// Me is the user as an author, a target or a sender. Everybody else is named by the id of
// a character. In the wire format it is the id of the account.
const Me = ""

// Limits of what people write, in code points, and of a post.
const (
	MaxPost     = 5_000
	MaxComment  = 2_000
	MaxImages   = 4
	maxComments = 1_000 // comments on a post
)

// Post is a post in the feed.
type Post struct {
	ID         string
	AuthorID   string
	AuthorName string     // as it was when the post was written
	Kind       rules.Kind // kind of a character's post; "" = none
	Text       string
	TextKey    string // rules.Key of Text
	Images     []Image
	Thoughts   string // thoughts that the author did not say
	Emotion    *rules.Emotion
	Evidence   []string // ids of posts, comments and memories that statements about others rest on
	Favorite   bool
	Rating     int // 1 to 5 by the user; 0 = none
	CreatedAt  time.Time
	DeletedAt  *time.Time

	// Read with a post, not written with it.
	Comments int // live ones
	Likes    []Like
}

// Image is an image of a post.
type Image struct {
	ID   string // id of the attachment
	Name string // name of its file
}

// Comment is a comment on a post, or a reply to another comment.
type Comment struct {
	ID         string
	PostID     string
	AuthorID   string
	AuthorName string
	ReplyTo    string // comment; "" = the post
	Thread     string // the comment on the post that everything below answers; its own id if it is that
	Depth      int    // 1 = on the post
	Text       string
	TextKey    string // rules.Key of Text
	Thoughts   string
	Emotion    *rules.Emotion
	Emoticon   string
	Evidence   []string
	End        bool // the author wants to say no more in this thread
	CreatedAt  time.Time
	DeletedAt  *time.Time // set: shown as a gap while it has live replies
}

// Like is a like; each author likes a post once.
type Like struct {
	PostID     string
	AuthorID   string
	AuthorName string
	Thoughts   string
	CreatedAt  time.Time
}

// TurnState is how far a turn is.
type TurnState string

// The states of a turn. All but the first are final.
const (
	TurnPlanned TurnState = "planned"
	TurnDone    TurnState = "done"     // something was stored
	TurnNothing TurnState = "nothing"  // the character did nothing, or its text was dropped: Note says why
	TurnLeftOut TurnState = "left_out" // it was not carried out: Note says why
	TurnFailed  TurnState = "failed"   // the model could not be asked, or its answers were unusable
)

// Turn is one thing that a character may do: react to a post, answer a comment, or post.
// It is planned without a model; a job carries it out when it is due. Turns stay readable,
// so that the user sees what was left out and what failed.
type Turn struct {
	ID          string
	CharacterID string
	Slot        string       // for a post: its time of day or its number; with CharacterID and Day unique
	Day         string       // for a post: the user's day, 2006-01-02
	PostID      string       // post that it reacts to; of a post: the post that was written
	CommentID   string       // comment that it answers; "" = it reacts to the post
	TargetID    string       // whose post or comment it answers
	Reason      rules.Reason // why it was chosen
	State       TurnState
	Note        rules.Note  // why it was left out or came to nothing; "" = no reason
	Error       *op.Failure // failure of the last attempt; nil = none
	Calls       int64       // calls of the model
	Tokens      int64
	DueAt       time.Time
	CreatedAt   time.Time
	EndedAt     *time.Time
}

// Relation is what a character thinks of another member. The user has no relations.
type Relation struct {
	CharacterID  string // who has it
	TargetID     string
	Strength     int    // −100 to 100
	Type         string // one of rules.Types
	Kept         bool   // the type was named by the model or the user, and does not follow the strength
	Description  string // at most 500 code points
	Interactions int64
	ActionAt     *time.Time // when an action was offered last
	UpdatedAt    time.Time
}

// Item is an entry of a character's message box: something that another member did that
// concerns the character.
type Item struct {
	ID          string
	CharacterID string // whose box it is
	SenderID    string
	SenderName  string
	Type        string // like, comment, reply, post, message, invitation, relationship_request or alert
	Text        string
	ContextID   string // post or comment that it is about
	Context     string // its first 50 code points
	CreatedAt   time.Time
	ReadAt      *time.Time // when a review has read it
}

// MaxBox is how many items a message box keeps.
const MaxBox = 50

// Action is something that a relationship makes possible: a gift, an invitation or support.
type Action struct {
	ID          string
	CharacterID string // who offers it
	TargetID    string
	Type        string // gift, invitation or support
	Text        string
	State       string // pending, accepted, rejected or expired
	ExpiresAt   time.Time
	CreatedAt   time.Time
	EndedAt     *time.Time
}

// Spend is what the circle has cost on one of the user's days.
type Spend struct {
	Day     string // 2006-01-02
	Calls   int64
	Tokens  int64
	LeftOut int64 // turns that had to wait for another day, or were left out, because of the limits
}

// State is what is known of a user's circle.
type State struct {
	Settings  Settings
	LookedAt  time.Time  // when the user looked at the feed last; zero = never
	AsleepAt  *time.Time // since when the circle sleeps; nil = it is awake
	UpdatedAt time.Time  // last change of Settings; zero = the user changed none
}

// Settings are those of the whole circle; those of a character are in its settings.
type Settings struct {
	Everybody     bool   `json:"everybody"` // every character reacts to every post of the user
	Quick         bool   `json:"quick"`     // reactions take seconds, not minutes to hours
	QuietFrom     string `json:"quietFrom"` // HH:MM in the user's time zone; equal to QuietUntil = no quiet hours
	QuietUntil    string `json:"quietUntil"`
	CallsPerDay   int64  `json:"callsPerDay"`   // calls of the model, 0 to 10,000; 0 = the circle does not ask a model
	TokensPerDay  int64  `json:"tokensPerDay"`  // 0 to 100,000,000
	SleepAfter    int    `json:"sleepAfter"`    // days without a look after which the circle sleeps, 1 to 365
	Proactive     bool   `json:"proactive"`     // characters write private messages when the user is silent
	ProactiveADay int    `json:"proactiveADay"` // 1 to 24, over all characters
	SilentHours   int    `json:"silentHours"`   // before a private message, 1 to 720
}

// DefaultSettings are those of a user who changed none.
func DefaultSettings() Settings {
	return Settings{
		QuietFrom: "23:00", QuietUntil: "07:00", CallsPerDay: 200, TokensPerDay: 400_000, SleepAfter: 3,
		ProactiveADay: 2, SilentHours: 24,
	}
}
