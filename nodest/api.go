package nodest

import (
	"context"
	"encoding/json"
	"time"

	"nodest/card"
	"nodest/framework"
)

// What the doors need of the engine, by subject. Each method's promise stands
// where it is implemented.

// SendInput is a user's message.
type SendInput struct {
	ConversationID string      `json:"-"`
	Text           string      `json:"text"`
	ClientMsgID    string      `json:"clientMsgId,omitempty"`
	ParentID       string      `json:"parentId,omitempty"` // "" = the head
	AuthorID       string      `json:"authorId,omitempty"`
	Options        TurnOptions `json:"options"`
	NoReply        bool        `json:"-"`                  // wire: reply:false
	WhenBusy       string      `json:"whenBusy,omitempty"` // "" = fail, "queue", "cancel"
	APIKey         string      `json:"-"`                  // for this request alone; never stored
}

// Sent is the answer to a send: nothing of it will be lost.
type Sent struct {
	UserMessage  *Message `json:"userMessage,omitempty"`
	Message      *Message `json:"message,omitempty"` // the reply's placeholder
	GenerationID string   `json:"generationId,omitempty"`
}

// GenerateInput asks for a regenerate or continue of a message, or for an
// impersonation in a conversation.
type GenerateInput struct {
	MessageID      string      `json:"-"`
	ConversationID string      `json:"-"`              // impersonate
	Wish           string      `json:"wish,omitempty"` // regenerate: 【重写要求】
	Options        TurnOptions `json:"options"`
	WhenBusy       string      `json:"whenBusy,omitempty"`
}

// EditInput changes a text in place: a new revision of the chosen swipe.
type EditInput struct {
	MessageID string `json:"-"`
	Text      string `json:"text"`
	IfRev     int64  `json:"ifRev,omitempty"` // 0 = last write wins
}

// SwipeInput chooses a swipe: its id, "next" or "prev".
type SwipeInput struct {
	MessageID      string `json:"-"`
	Swipe          string `json:"swipe"`
	GenerateIfLast bool   `json:"generateIfLast,omitempty"` // "next" on the last one of a reply regenerates
	IfRev          int64  `json:"ifRev,omitempty"`
}

// Changed is a message after a change, and the generation that the change began.
type Changed struct {
	Message      *Message `json:"message"`
	GenerationID string   `json:"generationId,omitempty"`
}

// Deleted tells what was hidden or brought back.
type Deleted struct {
	MessageIDs    []string  `json:"messageIds"`
	HeadID        string    `json:"headId"`
	RestoredUntil time.Time `json:"restoredUntil,omitzero"` // a delete can be undone until then; zero after a restore
}

// Attached is the text of a generation from a position.
type Attached struct {
	Generation *Generation `json:"generation"`
	Off        int         `json:"off"`  // code points
	Text       string      `json:"text"` // from Off to now
}

// ConversationInput creates a conversation; nil members of a patch stay.
type ConversationInput struct {
	CharacterID string          `json:"characterId"`
	Title       string          `json:"title,omitempty"`
	PersonaID   string          `json:"personaId,omitempty"`
	Settings    json.RawMessage `json:"settings,omitempty"`
}

// ConversationPatch changes the members that are not nil.
type ConversationPatch struct {
	ID         string
	Title      *string
	PersonaID  *string
	AuthorNote json.RawMessage // nil = stays; null = none of its own
	Settings   json.RawMessage
	Archived   *bool
	IfVersion  int64 // 0 = any
}

// CharacterInput are the documents of a character.
type CharacterInput struct {
	RoleCard     json.RawMessage `json:"roleCard"`
	WorldBook    json.RawMessage `json:"worldBook,omitempty"`
	Preset       json.RawMessage `json:"preset,omitempty"`
	AuthorNote   json.RawMessage `json:"authorNote,omitempty"`
	RegexScripts json.RawMessage `json:"regexScripts,omitempty"`
	IsCradle     *bool           `json:"isCradle,omitempty"`
	Dialect      string          `json:"dialect,omitempty"`
}

// Imported is an imported character and what was odd about its file.
type Imported struct {
	Character *Character     `json:"character"`
	Warnings  []card.Warning `json:"warnings"`
}

// ResourceInput creates or replaces a resource; nil or empty members of a patch stay.
type ResourceInput struct {
	Name       string          `json:"name,omitempty"`
	Dialect    string          `json:"dialect,omitempty"` // default "nodest"; an import knows it from the file
	Document   json.RawMessage `json:"document,omitempty"`
	BindAll    *bool           `json:"bindAll,omitempty"`
	Characters []string        `json:"characterIds,omitempty"`
}

// Page is a part of a list.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"nextCursor"` // "" = the end
}

// HistoryPage is a part of the shown branch, oldest first.
type HistoryPage struct {
	Items []*Message
	More  bool // there are older ones
}

// PreviewInput asks for the request that a message would cause.
type PreviewInput struct {
	ConversationID string      `json:"-"`
	Text           string      `json:"text,omitempty"` // "" = as a continue from the head
	Options        TurnOptions `json:"options"`
}

// SentPrompt is a stored prompt, expanded.
type SentPrompt struct {
	ID             string
	ConversationID string
	GenerationID   string
	Prompt         *framework.Prompt
}

