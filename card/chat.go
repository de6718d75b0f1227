package card

import (
	"encoding/json"
	"time"
)

// Chat is a chat log.
type Chat struct {
	Header        json.RawMessage // the first line as it came; nil for a log of ours
	Metadata      json.RawMessage // chat_metadata, an object; the truth over Header
	UserName      string
	CharacterName string
	Messages      []ChatMessage
	Warnings      []Warning
}

// ChatMessage is one message of a log.
type ChatMessage struct {
	Role      string // "user", "assistant", "system" (hidden from the prompt) or "narrator"
	Name      string
	Text      string // of the chosen swipe
	Reasoning string
	SentAt    time.Time   // zero if the log does not say
	Swipes    []ChatSwipe // at least one; Swipes[Swipe].Text == Text
	Swipe     int
	Hidden    bool            // is_system: not in prompts, whatever the role
	Raw       json.RawMessage // the line as it came, nil for a message of ours
}

// ChatSwipe is one version of a message.
type ChatSwipe struct {
	Text      string
	Reasoning string
	Model     string
	SentAt    time.Time
	Raw       json.RawMessage // its element of swipe_info, nil if there is none
}

// ChatNames are the names for logs that do not carry them.
type ChatNames struct{ User, Character string }

// ImportChat reads a chat log: SillyTavern JSONL, or JSON of oobabooga, Agnai,
// CAI Tools, Kobold Lite or Risu. Branches of CAI Tools beyond the first are
// not read; a warning says so.
//
// Errors: TooLarge, InvalidImport with the line.
func ImportChat(data []byte, names ChatNames, limits Limits) (*Chat, error) { return nil, nil }

// ExportChat writes a log as SillyTavern JSONL. Fields of Raw that the messages
// do not cover are kept.
func ExportChat(chat *Chat) ([]byte, error) { return nil, nil }
