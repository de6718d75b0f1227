package chat

import (
	"encoding/json"
	"time"
)

// Modes of an edit.
const (
	EditInPlace = "in_place" // a new revision of the chosen swipe
	EditBranch  = "branch"   // a message of its own beside the old one
)

// EditInput changes a text.
type EditInput struct {
	MessageID  string `json:"messageId"`
	Text       string `json:"text"`
	IfRev      int64  `json:"ifRev,omitempty"`      // 0 = last write wins
	Mode       string `json:"mode,omitempty"`       // "" = EditInPlace
	Regenerate bool   `json:"regenerate,omitempty"` // a user's message is answered again
}

// SwipeInput chooses a swipe: its id, "next" or "prev".
type SwipeInput struct {
	MessageID      string `json:"messageId"`
	Swipe          string `json:"swipe"`
	GenerateIfLast bool   `json:"generateIfLast,omitempty"` // "next" on the last one of a reply regenerates
	IfRev          int64  `json:"ifRev,omitempty"`
}

// Changed is a message after a change, and the generation that the change began.
type Changed struct {
	Message      *Message `json:"message"`
	Reply        *Message `json:"reply,omitempty"` // an edit that is answered: the message that is written
	GenerationID string   `json:"generationId,omitempty"`
}

// Stored is the change without the texts that clients do not get with it.
func (c *Changed) Stored() any {
	return &Changed{c.Message.nearTexts(), c.Reply.nearTexts(), c.GenerationID}
}

// Deleted is the answer to a delete or restore: the messages affected.
type Deleted struct {
	MessageIDs    []string  `json:"messageIds"`
	HeadID        string    `json:"headId"`
	RestoredUntil time.Time `json:"restoredUntil,omitzero"` // a delete can be undone until then; zero after a restore
}

// ConversationInput creates a conversation.
type ConversationInput struct {
	CharacterID string          `json:"characterId"`
	Title       string          `json:"title,omitempty"`
	PersonaID   string          `json:"personaId,omitempty"`
	Settings    json.RawMessage `json:"settings,omitempty"`
}

// ConversationPatch changes the members that are not nil.
type ConversationPatch struct {
	ID         string          `json:"conversationId"`
	Title      *string         `json:"title,omitempty"`
	PersonaID  *string         `json:"personaId,omitempty"`
	AuthorNote json.RawMessage `json:"authorNote,omitempty"` // nil = stays; null = none of its own
	Settings   json.RawMessage `json:"settings,omitempty"`
	Variables  json.RawMessage `json:"variables,omitempty"`      // nil = they stay; null = none
	Timed      json.RawMessage `json:"timedWorldInfo,omitempty"` // likewise
	Archived   *bool           `json:"archived,omitempty"`
	Tags       []string        `json:"tags,omitzero"`       // nil = they stay
	IfVersion  int64           `json:"ifVersion,omitempty"` // 0 = any
}

// ForkInput makes a conversation of a branch.
type ForkInput struct {
	ConversationID string `json:"conversationId"`
	MessageID      string `json:"messageId,omitempty"` // the last one that is copied; "" = the head
	Title          string `json:"title,omitempty"`     // "" = that of the source
}

// Branch is one end of a conversation's tree.
type Branch struct {
	Head         *Message
	Shown        bool // it is the conversation's head
	MessageCount int
}

// Tree is a conversation as runs, by the seq of their first messages. Deleted messages
// are not in it.
type Tree struct {
	Runs      []*Run
	Head      *RunPlace    // head of the conversation; nil = the conversation is empty
	Saves     []PlacedSave // newest first; those without a message in Runs are left out
	Truncated bool         // there are more runs
}

// Run is a part of a tree without branches: each message of it but the last has one
// follower, which is the next.
type Run struct {
	ID           string // the id of its first message
	ParentID     string // the message that it follows; "" = a root
	HeadID       string // its last message
	LeafID       string // the newest message in or below it that nothing follows
	MessageCount int
	Shown        bool // its first message is on the shown branch
	First, Last  *Preview
}

// RunPlace is a message in a run.
type RunPlace struct {
	RunID     string `json:"runId"`
	MessageID string `json:"messageId"`
	Position  int    `json:"position"` // from 1 to the run's MessageCount
}

// PlacedSave is a save point, at the message that it names, or where that is deleted at
// the next one before it.
type PlacedSave struct {
	ID string `json:"id"`
	RunPlace
}

// SearchInput looks for words in the user's messages.
type SearchInput struct {
	Query          string
	ConversationID string
	CharacterID    string
	Cursor         string
	Limit          int // 1 to 200, 0 = 50
}

// Hit is a text that holds all words of a search.
type Hit struct {
	Message *Message
	Chat    *Conversation
	Shown   bool // the message is on the shown branch
	SwipeID string
	Snippet string   // part of the swipe's text, around the first match
	Matches [][2]int // in the snippet, from and to, code points
}

// SaveInput makes a save point.
type SaveInput struct {
	ConversationID string `json:"conversationId"`
	Description    string `json:"description"`
	PreviewText    string `json:"previewText,omitempty"` // "" = the beginning of the last message
	Thumbnail      string `json:"thumbnail,omitempty"`
}

// SaveView is a save point with its messages.
type SaveView struct {
	Save     *Save
	Messages []*Message // oldest first, as they were then
	More     bool       // there are older ones
}

// Restored is a conversation after it was set back to a save point.
type Restored struct {
	Conversation *Conversation `json:"conversation"`
	HeadID       string        `json:"headId"`
	Before       *Save         `json:"before,omitempty"` // automatic: what was shown until now
}

// HistoryPage is a part of the shown branch, oldest first.
type HistoryPage struct {
	Items    []*Message
	More     bool // there are older ones; newer ones after HistoryAfter
	Displays bool // scripts or files change how messages of this chat look: Message.Display and Files, which events do not have
}
