package nodest

import (
	"encoding/json"
	"time"
)

// Save is a save point: a version of a conversation, by name. What it stands for
// is read when it is asked for.
type Save struct {
	ID             string          `json:"id"`
	ConversationID string          `json:"conversationId"`
	CharacterID    string          `json:"characterId"`
	Version        int64           `json:"version"` // of the conversation
	HeadID         string          `json:"headId"`
	Description    string          `json:"description"`
	PreviewText    string          `json:"previewText"`
	MessageCount   int             `json:"messageCount"`
	Automatic      bool            `json:"automatic,omitempty"` // made by a restore, of what was shown before
	Thumbnail      string          `json:"thumbnail,omitempty"`
	Pins           *Pins           `json:"pins,omitempty"`  // what the documents were
	Extra          json.RawMessage `json:"extra,omitempty"` // members of an imported file that are not ours
	ImportedAt     *time.Time      `json:"importedAt,omitempty"`
	CreatedAt      time.Time       `json:"createdAt"`
}

// Pins name versions of the documents of a turn, and hold the user's settings. A
// save point keeps those that were in force. A conversation that was restored is
// bound to them until a document is changed again: Over says what was newest when
// they were set, and where that is no longer so the newest counts.
type Pins struct {
	Character int64           `json:"character"`
	Resources []ResourceStamp `json:"resources,omitempty"`
	Settings  *Settings       `json:"settings,omitempty"`
	Over      *Over           `json:"over,omitempty"` // nil in a save point
}

// Over is what was newest when pins were set.
type Over struct {
	Character int64           `json:"character"`
	Resources []ResourceStamp `json:"resources,omitempty"`
	Settings  int64           `json:"settings"` // version
}
