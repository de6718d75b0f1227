package openai

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/llm"
	"nodest/llm/llmtest"
)

// goldenFile reads a file of vectors, or skips the test.
func goldenFile(t *testing.T, path string, into any) {
	t.Helper()
	dir := os.Getenv("NODEST_GOLDEN")
	if dir == "" {
		dir = "../../../shared/golden"
	}
	b, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		t.Skipf("no golden vectors (set NODEST_GOLDEN): %v", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

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
	var vectors []struct {
		Name  string
		Input struct {
			Model        string
			Contents     []wireContent
			PreviousCall []wireContent `json:"previous_call"`
		}
		Output map[string]any
		Spec   map[string]any `json:"spec_output"`
	}
	goldenFile(t, "nodest/openrouter_request.json", &vectors)
	passed := 0
	for _, v := range vectors {
		if t.Run(v.Name, func(t *testing.T) {
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
			want := v.Output
			if v.Spec != nil {
				want = v.Spec
			}
			if diff := cmp.Diff(want, sent(t, c, f, ask(v.Input.Contents))); diff != "" {
				t.Error(diff)
			}
		}) {
			passed++
		}
	}
	t.Logf("openrouter_request.json: %d passed, %d failed, 0 skipped", passed, len(vectors)-passed)
}

func TestGoldenMessages(t *testing.T) {
	var vectors []struct {
		Name   string
		Input  struct{ Contents []wireContent }
		Output []any
		Spec   []any `json:"spec_output"`
	}
	goldenFile(t, "nodest/openai_messages.json", &vectors)
	passed := 0
	for _, v := range vectors {
		if t.Run(v.Name, func(t *testing.T) {
			f := llmtest.NewOpenAI(t)
			c := connect(t, f, Options{})
			want := v.Output
			if v.Spec != nil {
				want = v.Spec
			}
			if diff := cmp.Diff(want, sent(t, c, f, llm.Request{Messages: promptOf(v.Input.Contents)})["messages"]); diff != "" {
				t.Error(diff)
			}
		}) {
			passed++
		}
	}
	t.Logf("openai_messages.json: %d passed, %d failed, 0 skipped", passed, len(vectors)-passed)
}
