package openai

import (
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
)

// A server that does not know response_format is asked without it, and with this
// model only once; a request that is refused anyway shows its own error.
func TestJSONWhereTheServerHasAMode(t *testing.T) {
	f := llmtest.NewOpenAI(t)
	c := connect(t, f, Options{})
	knows := func(r llmtest.Request) bool { return r.Model == "new" }
	f.Always(func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(string(r.Body), "response_format") && !knows(r) || r.Model == "gone" {
			return llmtest.Reply{Status: 400, Message: "unknown member"}
		}
		return llmtest.Say("{}")
	})
	ask := func(model string) error {
		r := llmtest.Ask("As JSON, please.")
		r.Model, r.JSON = model, true
		return llmtest.Read(t, c.Stream(t.Context(), r)).Err
	}
	for _, tc := range []struct {
		model    string
		code     fault.Code
		requests int
	}{{"new", "", 1}, {"old", "", 2}, {"old", "", 1}, {"gone", fault.UpstreamBadAnswer, 2}, {"gone", fault.UpstreamBadAnswer, 2}} {
		before := len(f.Requests())
		err := ask(tc.model)
		if n := len(f.Requests()) - before; n != tc.requests || tc.code == "" && err != nil || tc.code != "" && !fault.Is(err, tc.code) {
			t.Errorf("%s: %d requests, %v; want %d and code %q", tc.model, n, err, tc.requests, tc.code)
		}
	}
	if r := f.Requests()[0]; !strings.Contains(string(r.Body), `"response_format":{"type":"json_object"}`) {
		t.Errorf("asked with %s", r.Body)
	}
	before := len(f.Requests())
	if err := llmtest.Read(t, c.Stream(t.Context(), llm.Request{Model: "new", Messages: llmtest.Ask("Hi").Messages})).Err; err != nil {
		t.Error(err)
	}
	if r := f.Requests()[before]; strings.Contains(string(r.Body), "response_format") {
		t.Errorf("a reply in words is asked for as JSON: %s", r.Body)
	}
}
