package archive

import (
	"encoding/json"
	"unicode/utf8"

	"nodest/chat"
	"nodest/internal/op"
)

// logOverrides are the members of chat_metadata that take the place of texts of the card.
type logOverrides struct {
	Scenario     any `json:"scenario"`
	SystemPrompt any `json:"system_prompt"`
	MesExample   any `json:"mes_example"`
}

// overridesFromLog reads them; nil = the log has none. Too long ones, and those that are no text, stay in the metadata alone.
func overridesFromLog(metadata json.RawMessage) *chat.Overrides {
	var in logOverrides
	if op.IsNull(metadata) || json.Unmarshal(metadata, &in) != nil {
		return nil
	}
	text := func(v any) string {
		s, _ := v.(string)
		if utf8.RuneCountInString(s) > chat.MaxOverride {
			return ""
		}
		return s
	}
	o := chat.Overrides{Scenario: text(in.Scenario), SystemPrompt: text(in.SystemPrompt), MesExample: text(in.MesExample)}
	if o == (chat.Overrides{}) {
		return nil
	}
	return &o
}

func settingsFromLog(metadata json.RawMessage) json.RawMessage {
	return op.MustJSON(&chat.Settings{Overrides: overridesFromLog(metadata)})
}

// metadataWithOverrides sets them in the metadata of a log. It changes nothing if they are still those of the log.
func metadataWithOverrides(metadata json.RawMessage, now *chat.Overrides) json.RawMessage {
	was := overridesFromLog(metadata)
	if now == nil {
		now = &chat.Overrides{}
	}
	if was == nil {
		was = &chat.Overrides{}
	}
	members := map[string]json.RawMessage{}
	if *now == *was || !op.IsNull(metadata) && json.Unmarshal(metadata, &members) != nil {
		return metadata
	}
	for _, m := range []struct{ name, was, now string }{
		{"scenario", was.Scenario, now.Scenario}, {"system_prompt", was.SystemPrompt, now.SystemPrompt}, {"mes_example", was.MesExample, now.MesExample},
	} {
		if m.now != m.was {
			members[m.name] = op.MustJSON(m.now)
		}
	}
	return op.MustJSON(members)
}
