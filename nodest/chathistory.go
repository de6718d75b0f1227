package nodest

import (
	"encoding/json"
	"strings"

	"nodest/framework"
)

// What a history is called in the documents of the NodeST app. Restoring one
// never changes these.
const (
	chatHistoryName       = "Chat History"
	chatHistoryRole       = "system"
	chatHistoryIdentifier = "chatHistory"
)

// chatHistory is the app's ChatHistoryEntity: what was said, without anything
// that a prompt puts between it.
type chatHistory struct {
	Name       string      `json:"name"`
	Role       string      `json:"role"`
	Identifier string      `json:"identifier"`
	Parts      []chatEntry `json:"parts"`
}

// chatEntry is one message of it: the app's ChatMessage.
type chatEntry struct {
	ID        string     `json:"id,omitempty"` // of our message
	Role      string     `json:"role"`         // user, model or system
	Parts     []chatPart `json:"parts"`
	FirstMes  bool       `json:"is_first_mes,omitempty"`
	Timestamp int64      `json:"timestamp,omitempty"` // ms since 1970
}

type chatPart struct {
	Text string `json:"text"`
}

// chatHistoryOf is a branch, oldest first, as the app's ChatHistoryEntity: what a
// prompt would be made of. So hidden messages, places without a text and failed
// exchanges are not in it, and a message whose reply was rewritten carries the wish.
func chatHistoryOf(messages []*Message) json.RawMessage {
	h := chatHistory{
		Name: chatHistoryName, Role: chatHistoryRole, Identifier: chatHistoryIdentifier, Parts: []chatEntry{},
	}
	answered := -1 // the newest message of the user in Parts
	for _, m := range cleanOf(messages) {
		switch m.Role {
		case RoleUser:
			answered = len(h.Parts)
		case RoleAssistant:
			if wish := m.Chosen().Wish; wish != "" && answered >= 0 {
				part := &h.Parts[answered].Parts[0]
				part.Text = framework.WithRewrite(part.Text, wish)
			}
		}
		h.Parts = append(h.Parts, chatEntry{
			ID: m.ID, Role: chatRole(m), Parts: []chatPart{{m.Text()}}, FirstMes: m.Greeting,
			Timestamp: m.CreatedAt.UnixMilli(),
		})
	}
	return jsonOf(h)
}

// chatRole is the app's word for who said m.
func chatRole(m *Message) string {
	switch m.Role {
	case RoleUser:
		return "user"
	case RoleAssistant:
		return "model"
	}
	return "system"
}

// cleanOf are the messages of a branch that count as history. A reply that failed
// before its first word is left out with the message that it was to answer.
func cleanOf(branch []*Message) []*Message {
	clean := make([]*Message, 0, len(branch))
	for _, m := range branch {
		if m.Hidden {
			continue
		}
		if strings.TrimSpace(m.Text()) != "" {
			clean = append(clean, m)
			continue
		}
		if last := len(clean) - 1; m.Status == StatusError && last >= 0 && clean[last].ID == m.ParentID && clean[last].Role == RoleUser {
			clean = clean[:last]
		}
	}
	return clean
}
