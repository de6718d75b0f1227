package stream

import (
	"encoding/json"
	"unicode/utf8"
)

// Delta is the payload of a gen.delta event.
type Delta struct {
	Text string `json:"text"`
	Part string `json:"part"` // "text", "reasoning", "mem" or "websearch"

	Runes int `json:"-"` // length of Text, in code points
}

// Delta reads the payload of a gen.delta event. It is read once and shared; of
// other events it is empty.
func (e *Event) Delta() *Delta {
	e.deltaOnce.Do(func() {
		if e.Type == "gen.delta" {
			_ = json.Unmarshal(e.Data, &e.delta) // not JSON: an empty delta, which nobody gets
		}
		if e.delta.Part == "" {
			e.delta.Part = "text"
		}
		e.delta.Runes = utf8.RuneCountInString(e.delta.Text)
	})
	return &e.delta
}
