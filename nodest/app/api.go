package app

import (
	"encoding/json"
)

// Statuses of a Request, in the words of the app.
const (
	StatusNewCharacter = "新建角色"
	StatusSameChat     = "同一角色继续对话"
	StatusUpdateCard   = "更新人设"
)

// Request is a call of the NodeST interface.
type Request struct {
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

// Answer is the answer of the NodeST interface; a failure is an error.
type Answer struct {
	Response       string `json:"response"`
	ConversationID string `json:"conversationId"` // ours
	CharacterID    string `json:"characterId"`
	MessageID      string `json:"messageId,omitempty"`
}

// Actions of a HistoryRequest.
const (
	ActionEditAI     = "editAiMessageByIndex"
	ActionEditUser   = "editUserMessageByIndex"
	ActionDeleteAI   = "deleteAiMessageByIndex"
	ActionDeleteUser = "deleteUserMessageByIndex"
	ActionRegenerate = "regenerateFromMessage"
	ActionRestore    = "restoreChatHistory"
	ActionReset      = "resetChatHistory"
	ActionGet        = "getChatHistory"
)

// HistoryRequest changes or reads a history as the app does, by index from 1.
type HistoryRequest struct {
	ConversationID string          `json:"conversationId"`
	Action         string          `json:"action"`
	Index          *int            `json:"index,omitempty"`   // regenerate: 0 = the greeting
	Text           string          `json:"text,omitempty"`    // edit: the new text; regenerate: the instruction
	History        json.RawMessage `json:"history,omitempty"` // restore: a ChatHistoryEntity
	APIKey         string          `json:"-"`
}

// HistoryAnswer answers a HistoryRequest.
type HistoryAnswer struct {
	OK       bool            `json:"ok"`                 // false: the index is out of range, nothing changed
	Response string          `json:"response,omitempty"` // regenerate
	History  json.RawMessage `json:"history"`            // the ChatHistoryEntity afterwards
}
