package stream

import "unicode/utf8"

// Delta is the payload of a gen.delta event.
type Delta struct {
	Text string `json:"text"`
	Part string `json:"part"` // "text", "reasoning", "mem" or "websearch"

	Runes int `json:"-"` // length of Text, in code points
}

// Say makes e the gen.delta of a piece of text. Its payload is in its frame alone, not in Data.
func (e *Event) Say(text, part string) {
	e.Type, e.delta = "gen.delta", Delta{text, part, utf8.RuneCountInString(text)}
}

// append appends the payload as JSON.
func (d *Delta) append(b []byte) []byte {
	return append(appendQuoted(appendName(appendQuoted(appendName(append(b, '{'), "text"), d.Text), "part"), d.Part), '}')
}

// Delta is the payload of an event that Say made; of others it is empty.
func (e *Event) Delta() *Delta { return &e.delta }
