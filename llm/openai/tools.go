package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"nodest/llm"
	"nodest/llm/loose"
)

// tool is a tool as a request offers it.
type tool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func tools(in []llm.Tool) []tool {
	var out []tool
	for _, t := range in {
		out = append(out, tool{"function", toolFunction(t)})
	}
	return out
}

// call is a call of a message that another provider has sent.
type call struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func calls(in []llm.ToolCall) []call {
	var out []call
	for _, c := range in {
		out = append(out, call{c.ID, "function", callFunction{c.Name, cmp.Or(c.Arguments, "{}")}})
	}
	return out
}

// wireCall is a piece of a call in a stream, or a whole call.
type wireCall struct {
	Index    loose.Number    `json:"index"`
	ID       json.RawMessage `json:"id"`
	Type     json.RawMessage `json:"type"`
	Function wireFunction    `json:"function"`

	Rest map[string]jsontext.Value `json:",unknown"`
}

type wireFunction struct {
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a text; some servers send the object itself

	Rest map[string]jsontext.Value `json:",unknown"`
}

// wireCalls are the calls of a delta, or a lone one.
type wireCalls []wireCall

// UnmarshalJSONFrom implements jsonv2.UnmarshalerFrom. It fails for what may be a call and cannot be
// read: a call that is left out would be half an answer.
func (c *wireCalls) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*c = make(wireCalls, 1)
	if dec.PeekKind() == '{' {
		return jsonv2.UnmarshalDecode(dec, &(*c)[0])
	}
	return jsonv2.UnmarshalDecode(dec, (*[]wireCall)(c))
}

// asked puts together the calls of an answer, and what the same server wants to see again
// with them.
type asked struct {
	text  strings.Builder // text of the whole answer
	calls []*askedCall
	rest  map[string]any // members of the message that are unknown
	size  int            // size of rest, in bytes
}

type askedCall struct {
	index      int // as the server counts; -1 = it does not
	id, name   string
	args       []byte
	rest, more map[string]any // unknown members of the call, and of its function
}

// echoLimit bounds the unknown members of an answer, in bytes.
const echoLimit = 2 << 20

// add reads a piece of an answer. It fails when the calls are more or larger than any use.
func (a *asked) add(provider string, d wireDelta) error {
	a.keep(&a.rest, d.Rest)
	// DeepSeek and OpenRouter go on thinking where the reply broke off for a tool. The member
	// reasoning is left out where reasoning_details say the same.
	a.keep(&a.rest, map[string]jsontext.Value{
		"reasoning_content": jsontext.Value(d.ReasoningContent), "reasoning": jsontext.Value(d.Reasoning),
		"reasoning_details": jsontext.Value(d.ReasoningDetails),
	})
	var calls wireCalls
	if raw := present(d.ToolCalls); raw != nil {
		if err := jsonv2.Unmarshal(raw, &calls, lenient); err != nil {
			return llm.BadAnswer(provider, nil, "sent a call of a tool that cannot be read")
		}
	}
	for _, w := range calls {
		if a.has(w) {
			continue
		}
		c := a.callOf(w)
		if c == nil {
			return llm.CheckCalls(provider, make([]llm.ToolCall, llm.MaxCalls+1))
		}
		c.id = cmp.Or(c.id, oneText(w.ID))
		c.name = cmp.Or(c.name, oneText(w.Function.Name))
		c.args = append(c.args, argumentsOf(w.Function.Arguments)...)
		a.keep(&c.rest, w.Rest)
		a.keep(&c.more, w.Function.Rest)
		if len(c.args) > llm.MaxArguments {
			return llm.CheckCalls(provider, []llm.ToolCall{{Name: "?", Arguments: string(c.args)}})
		}
	}
	return nil
}

func argumentsOf(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '{' {
		return string(raw)
	}
	return oneText(raw)
}

// has reports whether a piece is a whole call once more: some servers end a stream with all of
// its calls.
func (a *asked) has(w wireCall) bool {
	same := func(mine, piece string) bool { return mine == "" || piece == "" || mine == piece }
	index := w.Index.IntOr(-1)
	return slices.ContainsFunc(a.calls, func(c *askedCall) bool {
		return (index < 0 || c.index < 0 || c.index == index) && same(c.id, oneText(w.ID)) && same(c.name, oneText(w.Function.Name)) &&
			json.Valid(c.args) && string(c.args) == argumentsOf(w.Function.Arguments)
	})
}

