package nodest

import (
	"encoding/json"
	"time"

	"nodest/character"
	"nodest/framework"
)

// What operations take and return, by subject.

// SendInput is a user's message.
type SendInput struct {
	ConversationID string                `json:"-"`
	Text           string                `json:"text"`
	ClientMsgID    string                `json:"clientMsgId,omitempty"`
	ParentID       string                `json:"parentId,omitempty"` // "" = the head
	AuthorID       string                `json:"authorId,omitempty"`
	Options        character.TurnOptions `json:"options"`
	NoReply        bool                  `json:"-"`                  // wire: reply:false
	WhenBusy       string                `json:"whenBusy,omitempty"` // "" = fail, "queue", "cancel"
	APIKey         string                `json:"-"`                  // for this request alone; never stored
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
	MessageID      string                `json:"-"`
	ConversationID string                `json:"-"`              // impersonate
	Wish           string                `json:"wish,omitempty"` // regenerate: 【重写要求】
	Options        character.TurnOptions `json:"options"`
	WhenBusy       string                `json:"whenBusy,omitempty"`
	APIKey         string                `json:"-"` // as in SendInput; regenerate and continue
}

// Modes of an edit.
const (
	EditInPlace = "in_place" // a new revision of the chosen swipe
	EditBranch  = "branch"   // a message of its own beside the old one
)

// EditInput changes a text.
type EditInput struct {
	MessageID  string `json:"-"`
	Text       string `json:"text"`
	IfRev      int64  `json:"ifRev,omitempty"`      // 0 = last write wins
	Mode       string `json:"mode,omitempty"`       // "" = EditInPlace
	Regenerate bool   `json:"regenerate,omitempty"` // a user's message is answered again
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
	Reply        *Message `json:"reply,omitempty"` // an edit that is answered: the message that is written
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

// ForkInput makes a conversation of a branch.
type ForkInput struct {
	ConversationID string `json:"-"`
	MessageID      string `json:"messageId,omitempty"` // the last one that is copied; "" = the head
	Title          string `json:"title,omitempty"`     // "" = that of the source
}

// Branch is one end of a conversation's tree.
type Branch struct {
	Head         *Message
	Shown        bool // it is the conversation's head
	MessageCount int
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
	SwipeID string
	Snippet string   // of the swipe's text, around the first match
	Matches [][2]int // in the snippet, from and to, code points
}

// SaveInput makes a save point.
type SaveInput struct {
	ConversationID string `json:"-"`
	Description    string `json:"description"`
	PreviewText    string `json:"previewText,omitempty"` // "" = the beginning of the last message
	Thumbnail      string `json:"thumbnail,omitempty"`
}

// SaveView is a save point with the messages it stands for, rendered now.
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

// Statuses of a NodeST call: the seed's words and ours.
const (
	StatusNewCharacter = "新建角色"
	StatusSameChat     = "同一角色继续对话"
	StatusUpdateCard   = "更新人设"
)

// PortInput is a call of the NodeST interface.
type PortInput struct {
	UserMessage        string          `json:"userMessage"`
	ConversationID     string          `json:"conversationId"` // the app's own key, or an id of ours
	Status             string          `json:"status"`
	APIKey             string          `json:"-"`
	Provider           string          `json:"provider,omitempty"`
	JSONString         json.RawMessage `json:"jsonString,omitempty"` // text or object
	IsCradleGeneration *bool           `json:"isCradleGeneration,omitempty"`
	CharacterID        string          `json:"characterId,omitempty"`
	CustomUserName     string          `json:"customUserName,omitempty"`
	UseToolCalls       *bool           `json:"useToolCalls,omitempty"`
}

// PortAnswer is the answer of the NodeST interface; a failure is an error.
type PortAnswer struct {
	Response       string `json:"response"`
	ConversationID string `json:"conversationId"` // ours
	CharacterID    string `json:"characterId"`
	MessageID      string `json:"messageId,omitempty"`
}

// Actions of PortHistory: the index form of the app (nodest.md 10, 11).
const (
	PortEditAI     = "editAiMessageByIndex"
	PortEditUser   = "editUserMessageByIndex"
	PortDeleteAI   = "deleteAiMessageByIndex"
	PortDeleteUser = "deleteUserMessageByIndex"
	PortRegenerate = "regenerateFromMessage"
	PortRestore    = "restoreChatHistory"
	PortReset      = "resetChatHistory"
	PortGet        = "getChatHistory"
)

// PortHistoryInput changes or reads a history as the app does, by index from 1.
type PortHistoryInput struct {
	ConversationID string          `json:"conversationId"`
	Action         string          `json:"action"`
	Index          int             `json:"index,omitempty"`   // regenerate: 0 = the greeting
	Text           string          `json:"text,omitempty"`    // edit: the new text; regenerate: the wish
	History        json.RawMessage `json:"history,omitempty"` // restore: a ChatHistoryEntity
	APIKey         string          `json:"-"`
}

// PortHistory is what it answers.
type PortHistory struct {
	OK       bool            `json:"ok"`                 // false: the index is out of range, nothing changed
	Response string          `json:"response,omitempty"` // regenerate
	History  json.RawMessage `json:"history"`            // the ChatHistoryEntity afterwards
}

// HistoryPage is a part of the shown branch, oldest first.
type HistoryPage struct {
	Items []*Message
	More  bool // there are older ones
}

// PreviewInput asks for the request that a message would cause.
type PreviewInput struct {
	ConversationID string                `json:"-"`
	Text           string                `json:"text,omitempty"` // "" = as a continue from the head
	Options        character.TurnOptions `json:"options"`
}

// SentPrompt is a stored prompt, expanded.
type SentPrompt struct {
	ID             string
	ConversationID string
	GenerationID   string
	Prompt         *framework.Prompt
}

// Snapshot is what a client loads when it cannot resume.
type Snapshot struct {
	Conversations   []*Conversation        `json:"conversations"` // newest first, at most 200
	Characters      []*character.Character `json:"characters"`    // without documents
	SettingsVersion int64                  `json:"settingsVersion"`
	Epoch           string                 `json:"epoch"`
	Seq             int64                  `json:"seq"` // what the snapshot stands for
}
