package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"nodest/llm"
)

// event is what matters of one streamed event. Its byte slices may point into
// the line that was read.
type event struct {
	text, reasoning []byte
	finish          []byte
	model           []byte
	usage           *llm.Usage
	err             json.RawMessage
}

// wireEvent is an event in full.
type wireEvent struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta        wireDelta       `json:"delta"`
		Message      wireDelta       `json:"message"` // of an answer that is not streamed
		FinishReason string          `json:"finish_reason"`
		Error        json.RawMessage `json:"error"`
	} `json:"choices"`
	Usage *wireUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type wireDelta struct {
	Content          json.RawMessage `json:"content"` // a text, or a list of parts
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	Refusal          json.RawMessage `json:"refusal"`
}

type wireUsage struct {
	PromptTokens     int      `json:"prompt_tokens"`
	CompletionTokens int      `json:"completion_tokens"`
	Cost             *float64 `json:"cost"` // OpenRouter, USD
	Prompt           struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// slowEvent decodes any event.
func slowEvent(data []byte) (event, error) {
	var w wireEvent
	if err := json.Unmarshal(data, &w); err != nil {
		return event{}, err
	}
	var ev event
	if w.Model != "" {
		ev.model = []byte(w.Model)
	}
	if w.Usage != nil {
		ev.usage = &llm.Usage{PromptTokens: w.Usage.PromptTokens, CompletionTokens: w.Usage.CompletionTokens,
			CachedTokens: w.Usage.Prompt.CachedTokens, CostUSD: w.Usage.Cost}
	}
	ev.err = present(w.Error)
	if len(w.Choices) == 0 {
		return ev, nil
	}
	c := w.Choices[0]
	if ev.err == nil {
		ev.err = present(c.Error)
	}
	ev.finish = []byte(c.FinishReason)
	for _, d := range []wireDelta{c.Delta, c.Message} {
		ev.text = append(ev.text, textOf(d.Content, "text")...)
		ev.text = append(ev.text, textOf(d.Refusal, "")...)
		ev.reasoning = append(ev.reasoning, textOf(d.Content, "thinking")...)
		if r := textOf(d.Reasoning, ""); r != "" {
			ev.reasoning = append(ev.reasoning, r...) // some servers send both members
		} else {
			ev.reasoning = append(ev.reasoning, textOf(d.ReasoningContent, "")...)
		}
	}
	return ev, nil
}

func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// textOf reads a text, or the parts of the given type out of a list (Mistral puts
// its thinking there). A text by itself is of type "text".
func textOf(raw json.RawMessage, kind string) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '"' {
		var s string
		if kind == "thinking" || json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if raw[0] != '[' || json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type != kind {
			continue
		}
		b.WriteString(p.Text)
		b.WriteString(textOf(p.Thinking, "text"))
	}
	return b.String()
}

// fastEvent reads the events that make up nearly all of a stream, without
// reflection: a choice with a delta of texts. ok is false for everything else,
// malformed events among them, which slowEvent then judges.
func fastEvent(data []byte) (ev event, ok bool) {
	ok = members(data, func(key, value []byte) bool {
		switch string(key) {
		case "choices":
			return fastChoice(value, &ev)
		case "model":
			if value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
				return false
			}
			ev.model = value[1 : len(value)-1]
		case "usage", "error":
			return string(value) == "null"
		}
		return true
	})
	return ev, ok
}

// fastChoice reads a list of exactly one choice.
func fastChoice(list []byte, ev *event) bool {
	if list[0] != '[' {
		return false
	}
	inner := bytes.TrimSpace(list[1 : len(list)-1])
	if len(inner) == 0 || inner[0] != '{' || valueEnd(inner) != len(inner) {
		return false
	}
	return members(inner, func(key, value []byte) bool {
		switch string(key) {
		case "delta":
			return fastDelta(value, ev)
		case "finish_reason":
			if value[0] == '"' {
				ev.finish = value[1 : len(value)-1]
				return bytes.IndexByte(value, '\\') < 0
			}
			return string(value) == "null"
		case "message", "error":
			return string(value) == "null"
		}
		return true
	})
}

func fastDelta(object []byte, ev *event) bool {
	return object[0] == '{' && members(object, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			return fastText(value, &ev.text)
		case "reasoning", "reasoning_content":
			if len(ev.reasoning) > 0 && string(value) != "null" {
				return false
			}
			return fastText(value, &ev.reasoning)
		case "refusal":
			return string(value) == "null"
		}
		return true
	})
}

func fastText(value []byte, into *[]byte) bool {
	if string(value) == "null" {
		return true
	}
	text, ok := unquote(value)
	if ok && len(text) > 0 {
		*into = text
	}
	return ok
}

// members calls each for every member of a JSON object and stops when it returns
// false. It returns true if object was one and every call did. Keys with escapes
// are refused. value is not checked beyond what finding its end needs.
func members(object []byte, each func(key, value []byte) bool) bool {
	b := bytes.TrimSpace(object)
	if len(b) < 2 || b[0] != '{' {
		return false
	}
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	if b[0] == '}' {
		return len(b) == 1
	}
	for {
		end := valueEnd(b)
		if end < 2 || b[0] != '"' {
			return false
		}
		key := b[1 : end-1]
		b = bytes.TrimLeft(b[end:], " \t\r\n")
		if len(b) == 0 || b[0] != ':' || bytes.IndexByte(key, '\\') >= 0 {
			return false
		}
		b = bytes.TrimLeft(b[1:], " \t\r\n")
		end = valueEnd(b)
		if end <= 0 || !each(key, b[:end]) {
			return false
		}
		b = bytes.TrimLeft(b[end:], " \t\r\n")
		if len(b) == 0 {
			return false
		}
		if b[0] == '}' {
			return len(b) == 1
		}
		if b[0] != ',' {
			return false
		}
		b = bytes.TrimLeft(b[1:], " \t\r\n")
	}
}

// valueEnd returns the length of the JSON value at the start of b, -1 if it does
// not end.
func valueEnd(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		depth := 0
		for i := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				n := stringEnd(b[i:])
				if n < 0 {
					return -1
				}
				i += n - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return -1
	}
	if n := bytes.IndexAny(b, ",}] \t\r\n"); n >= 0 {
		return n
	}
	return len(b)
}

// stringEnd is valueEnd for a string.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// unquote returns the text of a JSON string, without copying where nothing is
// escaped. Half of a surrogate pair is refused; bytes that are not UTF-8 stay as
// they are, because the next event may complete them.
func unquote(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	in := value[1 : len(value)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return in, true
	}
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			out = append(out, in[i])
			continue
		}
		i++
		if i >= len(in) {
			return nil, false
		}
		if at := strings.IndexByte(`"\/bfnrt`, in[i]); at >= 0 {
			out = append(out, "\"\\/\b\f\n\r\t"[at])
			continue
		}
		r, n := unicodeEscape(in[i-1:])
		if n == 0 {
			return nil, false
		}
		out = utf8.AppendRune(out, r)
		i += n - 2
	}
	return out, true
}

// unicodeEscape reads \uXXXX, or two of them that form a pair, and returns the
// code point and the bytes read; 0 for anything else.
func unicodeEscape(b []byte) (rune, int) {
	r, ok := hex4(b)
	if !ok || !utf16.IsSurrogate(r) {
		if !ok {
			return 0, 0
		}
		return r, 6
	}
	if len(b) < 12 {
		return 0, 0
	}
	low, ok := hex4(b[6:])
	if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
		return pair, 12
	}
	return 0, 0
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		at := strings.IndexByte("0123456789abcdef", c|0x20)
		if at < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(at)
	}
	return r, true
}
