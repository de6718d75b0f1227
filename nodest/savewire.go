package nodest

import (
	"encoding/json"

	"nodest/op"
)

// Save points as clients see them: the ChatSave of the NodeST app, with its field
// names. Its timestamp is in epoch milliseconds.

type wireSave struct {
	ID             string   `json:"id"`
	ConversationID string   `json:"conversationId"`
	CharacterID    string   `json:"characterId"`
	Timestamp      int64    `json:"timestamp"`
	CreatedAt      op.Time  `json:"createdAt"` // the same moment as Timestamp
	Description    string   `json:"description"`
	PreviewText    string   `json:"previewText"`
	MessageCount   int      `json:"messageCount"`
	Automatic      bool     `json:"automatic,omitempty"`
	Thumbnail      string   `json:"thumbnail,omitempty"`
	ImportedAt     *op.Time `json:"importedAt,omitempty"`
	HeadID         *string  `json:"headId"`
	Version        int64    `json:"version"`
}

// WireSave is s as clients see it in lists, answers and events: the seed's
// ChatSave without messages.
func WireSave(s *Save) any { return saveOf(s) }

func saveOf(s *Save) wireSave {
	w := wireSave{
		ID: s.ID, ConversationID: s.ConversationID, CharacterID: s.CharacterID, Timestamp: s.CreatedAt.UnixMilli(), CreatedAt: op.Time(s.CreatedAt),
		Description: s.Description, PreviewText: s.PreviewText, MessageCount: s.MessageCount,
		Automatic: s.Automatic, Thumbnail: s.Thumbnail, ImportedAt: op.OptionalTime(s.ImportedAt), Version: s.Version,
	}
	if s.HeadID != "" {
		w.HeadID = &s.HeadID
	}
	return w
}

type wireChatSave struct {
	wireSave
	MessageIDs        []string        `json:"messageIds"`
	Messages          []savedMessage  `json:"messages"`
	NodestChatHistory json.RawMessage `json:"nodestChatHistory"`
}

// savedMessage is the app's Message.
type savedMessage struct {
	ID        string         `json:"id"`
	Text      string         `json:"text"`
	Sender    string         `json:"sender"` // user or bot
	Timestamp int64          `json:"timestamp"`
	Status    string         `json:"status"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// WireChatSave is a save point with its messages: the seed's ChatSave.
func WireChatSave(v *SaveView) any { return chatSaveOf(v) }

func chatSaveOf(v *SaveView) wireChatSave {
	w := wireChatSave{
		wireSave: saveOf(v.Save), MessageIDs: idsOf(v.Messages), Messages: make([]savedMessage, len(v.Messages)),
		NodestChatHistory: chatHistoryOf(v.Messages),
	}
	var indexes map[string]int
	if !v.More { // else nobody knows how many stand before
		indexes = aiIndexes(v.Messages)
	}
	for i, m := range v.Messages {
		s := savedMessage{ID: m.ID, Text: m.Text(), Sender: "bot", Timestamp: m.CreatedAt.UnixMilli(), Status: "sent"}
		if m.Role == RoleUser {
			s.Sender = "user"
		}
		if n, ok := indexes[m.ID]; ok {
			s.Metadata = map[string]any{"aiIndex": n}
		}
		w.Messages[i] = s
	}
	return w
}

// aiIndexes count the replies of a whole branch as the app does: from 1, where 0
// is the greeting.
func aiIndexes(branch []*Message) map[string]int {
	indexes, n := map[string]int{}, 0
	for _, m := range cleanOf(branch) {
		switch {
		case m.Role != RoleAssistant:
		case m.Greeting:
			indexes[m.ID] = 0
		default:
			n++
			indexes[m.ID] = n
		}
	}
	return indexes
}
