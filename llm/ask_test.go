package llm_test

import (
	"encoding/json"
	"testing"

	"nodest/llm"
)

// Calls of an offered tool are the list of one answer. One that cannot be read is left out, and the others stay.
func TestCallsOfAnOfferAreOneAnswer(t *testing.T) {
	t.Parallel()
	offer := &llm.Offer{List: "items", Tool: llm.Tool{Name: "save", Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"tags":{"type":"object"}}}`)}}
	call := func(arguments string) llm.ToolCall { return llm.ToolCall{ID: "c", Name: "save", Arguments: arguments} }
	for _, tt := range []struct {
		name  string
		calls []llm.ToolCall
		want  string
	}{
		{"two calls, in their order", []llm.ToolCall{call(`{"text":"b < c"}`), call(`{"text":"a","n":4.50}`)}, `{"items":[{"text":"b < c"},{"n":4.50,"text":"a"}]}`},
		{"a broken one among others", []llm.ToolCall{call(`{"text":"a"}`), call(`{"text":"b`), call(`[]`), call(``), call(`{"text":"c"}`)}, `{"items":[{"text":"a"},{"text":"c"}]}`},
		{"as models write them", []llm.ToolCall{call("```json\n{'text':'a',}\n```"), call(`{"text":"b","tags":"{\"k\":1}"}`)}, `{"items":[{"text":"a"},{"tags":{"k":1},"text":"b"}]}`},
		{"another tool", []llm.ToolCall{{ID: "c", Name: "other", Arguments: `{"text":"a"}`}}, ""},
		{"broken ones alone", []llm.ToolCall{call(`{"text":"b`)}, ""},
		{"none", nil, ""},
	} {
		if got := offer.Object(tt.calls); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
