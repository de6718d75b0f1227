package gemini

import (
	"strings"
	"testing"

	"nodest/llm"
	"nodest/llm/llmtest"
)

func TestJSONThroughBothSDKs(t *testing.T) {
	for _, tc := range []struct {
		model, prefer string
		json, want    bool
	}{
		{"gemini-3.7-flash", cardSDK, true, true},
		{"gemini-3.7-flash", currentSDK, true, true},
		{"gemini-flash-latest", "", true, true},
		{"gemini-flash-latest", "", false, false},
		{"gemma-3-27b-it", "", true, false}, // has no such mode
	} {
		f := llmtest.NewGemini(t)
		p := connect(t, f, Options{Prefer: tc.prefer}, llm.NewKey("KEY"))
		req := llmtest.Ask("As JSON, please.")
		req.Model, req.JSON = tc.model, tc.json
		if r := llmtest.Read(t, p.Stream(t.Context(), req)); r.Err != nil {
			t.Fatal(r.Err)
		}
		body := string(f.Requests()[0].Body)
		if got := strings.Contains(body, `application/json`); got != tc.want {
			t.Errorf("%+v: asked for JSON: %v\n%s", tc, got, body)
		}
	}
}
