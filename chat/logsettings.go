package chat

import "encoding/json"

// LogSettings are what a conversation keeps of the metadata of the SillyTavern log that it was imported
// from, for prompts of that dialect. Each replaces the card's; "" = the card's counts.
type LogSettings struct {
	Scenario     string `json:"scenario"`
	SystemPrompt string `json:"system_prompt"`
	MesExample   string `json:"mes_example"`
}

// LogSettingsOf reads what the conversation was imported with.
func LogSettingsOf(conv *Conversation) LogSettings {
	var kept struct {
		Metadata LogSettings `json:"metadata"`
	}
	if len(conv.Extra) == 0 || json.Unmarshal(conv.Extra, &kept) != nil {
		return LogSettings{}
	}
	return kept.Metadata
}
