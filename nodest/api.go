package nodest

import (
	"nodest/character"
	"nodest/chat"
	"nodest/framework"
)

// Inputs and results of operations, by subject.

// SendInput is a user's message.
type SendInput struct {
	ConversationID string                `json:"conversationId"`
	Text           string                `json:"text"`
	ClientMsgID    string                `json:"clientMsgId,omitempty"`
	ParentID       string                `json:"parentId,omitempty"` // "" = the head
	AuthorID       string                `json:"authorId,omitempty"`
	Options        character.TurnOptions `json:"options"`
	NoReply        bool                  `json:"-"`                  // wire: reply:false
	WhenBusy       string                `json:"whenBusy,omitempty"` // "" = fail, "queue", "cancel"
	APIKey         string                `json:"-"`                  // for this request alone; never stored
	App            bool                  `json:"-"`                  // the NodeST interface asks
}

// Sent is the answer to a send. All of it is committed.
type Sent struct {
	UserMessage  *chat.Message `json:"userMessage,omitempty"`
	Message      *chat.Message `json:"message,omitempty"` // the reply's placeholder
	GenerationID string        `json:"generationId,omitempty"`
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
	App            bool                  `json:"-"` // as in SendInput; regenerate
}

// Attached is the text of a generation from a position.
type Attached struct {
	Generation *chat.Generation `json:"generation"`
	Off        int              `json:"off"`  // code points
	Text       string           `json:"text"` // from Off to now
}

// PreviewInput asks for the request that a message would cause.
type PreviewInput struct {
	ConversationID string                `json:"conversationId"`
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
	Conversations   []*chat.Conversation   `json:"conversations"` // newest first, at most 200
	Characters      []*character.Character `json:"characters"`    // without documents
	SettingsVersion int64                  `json:"settingsVersion"`
	Epoch           string                 `json:"epoch"`
	Seq             int64                  `json:"seq"` // position in the stream that the snapshot covers
}
