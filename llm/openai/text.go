package openai

import (
	"encoding/json"
	"strings"

	"nodest/llm/loose"
)

// oneText is a JSON text, "" for any other value.
func oneText(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return loose.Unquote(raw)
}

// partDepth is how deep the parts of a text may be nested.
const partDepth = 3

// textOf reads a text, or the parts of the given type out of a list (Mistral puts its thinking
// there): "text", "thinking", or "" for all. A text by itself is no thinking. A number counts as
// the text that its server meant.
func textOf(raw json.RawMessage, kind string) string { return textIn(raw, kind, partDepth) }

func textIn(raw json.RawMessage, kind string, depth int) string {
	if len(raw) == 0 || depth == 0 {
		return ""
	}
	switch c := raw[0]; {
	case c == '"' && kind != "thinking":
		return loose.Unquote(raw)
	case kind == "text" && (c == '-' || c >= '0' && c <= '9'):
		return string(raw)
	case c != '[' && c != '{':
		return ""
	}
	var parts loose.List[json.RawMessage]
	_ = parts.UnmarshalJSON(raw) // never fails
	var b strings.Builder
	for _, part := range parts {
		if c := part[0]; c == '{' {
			b.WriteString(partText(part, kind, depth-1))
		} else if c == '"' {
			b.WriteString(textIn(part, kind, depth-1))
		}
	}
	return b.String()
}

// partText is the text of a part, if it is of a kind.
func partText(raw json.RawMessage, kind string, depth int) string {
	var p struct {
		Type                    loose.Text
		Text, Thinking, Summary json.RawMessage
	}
	if loose.Unmarshal(raw, &p) != nil {
		return ""
	}
	thinks := p.Type == "thinking" || strings.HasPrefix(string(p.Type), "reasoning")
	says := p.Type == "" || p.Type == "text" || p.Type == "output_text"
	if kind == "text" && !says || kind == "thinking" && !thinks {
		return ""
	}
	inner := kind
	if kind == "thinking" {
		inner = "" // a thinking part holds thinking
	}
	for _, raw := range []json.RawMessage{p.Text, p.Thinking, p.Summary} {
		if text := textIn(raw, inner, depth); text != "" {
			return text
		}
	}
	return ""
}
