package stream

import (
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// encode writes an event as clients see it (server/asyncapi.yaml). A reply has one event
// for each token, so this does without reflection. Data is JSON already.
func encode(e *Event) []byte {
	b := make([]byte, 0, 300+e.Size())
	b = appendText(append(b, '{'), "ev", e.Type)
	if e.Seq != 0 {
		b = appendNumber(b, "seq", e.Seq)
	}
	b = appendText(b, "conversationId", e.ConversationID)
	b = appendText(b, "messageId", e.MessageID)
	b = appendText(b, "generationId", e.GenerationID)
	if e.Type == "gen.delta" || e.Type == "gen.rewind" {
		b = appendNumber(b, "off", int64(e.Off))
	}
	b = appendNumber(b, "at", e.At.UnixMilli())
	b = appendText(b, "by", e.By)
	switch {
	case e.delta.Part != "":
		b = e.delta.append(appendName(b, "data"))
	case len(e.Data) > 0:
		b = append(appendName(b, "data"), e.Data...)
	}
	return append(b, '}')
}

// appendText appends a member, unless it is empty.
func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendQuoted(appendName(b, name), text)
}

func appendNumber(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(appendName(b, name), n, 10)
}

func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), name...), '"', ':')
}

// appendQuoted appends a text as JSON: as it is, where that is enough.
func appendQuoted(b []byte, text string) []byte {
	plain := true
	for i := range len(text) {
		c := text[i]
		plain = plain && c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\'
	}
	if plain {
		return append(append(append(b, '"'), text...), '"')
	}
	b, _ = jsontext.AppendQuote(b, text) // its error is that it has replaced invalid UTF-8
	return b
}
