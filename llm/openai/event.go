package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"nodest/llm"
)

// event is what matters of one streamed event.
type event struct {
	text, reasoning []byte // may begin and end within a code point
	finish          string
	model           string
	usage           *llm.Usage
	err             json.RawMessage
	deltas          []wireDelta // those with calls of tools, or with members that are unknown

	content json.RawMessage // the JSON of text, where nothing else but the model is in the event
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
	Role             json.RawMessage `json:"role"`
	ToolCalls        json.RawMessage `json:"tool_calls"` // read where tools were offered

	Rest map[string]jsontext.Value `json:",unknown"`
}

type wireUsage struct {
	PromptTokens     int      `json:"prompt_tokens"`
	CompletionTokens int      `json:"completion_tokens"`
	Cost             *float64 `json:"cost"` // OpenRouter, USD
	Prompt           struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

var lenient = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// readEvent decodes an event.
func readEvent(data []byte) (event, error) {
	var w wireEvent
	if err := jsonv2.Unmarshal(data, &w, lenient); err != nil {
		return event{}, err
	}
	ev := event{model: w.Model}
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
	ev.finish = c.FinishReason
	for _, d := range []wireDelta{c.Delta, c.Message} {
		ev.text = append(ev.text, textOf(d.Content, "text")...)
		ev.text = append(ev.text, textOf(d.Refusal, "")...)
		ev.reasoning = append(ev.reasoning, textOf(d.Content, "thinking")...)
		if r := textOf(d.Reasoning, ""); r != "" {
			ev.reasoning = append(ev.reasoning, r...) // some servers send both members
		} else {
			ev.reasoning = append(ev.reasoning, textOf(d.ReasoningContent, "")...)
		}
		if present(d.ToolCalls) != nil || len(d.Rest) > 0 || len(d.ReasoningContent) > 0 || len(d.Reasoning) > 0 {
			ev.deltas = append(ev.deltas, d)
		}
	}
	ev.content = ev.alone(c.Delta, c.Message)
	return ev, nil
}

// alone is the JSON of the text, nil if the event has anything else besides a model.
func (ev *event) alone(d, whole wireDelta) json.RawMessage {
	switch {
	case len(d.Content) == 0 || d.Content[0] != '"', len(d.Refusal) > 0, len(whole.Content) > 0, len(whole.Refusal) > 0:
		return nil
	case len(ev.reasoning) > 0, len(ev.deltas) > 0, ev.finish != "", ev.usage != nil, ev.err != nil:
		return nil
	}
	return d.Content
}

// mould is an event around its text. Most events of a reply differ in nothing but the text, so
// these are not decoded again.
type mould struct {
	before, behind []byte // nil = there is none
	model          string
}

// mouldOf is the mould of an event that was decoded, where it has one.
func mouldOf(data []byte, ev event) mould {
	at := bytes.Index(data, ev.content)
	if len(ev.content) == 0 || at != bytes.LastIndex(data, ev.content) { // which of them is the text?
		return mould{}
	}
	return mould{bytes.Clone(data[:at+1]), bytes.Clone(data[at+len(ev.content)-1:]), ev.model}
}

// fill reads an event that has this mould and a text without escapes.
func (m mould) fill(data []byte) (ev event, ok bool) {
	text, ok := bytes.CutPrefix(data, m.before)
	if !ok || m.before == nil {
		return event{}, false
	}
	text, ok = bytes.CutSuffix(text, m.behind)
	if !ok || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		return event{}, false
	}
	return event{text: text, model: m.model}, true
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
		if kind == "thinking" {
			return ""
		}
		return unquote(raw)
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

// unquote decodes a JSON string. The decoder would replace bytes that are not UTF-8,
// so half a code point at either end, which another event completes, bypasses it.
func unquote(quoted json.RawMessage) string {
	in := quoted[1 : len(quoted)-1]
	if !bytes.ContainsRune(in, '\\') {
		return string(in)
	}
	from := 0
	for from < len(in) && !utf8.RuneStart(in[from]) {
		from++
	}
	to := len(in) - cutOff(in[from:])
	var s string
	if json.Unmarshal([]byte(`"`+string(in[from:to])+`"`), &s) != nil {
		return ""
	}
	return string(in[:from]) + s + string(in[to:])
}