// callOf finds the call that a piece belongs to, or begins one: nil if there are too many.
// Servers number the pieces, but some give every call the number 0 or none at all; then
// another id, or a name behind arguments that are whole, begins a call.
func (a *asked) callOf(w wireCall) *askedCall {
	index := w.Index.IntOr(-1)
	var found *askedCall
	if index >= 0 {
		for _, c := range slices.Backward(a.calls) {
			if c.index == index {
				found = c
				break
			}
		}
	} else if n := len(a.calls); n > 0 {
		found = a.calls[n-1]
	}
	id, name := oneText(w.ID), oneText(w.Function.Name)
	switch {
	case found == nil, id != "" && found.id != "" && found.id != id, name != "" && found.name != "" && json.Valid(found.args):
		if len(a.calls) == llm.MaxCalls {
			return nil
		}
		found = &askedCall{index: index}
		a.calls = append(a.calls, found)
	}
	return found
}

// answerOnly are members of an answer that are no part of an assistant message in a request.
var answerOnly = []string{"function_call", "annotations", "audio", "images", "token_ids", "logprobs"}

// keep adds members that a later request sends back.
func (a *asked) keep(into *map[string]any, members map[string]jsontext.Value) {
	for name, raw := range members {
		if slices.Contains(answerOnly, name) || len(raw) == 0 || string(raw) == "null" || a.size > echoLimit {
			continue
		}
		a.size += len(raw)
		var v any
		if jsonv2.Unmarshal(raw, &v, lenient, asWritten) != nil {
			continue
		}
		if *into == nil {
			*into = map[string]any{}
		}
		(*into)[name] = merge(name, (*into)[name], v)
	}
}

// asWritten keeps numbers as they are spelled, and halves of code points, which the next piece
// completes.
var asWritten = jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	switch dec.PeekKind() {
	case '0':
		raw, err := dec.ReadValue()
		*v = json.Number(raw)
		return err
	case '"':
		raw, err := dec.ReadValue()
		if err == nil {
			*v = loose.Unquote(json.RawMessage(raw))
		}
		return err
	}
	return jsonv2.SkipFunc
}))

// words are the members that each piece of a stream repeats, not continues.
var words = []string{"id", "type", "format", "name", "role", "index", "signature"}

// grown is a text that grows piece by piece.
type grown struct{ strings.Builder }

// MarshalJSON writes the text as a string.
func (g *grown) MarshalJSON() ([]byte, error) {
	return []byte(llm.JSONLine(loose.Sound([]byte(g.String())))), nil
}

// merge continues a value of a stream: texts grow, the elements of lists are found by their index.
func merge(name string, old, piece any) any {
	switch p := piece.(type) {
	case string:
		if slices.Contains(words, name) {
			return p
		}
		o, ok := old.(*grown)
		if !ok {
			o = &grown{}
		}
		o.WriteString(p)
		return o
	case map[string]any:
		o, ok := old.(map[string]any)
		if !ok {
			o = map[string]any{}
		}
		for k, v := range p {
			if v != nil {
				o[k] = merge(k, o[k], v)
			}
		}
		return o
	case []any:
		o, _ := old.([]any)
		for _, v := range p {
			o = mergeElement(o, v)
		}
		return o
	}
	return piece
}

// mergeElement continues the last element if that has the same index and type, and appends
// otherwise.
func mergeElement(list []any, piece any) []any {
	p, ok := piece.(map[string]any)
	if last := len(list) - 1; ok && last >= 0 && p["index"] != nil {
		if o, same := list[last].(map[string]any); same && o["index"] == p["index"] && o["type"] == p["type"] {
			list[last] = merge("", o, p)
			return list
		}
	}
	return append(list, merge("", nil, piece))
}

// end returns the calls, each with an id of its own, and the message for the same provider.
func (a *asked) end(provider string) ([]llm.ToolCall, *llm.Echo) {
	if len(a.calls) == 0 {
		return nil, nil
	}
	var out []llm.ToolCall
	var listed []any
	ids := map[string]bool{"": true}
	for _, c := range a.calls {
		if ids[c.id] {
			c.id = llm.NewCallID()
		}
		ids[c.id] = true
		args := loose.Sound(c.args)
		out = append(out, llm.ToolCall{ID: c.id, Name: c.name, Arguments: args})
		function := with(c.more, map[string]any{"name": c.name, "arguments": args})
		listed = append(listed, with(c.rest, map[string]any{"id": c.id, "type": "function", "function": function}))
	}
	message := with(a.rest, map[string]any{"role": "assistant", "content": nil, "tool_calls": listed})
	if a.text.Len() > 0 {
		message["content"] = a.text.String()
	}
	if message["reasoning_details"] != nil || provider != OpenRouter { // Groq refuses the member
		delete(message, "reasoning")
	}
	return out, &llm.Echo{Provider: provider, Raw: json.RawMessage(llm.JSONLine(message))}
}

// with adds members to those of more.
func with(more, members map[string]any) map[string]any {
	if more == nil {
		return members
	}
	for name, v := range members {
		more[name] = v
	}
	return more
}
