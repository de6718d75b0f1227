package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/internal/sharedtest"
	"nodest/llm"
	"nodest/llm/llmtest"
)

type wireContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text string `json:"text"`
	} `json:"parts"`
}

// promptOf reads contents: model is the character, and the texts of all parts are
// joined by a newline.
func promptOf(contents []wireContent) []llm.Message {
	var out []llm.Message
	for _, c := range contents {
		m := llm.Message{Role: llm.Role(c.Role)}
		if c.Role == "model" {
			m.Role = llm.Assistant
		}
		var texts []string
		for _, p := range c.Parts {
			texts = append(texts, p.Text)
		}
		m.Text = strings.Join(texts, "\n")
		out = append(out, m)
	}
	return out
}

// sent returns the body that arrives, without the members that ask for a stream.
func sent(t *testing.T, c *Client, f *llmtest.Fake, req llm.Request) map[string]any {
	t.Helper()
	if r := llmtest.Read(t, c.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	all := f.Requests()
	var body map[string]any
	if err := json.Unmarshal(all[len(all)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	delete(body, "stream")
	delete(body, "stream_options")
	return body
}

func TestGoldenOpenRouterRequest(t *testing.T) {
	type input struct {
		Model        string
		Contents     []wireContent
		PreviousCall []wireContent `json:"previous_call"`
	}
	sharedtest.Replay(t, "nodest/openrouter_request.json", func(t *testing.T, v sharedtest.Vector[input, map[string]any]) {
		f := llmtest.NewOpenAI(t)
		c := connect(t, f, Options{Name: OpenRouter}, llm.NewKey("KEY"))
		// The original's defaults, which its app sends as settings.
		temperature := 0.7
		ask := func(contents []wireContent) llm.Request {
			return llm.Request{Model: v.Input.Model, Messages: promptOf(contents), Temperature: &temperature, MaxTokens: 1024}
		}
		if v.Input.PreviousCall != nil {
			sent(t, c, f, ask(v.Input.PreviousCall))
		}
		if diff := cmp.Diff(v.Output, sent(t, c, f, ask(v.Input.Contents))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestGoldenMessages(t *testing.T) {
	type input struct{ Contents []wireContent }
	sharedtest.Replay(t, "nodest/openai_messages.json", func(t *testing.T, v sharedtest.Vector[input, []any]) {
		f := llmtest.NewOpenAI(t)
		c := connect(t, f, Options{})
		if diff := cmp.Diff(v.Output, sent(t, c, f, llm.Request{Messages: promptOf(v.Input.Contents)})["messages"]); diff != "" {
			t.Error(diff)
		}
	})
}
