package chat

import (
	"encoding/json"
	"fmt"

	"nodest/character"
	"nodest/internal/op"
)

// Settings are those of a conversation: options for its turns, and texts of its own.
type Settings struct {
	character.TurnOptions
	Overrides *Overrides `json:"overrides,omitempty"` // nil = none
}

// Overrides take the place of texts of the card in prompts of the SillyTavern dialect; "" = the card's.
type Overrides struct {
	Scenario     string `json:"scenario,omitempty"`
	SystemPrompt string `json:"systemPrompt,omitempty"`
	MesExample   string `json:"mesExample,omitempty"`
}

// MaxOverride bounds each text of Overrides, in code points.
const MaxOverride = 32_000

// Validate refuses values out of their range, with the field below path.
func (s *Settings) Validate(path string) error {
	if err := s.TurnOptions.Validate(path); err != nil || s.Overrides == nil {
		return err
	}
	for _, t := range []struct{ name, text string }{
		{"scenario", s.Overrides.Scenario}, {"systemPrompt", s.Overrides.SystemPrompt}, {"mesExample", s.Overrides.MesExample},
	} {
		if err := op.CheckLength(path+".overrides."+t.name, t.text, MaxOverride); err != nil {
			return err
		}
	}
	return nil
}

// SettingsOf reads the settings of a conversation.
func SettingsOf(conv *Conversation) (s Settings, err error) {
	if len(conv.Settings) > 0 {
		if err := json.Unmarshal(conv.Settings, &s); err != nil {
			return s, fmt.Errorf("settings of conversation %s: %w", conv.ID, err)
		}
	}
	return s, nil
}
