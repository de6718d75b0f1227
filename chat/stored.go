package chat

import (
	"encoding/json"
	"slices"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// CheckStored refuses what of a conversation, or of a state of it, the operations would not have stored: that of a file
// that somebody may have written.
func (c *Conversation) CheckStored() error {
	if err := op.CheckLine("title", c.Title, MaxTitle); err != nil {
		return err
	}
	if _, err := op.CheckTags("tags", c.Tags); err != nil {
		return err
	}
	if err := character.CheckNote("authorNote", c.AuthorNote); err != nil {
		return err
	}
	return checkStoredSettings(c.Settings)
}

func checkStoredSettings(doc json.RawMessage) error {
	if op.IsNull(doc) {
		return nil
	}
	var s Settings
	if err := op.DecodeLenient("settings", doc, &s); err != nil {
		return err
	}
	return s.Validate("settings")
}

var storedRoles = []string{RoleUser, RoleAssistant, RoleSystem, RoleNarrator}

// CheckStored refuses a message whose members nothing stores.
func (m *Message) CheckStored() error {
	switch {
	case !slices.Contains(storedRoles, m.Role):
		return fault.InvalidField("role", "value", "no message has the role %.40q", m.Role)
	case !slices.Contains([]string{StatusComplete, StatusPending, StatusStreaming, StatusInterrupted, StatusCancelled, StatusError}, m.Status):
		return fault.InvalidField("status", "value", "no message has the status %.40q", m.Status)
	}
	return nil
}
