package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/llm"
	"nodest/llm/openai"
	"nodest/nodest"
)

// A provider reports its usage in an odd form, says error "" in each event, cuts an emoji between
// two escapes and forgets to hide the thoughts and the end of the turn: the reply is complete, and
// its usage shows what could be read.
func TestAReplyOfAnOddProviderIsComplete(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string][2]float64{
		`{"prompt_tokens":"1200","completion_tokens":3.0,"cost":"0.0001","prompt_tokens_details":[]}`: {1200, 3},
		`{"input_tokens":1200,"output_tokens":3}`:                                                     {1200, 3},
		`{"prompt_tokens":1.2e3,"completion_tokens":[]}`:                                              {1200, 0}, // the rest is estimated
		`false`:                {},
		`99999999999999999999`: {},
	} {
		var asked atomic.Int64
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "\ufeff"+strings.ReplaceAll(`data: {"error":"","choices":[{"index":"0","delta":{"content":"<thought>Hard.</thou"}}],"usage":USAGE}

data: {"error":"","model":5,"choices":[{"delta":{"content":"ght>One \ud83d"}}]}

data: {"error":"","choices":[{"delta":{"content":"\ude00 two.<|im_end|>"},"finish_reason":"stop"}]}

data: {"error":{},"choices":[],"usage":USAGE}

data: [DONE]

`, "USAGE", usage))
		}))
		t.Cleanup(provider.Close)
		client, err := openai.New(nil, openai.Options{BaseURL: provider.URL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		chain := llm.Chain(slog.New(slog.DiscardHandler), llm.Link{Provider: openai.OpenAI, Model: "m", Generator: llm.Dependable(openai.OpenAI, client)})
		h := newTestServerOf(t, parts{models: alone(nodest.Model{Generator: chain, Provider: openai.OpenAI, Name: "m", Key: openai.OpenAI})}, nil)
		got := h.rest("POST", "/conversations/"+h.newChat()+"/messages", `{"text":"Count to two."}`).wants(t, 200)
		if m := got["message"].(map[string]any); m["status"] != "complete" || m["text"] != "One 😀 two." || asked.Load() != 1 {
			t.Errorf("usage %s: %v after %d requests", usage, m, asked.Load())
		}
		rows := h.rest("GET", "/usage", "").items(t)
		if len(rows) != 1 {
			t.Fatalf("usage %s: %v", usage, rows)
		}
		for i, member := range []string{"promptTokens", "completionTokens"} {
			if n := rows[0][member].(float64); n <= 0 || want[i] != 0 && n != want[i] {
				t.Errorf("usage %s: %s %v, want %v", usage, member, n, want[i])
			}
		}
	}
}
