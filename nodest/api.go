package nodest

import (
	"encoding/json"

	"nodest/character"
	"nodest/chat"
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
}

// Attached is the text of a generation from a position.
type Attached struct {
	Generation *chat.Generation `json:"generation"`
	Off        int              `json:"off"`  // code points
	Text       string           `json:"text"` // from Off to now
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
	Conversations   []*chat.Conversation   `json:"conversations"` // newest first, at most 200
	Characters      []*character.Character `json:"characters"`    // without documents
	SettingsVersion int64                  `json:"settingsVersion"`
	Epoch           string                 `json:"epoch"`
	Seq             int64                  `json:"seq"` // what the snapshot stands for
}
