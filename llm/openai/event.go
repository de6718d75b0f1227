package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"nodest/llm/loose"
)

// event is what matters of one streamed event.
type event struct {
	text, reasoning []byte // may begin and end within a code point
	finish          string
	model           string
	usage           []json.RawMessage
	err             json.RawMessage
	deltas          []wireDelta // those with calls of tools, or with members that are unknown
	message         bool        // the text is that of a whole message

	content json.RawMessage // the JSON of text, where nothing else but the model is in the event
}

// wireEvent is an event in full. A member of another form than expected counts as missing: the
// text decides, and the rest is good to know.
type wireEvent struct {
	Model  json.RawMessage `json:"model"`
	Choice wireChoice      `json:"choices"`
	Usage  json.RawMessage `json:"usage"`
	Error  json.RawMessage `json:"error"`
}

// wireChoice is the first choice of a list, or a lone one.
type wireChoice struct {
	Delta        wireDelta       `json:"delta"`
	Message      wireDelta       `json:"message"` // in an answer that is not streamed
	FinishReason json.RawMessage `json:"finish_reason"`
	Usage        json.RawMessage `json:"usage"` // Moonshot
	Error        json.RawMessage `json:"error"`
}

type wireDelta struct {
	Content          json.RawMessage `json:"content"` // a text, or a list of parts
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	ReasoningDetails json.RawMessage `json:"reasoning_details"` // OpenRouter: a list
	Refusal          json.RawMessage `json:"refusal"`
	Role             json.RawMessage `json:"role"`
	ToolCalls        json.RawMessage `json:"tool_calls"` // read where tools were offered

	Rest map[string]jsontext.Value `json:",unknown"`
}

// UnmarshalJSONFrom implements jsonv2.UnmarshalerFrom.
func (c *wireChoice) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain wireChoice
	if dec.PeekKind() != '[' {
		return readObject(dec, (*plain)(c))
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for found := false; dec.PeekKind() != ']'; {
		if found {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		found = dec.PeekKind() == '{'
		if err := readObject(dec, (*plain)(c)); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// UnmarshalJSONFrom implements jsonv2.UnmarshalerFrom.
func (d *wireDelta) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain wireDelta
	return readObject(dec, (*plain)(d))
}

// readObject reads an object, and skips any other value.
func readObject(dec *jsontext.Decoder, into any) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	return jsonv2.UnmarshalDecode(dec, into)
}

var lenient = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// readEvent decodes an event, which is an object.
func readEvent(data []byte) (event, error) {
	var w wireEvent
	if err := jsonv2.Unmarshal(data, &w, lenient); err != nil {
		return event{}, err
	}
	c := &w.Choice
	ev := event{model: oneText(w.Model), err: present(w.Error), finish: finishWord(c.FinishReason)}
	if ev.err == nil {
		ev.err = present(c.Error)
	}
	for _, u := range []json.RawMessage{c.Usage, w.Usage} {
		if present(u) != nil {
			ev.usage = append(ev.usage, u)
		}
	}
	if ev.read(&c.Delta); len(ev.text) == 0 && len(ev.reasoning) == 0 { // else the message repeats it
		ev.read(&c.Message)
		ev.message = len(ev.text) > 0
	}
	for _, d := range []*wireDelta{&c.Delta, &c.Message} {
		if d.echoes() {
			ev.deltas = append(ev.deltas, *d)
		}
	}
	ev.content = ev.alone(c)
	return ev, nil
}

// read reads the text and the reasoning of a delta.
func (ev *event) read(d *wireDelta) {
	ev.text = append([]byte(textOf(d.Content, "text")), oneText(d.Refusal)...)
	ev.reasoning = append([]byte(textOf(d.Content, "thinking")), d.thought()...)
}

// thought is the reasoning of a delta. Some servers send several members that say the same.
func (d *wireDelta) thought() string {
	for _, raw := range []json.RawMessage{d.Reasoning, d.ReasoningContent, d.ReasoningDetails} {
		if thought := textOf(raw, ""); thought != "" {
			return thought
		}
	}
	return ""
}

// echoes reports that a delta has calls of tools, or what its server wants to see again with them.
func (d *wireDelta) echoes() bool {
	return len(d.Rest) > 0 || len(d.Reasoning) > 0 || len(d.ReasoningContent) > 0 || len(d.ReasoningDetails) > 0 || present(d.ToolCalls) != nil
}

// finishWord is a finish reason, in small letters. One that is no text is a reason without a name; some servers write
// null as a text.
func finishWord(raw json.RawMessage) string {
	word := strings.ToLower(strings.TrimSpace(oneText(raw)))
	switch {
	case word == "null", word == "none":
		return ""
	case word == "" && !loose.Empty(raw):
		return "unknown"
	}
	return word
}

// alone is the JSON of the text, nil if the event has anything else besides a model.
func (ev *event) alone(c *wireChoice) json.RawMessage {
	content := c.Delta.Content
	switch {
	case len(content) == 0 || content[0] != '"', len(c.Delta.Refusal) > 0, len(c.Message.Content) > 0, len(c.Message.Refusal) > 0:
		return nil
	case len(ev.reasoning) > 0, len(ev.deltas) > 0, ev.finish != "", ev.usage != nil, ev.err != nil:
		return nil
	}
	return content
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

// present returns raw, nil if it says nothing.
func present(raw json.RawMessage) json.RawMessage {
	if loose.Empty(raw) {
		return nil
	}
	return raw
}
