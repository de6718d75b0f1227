package llm

import (
	"context"
	"encoding/json"
	"strings"
)

// Prompt is a request that is made in the background, outside a turn.
type Prompt struct {
	Text       string
	Messages   []Message // in place of Text
	JSON       bool      // the answer is one JSON object
	Offer      *Offer    // with which a model that calls tools may give that object; nil = it writes it
	MaxTokens  int       // tokens of the answer without the model's thinking; 0 = no limit
	MaxThought int       // tokens of the thinking, with MaxTokens; 0 = no limit

	// For the offline model, as in Request.
	Task               Task
	CharName, UserName string
	Variant            int

	Used func(Usage) // is called once with what the request has cost, also if it failed; nil = nobody wants to know
}

// Offer is a tool whose calls are an answer: each is an element of a list. Nobody carries them out.
type Offer struct {
	Tool
	List string // the member of the answer that has the list
}

// Object is the answer that calls of the tool make: one JSON object with their arguments as its list. Other calls, and those
// without arguments that can be read, are left out; "" = none is left.
func (o *Offer) Object(calls []ToolCall) string {
	var list []any
	for _, c := range calls {
		if args, err := parseObject(c.Arguments); c.Name == o.Name && err == nil && len(args) > 0 {
			list = append(list, typed(args, o.Parameters))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return JSONLine(map[string]any{o.List: list})
}

// Asker is the part of a language model that extraction uses: text in, text out.
type Asker interface {
	// Ask returns the model's whole reply to one prompt. It sends one request; the
	// caller decides whether to ask again after an error.
	Ask(ctx context.Context, p Prompt) (string, error)
}

// AskerFunc makes a function an Asker.
type AskerFunc func(ctx context.Context, p Prompt) (string, error)

// Ask calls f.
func (f AskerFunc) Ask(ctx context.Context, p Prompt) (string, error) { return f(ctx, p) }

// JSONLine encodes v as one line; no text in v can end the line.
func JSONLine(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
