package circle

import (
	"time"

	"nodest/character"
	"nodest/internal/attachment"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
)

// Tx is what a transaction offers for the circle.
type Tx struct {
	op.Tx
	Jobs        jobs.Tx
	Characters  character.Tx
	Memory      memory.Tx
	Attachments attachment.Tx
	FeedTx
	TurnTx
	RelationTx
	StateTx
}

// Store stores what a Service needs; package store implements it.
type Store = op.Store[Tx]

// FeedTx keeps posts, comments and likes. Those of deleted characters and deleted ones do
// not exist, except where a method says so.
type FeedTx interface {
	InsertPost(p *Post) error
	// Post returns a post. In Update it is locked until the transaction ends.
	Post(id string) (*Post, error)
	// Posts lists newest first, at most limit, after cursor ("" = start); next is "" at the
	// end.
	Posts(f PostFilter, cursor string, limit int) (items []*Post, next string, err error)
	// UpdatePost stores Favorite, Rating and DeletedAt.
	UpdatePost(p *Post) error

	// InsertComment stores c and counts it in its post.
	InsertComment(c *Comment) error
	Comment(id string) (*Comment, error)
	// Comments returns those of posts, oldest first, with the deleted ones that have live
	// replies. latest limits how many of each post, the newest ones; 0 = all.
	Comments(latest int, postIDs ...string) ([]*Comment, error)
	// UpdateComment stores DeletedAt and End, and counts a deletion in its post.
	UpdateComment(c *Comment) error

	// WasSaid reports whether a post or comment with this TextKey was written since a time.
	WasSaid(textKey string, since time.Time) (bool, error)

	// PutLike stores l unless its author likes the post already: then added is false.
	PutLike(l *Like) (added bool, err error)
	DeleteLike(postID, authorID string) (deleted bool, err error)
}

// PostFilter selects posts; the zero value selects all.
type PostFilter struct {
	AuthorID *string
	Favorite bool
	Since    time.Time // created then or later; zero = all
	Before   time.Time // created before it; zero = all
}

// TurnTx keeps turns.
type TurnTx interface {
	// InsertTurn stores t. added is false, and nothing is stored, if a turn of the same
	// character for the same post and comment, or for the same slot of a day, exists.
	InsertTurn(t *Turn) (added bool, err error)
	Turn(id string) (*Turn, error)
	// UpdateTurn stores PostID, Reason, State, Note, Error, Calls, Tokens, DueAt and EndedAt.
	UpdateTurn(t *Turn) error
	// Turns lists newest first, with TurnFilter.Since by when they ended; at most limit,
	// after cursor.
	Turns(f TurnFilter, cursor string, limit int) (items []*Turn, next string, err error)
	// CancelTurns ends the planned turns about a post or a comment ("" = any of the post) as
	// left out.
	CancelTurns(postID, commentID string) error
}

// TurnFilter selects turns; the zero value selects all.
type TurnFilter struct {
	CharacterID string
	PostID      string
	State       TurnState
	Reactions   bool      // only answers to posts and comments
	Slots       bool      // only those that post
	Since       time.Time // ended then or later; zero = all
	Day         string
}

// RelationTx keeps relationships, message boxes and actions.
type RelationTx interface {
	// Relation returns what a character thinks of another member; a new one, not stored
	// yet, if they have not met. In Update it is locked until the transaction ends.
	Relation(characterID, targetID string) (*Relation, error)
	// PutRelation stores what Relation has returned.
	PutRelation(r *Relation) error
	// Relations returns those of a character, or all ("").
	Relations(characterID string) ([]*Relation, error)

	// PutItem adds an item to a message box and removes the oldest ones above MaxBox.
	PutItem(i *Item) error
	// Items returns a message box, newest first; unread: only those that no review has read.
	Items(characterID string, unread bool) ([]*Item, error)
	// ForgetItems removes the items about a comment, or about a post ("" = any of its
	// comments, too), and what others quote of it.
	ForgetItems(postID, commentID string) error
	// ReadItems marks items as read.
	ReadItems(characterID string, ids ...string) error

	InsertAction(a *Action) error
	Action(id string) (*Action, error)
	UpdateAction(a *Action) error
	// Actions lists newest first those that a character has offered, or all ("").
	Actions(characterID, cursor string, limit int) (items []*Action, next string, err error)
}

// StateTx keeps what is known of the whole circle.
type StateTx interface {
	// CircleState returns the state, the default one if none was stored.
	CircleState() (*State, error)
	// PutCircleState stores LookedAt and AsleepAt.
	PutCircleState(s *State) error
	PutCircleSettings(s *State) error
	// Members returns the characters that take part, in the order of their ids, without
	// documents.
	Members() ([]*character.Character, error)

	// LockSpend returns what was spent on a day, with a lock until the transaction ends, for
	// PutSpend.
	LockSpend(day string) (*Spend, error)
	PutSpend(s *Spend) error
	// Spends lists days from one to another, both inclusive, oldest first.
	Spends(from, to string) ([]*Spend, error)

	// Plan returns what a character means to tell on a day; nil = there is no plan yet.
	Plan(characterID, day string) (*Plan, error)
	PutPlan(p *Plan) error
}

// Plan is what a character means to tell on a day.
type Plan struct {
	CharacterID string
	Day         string
	Items       []PlanItem
}

// PlanItem is something to tell.
type PlanItem struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Source string `json:"source"`        // card, memory or date
	Ref    string `json:"ref,omitempty"` // memory that it comes from
	Used   bool   `json:"used,omitempty"`
}
