package chat

import (
	"encoding/json"
	"strings"
)

// LogSettings are what a conversation keeps of the metadata of the SillyTavern log that it was imported
// from, for prompts of that dialect.
type LogSettings struct {
	Scenario     string   `json:"scenario"` // in the place of the card's; "" = that counts. Likewise the next two
	SystemPrompt string   `json:"system_prompt"`
	MesExample   string   `json:"mes_example"`
	Note         *LogNote `json:"-"` // nil = the log has none
}

// LogNote is what an author's note of ours does not say.
type LogNote struct {
	Text     string
	Position int // SillyTavern's number
	Interval int // messages of the user
	Scan     bool
}

// LogSettingsOf reads what the conversation was imported with.
func LogSettingsOf(conv *Conversation) LogSettings {
	var kept struct {
		Metadata struct {
			LogSettings
			Text     string `json:"note_prompt"`
			Position *int   `json:"note_position"`
			Interval *int   `json:"note_interval"`
			Scan     bool   `json:"note_allow_wi_scan"`
		} `json:"metadata"`
	}
	if len(conv.Extra) == 0 || json.Unmarshal(conv.Extra, &kept) != nil {
		return LogSettings{}
	}
	m := &kept.Metadata
	s := m.LogSettings
	if strings.TrimSpace(m.Text) != "" {
		s.Note = &LogNote{Text: m.Text, Position: 1, Interval: 1, Scan: m.Scan}
		if m.Position != nil {
			s.Note.Position = *m.Position
		}
		if m.Interval != nil {
			s.Note.Interval = *m.Interval
		}
	}
	return s
}
