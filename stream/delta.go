package stream

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Delta is the payload of a gen.delta event.
type Delta struct {
	Text string `json:"text"`
	Part string `json:"part"` // "text", "reasoning", "mem" or "websearch"

	Runes int `json:"-"` // length of Text, in code points
}

// Say makes e the gen.delta of a piece of text, with its payload and its frame.
// Off, At, By and the ids are set before. What it encodes is what encoding/json
// would; there is one such event for each token.
func (e *Event) Say(text, part string) {
	e.Type = "gen.delta"
	b := make([]byte, 0, 300+len(text)+len(text)/4)
	b = append(b, `{"ev":"gen.delta"`...)
	if e.Seq != 0 {
		b = strconv.AppendInt(append(b, `,"seq":`...), e.Seq, 10)
	}
	b = appendField(b, "conversationId", e.ConversationID)
	b = appendField(b, "messageId", e.MessageID)
	b = appendField(b, "generationId", e.GenerationID)
	b = strconv.AppendInt(append(b, `,"off":`...), int64(e.Off), 10)
	b = strconv.AppendInt(append(b, `,"at":`...), e.At.UnixMilli(), 10)
	b = appendField(b, "by", e.By)
	b = append(b, `,"data":`...)
	begin := len(b)
	b = appendString(append(b, `{"text":`...), text)
	b = append(appendString(append(b, `,"part":`...), part), '}')
	e.Data = json.RawMessage(b[begin:len(b):len(b)])
	b = append(b, '}')
	e.once.Do(func() { e.frame = b })
	e.deltaOnce.Do(func() {
		if part == "" {
			part = "text"
		}
		e.delta = Delta{Text: text, Part: part, Runes: utf8.RuneCountInString(text)}
	})
}

// appendField adds a field that is left out when it is empty.
func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendString(b, value)
}

// appendString adds s as JSON.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
				return appendEscaped(b, s)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return appendEscaped(b, s)
		}
		i += size
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendEscaped(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // strings can always be encoded
	}
	return append(b, text...)
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
