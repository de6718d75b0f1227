package stream

import "unicode/utf8"

// Delta is the payload of a gen.delta event.
type Delta struct {
	Text string `json:"text"`
	Part string `json:"part"` // "text", "reasoning", "mem" or "websearch"

	Runes int `json:"-"` // length of Text, in code points
}

// Say makes e the gen.delta of a piece of text.
func (e *Event) Say(text, part string) {
	e.Type, e.delta = "gen.delta", Delta{text, part, utf8.RuneCountInString(text)}
	b := append(make([]byte, 0, 40+len(text)), '{')
	e.Data = append(appendQuoted(appendName(appendQuoted(appendName(b, "text"), text), "part"), part), '}')
}

// Delta is the payload of an event that Say made; of others it is empty.
func (e *Event) Delta() *Delta { return &e.delta }
