package gemini

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

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
	var vectors []struct {
		Name  string
		Input struct {
			Contents []wireContent
			Settings struct {
				Temperature *float64 `json:"geminiTemperature"`
				MaxTokens   int      `json:"geminiMaxTokens"`
			}
		}
		Output *struct {
			URL  string
			Body map[string]any
		}
		Spec *struct {
			URL  string
			Body map[string]any
		} `json:"spec_output"`
	}
	goldenFile(t, "nodest/gemini_request.json", &vectors)
	passed := 0
	for _, v := range vectors {
		want := v.Output
		if v.Spec != nil {
			want = v.Spec
		}
		path, _, _ := strings.Cut(strings.TrimPrefix(want.URL, "https://generativelanguage.googleapis.com"), "?")
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent", 1)
		ok := true
		for _, sdk := range []string{cardSDK, currentSDK} {
			ok = t.Run(v.Name+" through "+sdk, func(t *testing.T) {
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
			}) && ok
		}
		if ok {
			passed++
		}
	}
	t.Logf("gemini_request.json: %d passed, %d failed, 0 skipped", passed, len(vectors)-passed)
}