// chat is the engine as the doors see it; it is here to keep the list of
// operations in one place and is checked against *Engine at compile time.
type chat interface {
	// turns (send.go, regenerate.go, …)
	Send(ctx context.Context, c *Call, in SendInput) (*Sent, error)
	Regenerate(ctx context.Context, c *Call, in GenerateInput) (*Changed, error)
	Continue(ctx context.Context, c *Call, in GenerateInput) (*Changed, error)
	Impersonate(ctx context.Context, c *Call, in GenerateInput) (generationID string, err error)
	Cancel(ctx context.Context, userID, generationID string) (status string, err error)
	Attach(ctx context.Context, userID, generationID string, off int) (*Attached, error)
	Wait(ctx context.Context, userID, generationID string) (*Generation, error) // until it ended
	Active(ctx context.Context, userID string) ([]*Attached, error)             // running ones, with their length in Off

	// messages
	Message(ctx context.Context, userID, id string) (*Message, error)
	Edit(ctx context.Context, c *Call, in EditInput) (*Changed, error)
	Swipe(ctx context.Context, c *Call, in SwipeInput) (*Changed, error)
	DeleteMessage(ctx context.Context, c *Call, id, scope string) (*Deleted, error) // scope: one, after, swipe
	RestoreMessage(ctx context.Context, c *Call, id string) (*Deleted, error)

	// conversations
	CreateConversation(ctx context.Context, c *Call, in ConversationInput) (*Conversation, error)
	Conversation(ctx context.Context, userID, id string) (*Conversation, error)
	Conversations(ctx context.Context, userID string, f ConversationFilter, cursor string, limit int) (*Page[*Conversation], error)
	UpdateConversation(ctx context.Context, c *Call, in ConversationPatch) (*Conversation, error)
	DeleteConversation(ctx context.Context, c *Call, id string) error
	ChooseHead(ctx context.Context, c *Call, conversationID, messageID string) (*Conversation, error)
	History(ctx context.Context, userID, conversationID, before string, limit int) (*HistoryPage, error)
	ImportChat(ctx context.Context, c *Call, characterID string, data []byte, filename string) (*Conversation, error)
	ExportChat(ctx context.Context, userID, conversationID string) (data []byte, filename string, err error) // JSONL

	// prompts
	PreviewPrompt(ctx context.Context, userID string, in PreviewInput) (*framework.Prompt, error)
	Prompt(ctx context.Context, userID, promptID string) (*SentPrompt, error)
	DiffPrompts(ctx context.Context, userID, promptID, with string) (*framework.Difference, error)

	// characters
	CreateCharacter(ctx context.Context, c *Call, in CharacterInput) (*Character, error)
	ImportCharacter(ctx context.Context, c *Call, data []byte, filename string) (*Imported, error)
	Character(ctx context.Context, userID, id string) (*Character, error)
	Characters(ctx context.Context, userID, cursor string, limit int) (*Page[*Character], error)
	UpdateCharacter(ctx context.Context, c *Call, id string, in CharacterInput, replace bool, ifVersion int64) (*Character, error)
	DeleteCharacter(ctx context.Context, c *Call, id string) error
	ExportCharacter(ctx context.Context, userID, id, format, spec string) (data []byte, contentType, filename string, err error)
	Avatar(ctx context.Context, userID, id string) (*Avatar, error)
	PutAvatar(ctx context.Context, c *Call, id string, data []byte) (*Character, error)
	CharacterSettings(ctx context.Context, userID, id string) (settings json.RawMessage, version int64, err error)
	PutCharacterSettings(ctx context.Context, c *Call, id string, settings json.RawMessage, ifVersion int64) (json.RawMessage, int64, error)

	// resources
	CreateResource(ctx context.Context, c *Call, kind ResourceKind, in ResourceInput) (*Resource, error)
	ImportResource(ctx context.Context, c *Call, kind ResourceKind, data []byte, filename string) (*Resource, []card.Warning, error)
	Resource(ctx context.Context, userID string, kind ResourceKind, id string) (*Resource, error)
	Resources(ctx context.Context, userID string, kind ResourceKind, cursor string, limit int) (*Page[*Resource], error)
	UpdateResource(ctx context.Context, c *Call, kind ResourceKind, id string, in ResourceInput, replace bool, ifVersion int64) (*Resource, error)
	DeleteResource(ctx context.Context, c *Call, kind ResourceKind, id string) error
	ExportResource(ctx context.Context, userID string, kind ResourceKind, id string) (data []byte, filename string, err error)
	Lint(data []byte, filename string) ([]framework.Finding, error)

	// user
	Settings(ctx context.Context, userID string) (*Settings, error)
	PutSettings(ctx context.Context, c *Call, s Settings, ifVersion int64) (*Settings, error)
	Usage(ctx context.Context, userID, from, to string) ([]UsageRow, error)
	Ack(ctx context.Context, c *Call, seq int64, read map[string]string) error
	Typing(c *Call, conversationID string) // tells the other devices; not stored
	Snapshot(ctx context.Context, userID string) (*Snapshot, error)
}

// Snapshot is what a client loads when it cannot resume.
type Snapshot struct {
	Conversations   []*Conversation `json:"conversations"` // newest first, at most 200
	Characters      []*Character    `json:"characters"`    // without documents
	SettingsVersion int64           `json:"settingsVersion"`
	Epoch           string          `json:"epoch"`
	Seq             int64           `json:"seq"` // what the snapshot stands for
}

var _ chat = (*Engine)(nil)
