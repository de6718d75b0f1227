package archive

import (
	"encoding/json"

	"nodest/chat"
)

// Save points as clients see them: the ChatSave of the NodeST app, with its field
// names. Its timestamp is in epoch milliseconds.

type wireChatSave struct {
	chat.SaveObject
	MessageIDs        []string        `json:"messageIds"`
	Messages          []savedMessage  `json:"messages"`
	NodestChatHistory json.RawMessage `json:"nodestChatHistory"`
}

// savedMessage is the app's Message.
type savedMessage struct {
	ID        string         `json:"id"`
	Text      string         `json:"text"`
	Sender    string         `json:"sender"` // user or bot
	Role      string         `json:"role"`
	Name      string         `json:"name"`
	Timestamp int64          `json:"timestamp"`
	Status    string         `json:"status"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// WireChatSave is a save point with a page of its messages: the app's ChatSave.
func WireChatSave(v *chat.SaveView) any {
	page := struct {
		wireChatSave
		NextCursor *string `json:"nextCursor"` // for before
	}{wireChatSave: chatSaveOf(v)}
	if v.More && len(v.Messages) > 0 {
		page.NextCursor = &v.Messages[0].ID
	}
	return page
}

func chatSaveOf(v *chat.SaveView) wireChatSave {
	w := wireChatSave{
		SaveObject: chat.SaveOf(v.Save), MessageIDs: chat.IDsOf(v.Messages), Messages: make([]savedMessage, len(v.Messages)),
		NodestChatHistory: History(v.Messages),
	}
	var replies *replyCounter
	if !v.More { // else the number of earlier replies is unknown
		replies = new(replyCounter)
	}
	for i, m := range v.Messages {
		w.Messages[i] = savedMessageOf(m, replies)
	}
	return w
}

// savedMessageOf is m as the app's Message; replies has seen the messages before it, nil = those are
// unknown.
func savedMessageOf(m *chat.Message, replies *replyCounter) savedMessage {
	s := savedMessage{ID: m.ID, Text: m.Text(), Sender: "bot", Role: m.Role, Name: m.Name, Timestamp: m.CreatedAt.UnixMilli(), Status: "sent"}
	if m.Role == chat.RoleUser {
		s.Sender = "user"
	}
	if n, ok := replies.index(m); ok {
		s.Metadata = map[string]any{"aiIndex": n}
	}
	return s
}

// replyCounter counts the replies of a branch as the app does: from 1, where 0 is the greeting.
type replyCounter int

// index returns the number of m, if it is a reply of a prompt: of messages that failed, a prompt
// leaves out those of the user.
func (n *replyCounter) index(m *chat.Message) (int, bool) {
	switch {
	case n == nil || m.Role != chat.RoleAssistant || len(chat.InPrompt([]*chat.Message{m})) == 0:
		return 0, false
	case m.Greeting:
		return 0, true
	}
	*n++
	return int(*n), true
}
