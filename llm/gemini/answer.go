package gemini

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"nodest/llm"
	"nodest/llm/loose"
)

// wireAnswer is one answer of a stream. Each member is read for itself, so that one in an
// unexpected form costs nothing but itself.
type wireAnswer struct {
	Error          json.RawMessage `json:"error"`
	Candidates     json.RawMessage `json:"candidates"`
	UsageMetadata  json.RawMessage `json:"usageMetadata"`
	PromptFeedback json.RawMessage `json:"promptFeedback"`
	ModelVersion   json.RawMessage `json:"modelVersion"`
}

type wireCandidate struct {
	Content      json.RawMessage `json:"content"`
	FinishReason json.RawMessage `json:"finishReason"`
}

// cleanAnswer is an answer as the SDKs see it. Both read every form of it rightly.
type cleanAnswer struct {
	Candidates []cleanCandidate `json:"candidates,omitempty"`
}

type cleanCandidate struct {
	Index   int          `json:"index"`
	Content cleanContent `json:"content"`
}

type cleanContent struct {
	Role  string        `json:"role"`
	Parts []*genai.Part `json:"parts"`
}

// read notes in the exchange what an answer says, and returns it as the SDK may see it. An answer
// of an unknown form says nothing.
func (x *exchange) read(raw json.RawMessage) (clean []byte, err error) {
	var a wireAnswer
	_ = json.Unmarshal(raw, &a) // it is JSON; what has another form is left out
	if err := x.errorOf(a.Error); err != nil {
		return nil, err
	}
	h := &x.heard
	h.model = textOf(a.ModelVersion)
	var feedback struct {
		BlockReason json.RawMessage `json:"blockReason"`
	}
	_ = json.Unmarshal(a.PromptFeedback, &feedback)
	h.block = word(feedback.BlockReason, blockWords)
	if u := usageOf(a.UsageMetadata); u != nil {
		h.usage = u
	}
	var out cleanAnswer
	if c := firstCandidate(a.Candidates); c != nil {
		h.finish = word(c.FinishReason, finishWords)
		if parts := x.partsOf(c.Content); len(parts) > 0 {
			out.Candidates = []cleanCandidate{{Content: cleanContent{Role: roleModel, Parts: parts}}}
		}
	}
	return json.Marshal(out)
}

// errorOf is the error in a stream; nil if there is none.
func (x *exchange) errorOf(raw json.RawMessage) error {
	if loose.Empty(raw) {
		return nil
	}
	e := readError(raw)
	return llm.WithReason(e.fault(e.Code.IntOr(0), 0), x.hide.Reason(string(e.Message)))
}

// firstCandidate is the only one that is asked for.
func firstCandidate(raw json.RawMessage) *wireCandidate {
	var list loose.List[wireCandidate]
	if loose.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil
	}
	return &list[0]
}

// partsOf notes the thoughts of a content and returns the parts that the SDK knows, without the
// members that are unknown or have another form. generative-ai-go gets the texts alone.
func (x *exchange) partsOf(content json.RawMessage) (known []*genai.Part) {
	var wire struct {
		Parts loose.List[json.RawMessage] `json:"parts"`
	}
	_ = loose.Unmarshal(content, &wire) // anything but an object has no parts
	for _, raw := range wire.Parts {
		p, text := partOf(raw)
		if p.Thought {
			p.Text = x.thought.Join(text)
			x.heard.thought += p.Text
		} else {
			p.Text = x.text.Join(text)
		}
		switch {
		case x.sdk == cardSDK && (p.Thought || p.Text == ""):
			continue
		case x.sdk == cardSDK:
			p = &genai.Part{Text: p.Text}
		case isNothing(p):
			continue
		}
		known = append(known, p)
	}
	return known
}

// partOf reads a part, and the bytes of its text.
func partOf(raw json.RawMessage) (p *genai.Part, text []byte) {
	p = new(genai.Part)
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)
	if t := members["text"]; len(t) > 0 && t[0] == '"' {
		text = []byte(loose.Unquote(t))
	}
	if json.Unmarshal(raw, p) != nil { // some types of the SDK give up at a member that is odd
		*p = genai.Part{}
		for name, member := range members {
			_ = json.Unmarshal([]byte(llm.JSONLine(map[string]json.RawMessage{name: member})), p)
		}
	}
	return p, text
}

// usageOf reads what an answer has cost; nil if it does not tell. A number may be written as a
// text, or with a fraction.
func usageOf(raw json.RawMessage) *llm.Usage {
	o := llm.ObjectOf(string(raw), "")
	count := func(key string) int {
		n, _ := o.Number(key) // a value that is no number counts as nothing
		if math.IsNaN(n) {
			return 0
		}
		return int(min(max(n, 0), 1e9))
	}
	prompt, total := count("promptTokenCount"), count("totalTokenCount")
	completion := count("candidatesTokenCount") + count("thoughtsTokenCount")
	if prompt > 0 { // an older interface counts thoughts in the total only
		completion = max(completion, total-prompt-count("toolUsePromptTokenCount"))
	}
	if prompt == 0 && completion == 0 {
		return nil
	}
	return &llm.Usage{PromptTokens: prompt, CompletionTokens: completion, CachedTokens: count("cachedContentTokenCount")}
}

func textOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // a value of another type is no text
	return s
}

// word reads an enum, which comes as a number or as a word. Zero and UNSPECIFIED are no word.
func word(raw json.RawMessage, words []string) string {
	s := textOf(raw)
	if s == "" {
		s = string(raw)
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if n >= 0 && n < float64(len(words)) {
			return words[int(n)]
		}
		return "NUMBER_" + strconv.Itoa(int(min(max(n, -1), math.MaxInt32)))
	}
	if s != textOf(raw) || strings.HasSuffix(s, "_UNSPECIFIED") {
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

// isUnknown reports that a finish word is newer than this list, or a number beyond it. A reply
// with text is complete then: the API was asked for nothing that could fail in a new way.
func isUnknown(finish string) bool {
	return finish != "" && !slices.Contains(finishWords, finish) && !slices.Contains(otherWords, finish)
}

// otherWords are finish words without a number in the list.
var otherWords = []string{"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "NO_IMAGE",
	"MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"}
