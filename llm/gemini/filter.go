package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"google.golang.org/genai"

	"nodest/llm"
)

// filter sits between the network and generative-ai-go. That SDK mistakes an error
// object for an empty answer and a hidden thought for text, fails on a part that has
// only a signature, cannot name newer finish reasons, and accepts an array that is
// never closed. The filter passes the array on element by element, without what the SDK
// would misread, and notes in the exchange what it saw.
type filter struct {
	x    *exchange
	body *body
	dec  *json.Decoder
	out  bytes.Buffer
	open bool // '[' was passed on
	sent int  // elements
	end  bool
}

func newFilter(x *exchange, b *body) *filter {
	return &filter{x: x, body: b, dec: json.NewDecoder(b)}
}

func (f *filter) Close() error { return f.body.Close() }

func (f *filter) Read(p []byte) (int, error) {
	for f.out.Len() == 0 && !f.end {
		f.next()
	}
	return f.out.Read(p)
}

// next passes on the next token of the array.
func (f *filter) next() {
	if !f.open {
		if t, err := f.dec.Token(); err != nil || t != json.Delim('[') {
			f.fail(err, "sent a response that is not a stream")
			return
		}
		f.open = true
		f.out.WriteByte('[')
		return
	}
	if !f.dec.More() {
		t, err := f.dec.Token()
		if err != nil || t != json.Delim(']') {
			f.fail(err, "sent a response that is not a stream")
			return
		}
		f.out.WriteByte(']')
		f.end, f.x.whole = true, true
		return
	}
	var raw json.RawMessage
	f.body.event = eventLimit
	if err := f.dec.Decode(&raw); err != nil {
		f.fail(err, "sent an unreadable response")
		return
	}
	raw, err := f.element(raw)
	if err != nil {
		f.x.err, f.end = err, true
		return
	}
	if f.sent > 0 {
		f.out.WriteByte(',')
	}
	f.sent++
	f.out.Write(raw)
}

// fail ends the stream, with the body's reason if it has one.
func (f *filter) fail(err error, what string) {
	f.end = true
	if f.x.err != nil {
		return
	}
	if err == nil || errors.As(err, new(*json.SyntaxError)) {
		f.x.err = llm.BadAnswer(name, nil, what)
		return
	}
	f.x.err = llm.CutOff(name, nil)
}

// wireAnswer is what the filter looks at.
type wireAnswer struct {
	Error      *wireError `json:"error"`
	Candidates []struct {
		FinishReason json.RawMessage `json:"finishReason"`
		Content      struct {
			Parts []wirePart `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason json.RawMessage `json:"blockReason"`
	} `json:"promptFeedback"`
	ModelVersion string `json:"modelVersion"`
}

type wirePart struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"`
}

// element returns the element as the SDK may see it.
func (f *filter) element(raw json.RawMessage) (json.RawMessage, error) {
	var a wireAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, llm.BadAnswer(name, nil, "sent an unreadable response")
	}
	if a.Error != nil {
		return nil, a.Error.fault(a.Error.Code, 0)
	}
	h := &f.x.heard
	h.model = a.ModelVersion
	h.block = word(a.PromptFeedback.BlockReason, blockWords)
	if len(a.Candidates) == 0 {
		return raw, nil
	}
	h.finish = word(a.Candidates[0].FinishReason, finishWords)
	for _, p := range a.Candidates[0].Content.Parts {
		if p.Thought {
			h.thought += p.Text
		}
	}
	if !bytes.Contains(raw, []byte(`"thought`)) {
		return raw, nil
	}
	return withoutThoughts(raw)
}

// withoutThoughts removes the parts that generative-ai-go has no type for.
func withoutThoughts(raw json.RawMessage) (json.RawMessage, error) {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, llm.BadAnswer(name, nil, "sent an unreadable response")
	}
	candidates, _ := m["candidates"].([]any)
	for _, c := range candidates {
		candidate, _ := c.(map[string]any)
		content, _ := candidate["content"].(map[string]any)
		if content == nil {
			continue
		}
		parts, _ := content["parts"].([]any)
		kept := []any{}
		for _, p := range parts {
			part, _ := p.(map[string]any)
			if part["thought"] == true {
				continue
			}
			delete(part, "thought")
			delete(part, "thoughtSignature")
			if len(part) > 0 {
				kept = append(kept, part)
			}
		}
		content["parts"] = kept
	}
	return json.Marshal(m)
}

// word reads an enum, which comes as a number or as a word. Zero and UNSPECIFIED
// are no word.
func word(raw json.RawMessage, words []string) string {
	if len(raw) == 0 {
		return ""
	}
	if n, err := strconv.Atoi(string(raw)); err == nil {
		if n < 0 || n >= len(words) {
			return "NUMBER_" + strconv.Itoa(n)
		}
		return words[n]
	}
	var s string
	_ = json.Unmarshal(raw, &s) // null and other things are no word
	if s == string(genai.FinishReasonUnspecified) || s == "BLOCK_REASON_UNSPECIFIED" {
		return ""
	}
	return s
}

// The numbers of the API's enums (google.ai.generativelanguage.v1beta).
var (
	finishWords = []string{"", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST",
		"PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
	blockWords = []string{"", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"}
)
