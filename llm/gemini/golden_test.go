package gemini

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

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

func promptOf(contents []wireContent) []llm.Message {
	roles := map[string]llm.Role{"model": llm.Assistant, "assistant": llm.Assistant, "system": llm.System}
	var out []llm.Message
	for _, c := range contents {
		m := llm.Message{Role: llm.User}
		if r, ok := roles[c.Role]; ok {
			m.Role = r
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

// TestGoldenRequest replays the vectors through both SDKs and compares what
// arrives. Two differences are meant and stated here: the key is in a header, not
// in the address, and the answer is streamed. generative-ai-go also repeats the
// model, which the address names, in the body.
func TestGoldenRequest(t *testing.T) {
	type input struct {
		Contents []wireContent
		Settings struct {
			Temperature *float64 `json:"geminiTemperature"`
			MaxTokens   int      `json:"geminiMaxTokens"`
		}
	}
	type request struct {
		URL  string
		Body map[string]any
	}
	sharedtest.Replay(t, "nodest/gemini_request.json", func(t *testing.T, v sharedtest.Vector[input, request]) {
		want := v.Output
		path, _, _ := strings.Cut(strings.TrimPrefix(want.URL, "https://generativelanguage.googleapis.com"), "?")
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent", 1)
		for _, sdk := range []string{cardSDK, currentSDK} {
			t.Run(sdk, func(t *testing.T) {
				f := llmtest.NewGemini(t)
				model, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1beta/models/"), ":") // has ended since
				p := connect(t, f, Options{Prefer: sdk, Model: model}, llm.NewKey("KEY"))
				temperature := 0.7 // the original's defaults, which its app has as settings
				r := llmtest.Read(t, p.Stream(t.Context(), llm.Request{
					Messages:    promptOf(v.Input.Contents),
					Temperature: cmp.Or(v.Input.Settings.Temperature, &temperature), MaxTokens: cmp.Or(v.Input.Settings.MaxTokens, 2048),
				}))
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				req := f.Requests()[0]
				var body map[string]any
				if err := json.Unmarshal(req.Body, &body); err != nil {
					t.Fatal(err)
				}
				if sdk == cardSDK && body["model"] == "models/"+req.Model {
					delete(body, "model")
				}
				if d := diff.Diff(want.Body, body); d != "" || req.Path != path || req.Key != "KEY" || req.Transport != sdk {
					t.Errorf("%s through %s with key %s\n%s", req.Path, req.Transport, req.Key, d)
				}
			})
		}
	})
}
