package llm

import (
	"context"
	"encoding/json"
	"strings"
)

// Prompt is what a model is asked in the background.
type Prompt struct {
	Text      string
	JSON      bool // the answer is one JSON object
	MaxTokens int  // of the answer without the model's thinking; 0 = no limit
}

// Asker is the part of a language model that extraction uses: text in, text out.
type Asker interface {
	// Ask returns the model's whole reply to one prompt. Retrying after failures
	// is its business; an error means that there is no reply.
	Ask(ctx context.Context, p Prompt) (string, error)
}

// AskerFunc makes a function an Asker.
type AskerFunc func(ctx context.Context, p Prompt) (string, error)

// Ask calls f.
func (f AskerFunc) Ask(ctx context.Context, p Prompt) (string, error) { return f(ctx, p) }

// JSONLine is v as one line of a prompt; nothing in a message can end it.
func JSONLine(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // strings and numbers always can be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}
