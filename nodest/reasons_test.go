package nodest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/openai"
	"nodest/nodest"
)

// publicError returns an error as clients see it.
func publicError(t *testing.T, err error) (detail, retry string) {
	t.Helper()
	b, failed := json.Marshal(op.FailureOf(fault.Public(err)))
	if failed != nil {
		t.Fatal(failed)
	}
	var w struct{ Detail, Retry string }
	if err := json.Unmarshal(b, &w); err != nil {
		t.Fatal(err)
	}
	return w.Detail, w.Retry
}

// The provider's own reason is in the failed message and says whether a retry can
// help; it contains neither keys nor the prompt.
func TestTheProvidersReasonReachesTheUser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		reply llmtest.Reply
		want  string
		retry string
	}{
		{"no such model", llmtest.Reply{Status: 400, Message: `The model "x" does not exist`}, `OpenAI-compatible server does not know the model: The model "x" does not exist`, "no"},
		{"not found", llmtest.Reply{Status: 404, Message: `model "x" not found, try pulling it first`}, `OpenAI-compatible server does not know the model: model "x" not found, try pulling it first`, "no"},
		{"a bad key", llmtest.Reply{Status: 401, Message: "Incorrect API key provided: sk-te**st"}, "OpenAI-compatible server rejected the API key: Incorrect API key provided: [key]", "no"},
		{"too many requests", llmtest.Reply{Status: 429, Message: "Slow down"}, "OpenAI-compatible server reports too many requests: Slow down", "later"},
		{"down", llmtest.Reply{Status: 500, Message: "CUDA out of memory"}, "OpenAI-compatible server is not available: CUDA out of memory", "later"},
		{"the prompt is quoted", llmtest.Reply{Status: 400, Message: "cannot read: Tell nobody about my diary of today"}, "OpenAI-compatible server rejected the request: cannot read", "no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, fake := withProvider(t)
			fake.Script(tt.reply)
			m := s.SayAndWait(s.Chat(), "Tell nobody about my diary of today")
			if detail, retry := publicError(t, m.Error); detail != tt.want || retry != tt.retry {
				t.Errorf("%q, retry %s; want %q, %s", detail, retry, tt.want, tt.retry)
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	client, err := openai.New(nil, openai.Options{BaseURL: "http://127.0.0.1:1/v1?key=hidden"})
	s.Must(err)
	s.RealModel = &nodest.Model{Generator: llm.Checked("openai", client), Provider: "openai", Name: "m"}
	m := s.SayAndWait(s.Chat(), "Hello")
	detail, retry := publicError(t, m.Error)
	if want := "OpenAI-compatible server at http://127.0.0.1:1/v1 does not respond: connection refused"; detail != want || retry != "later" {
		t.Errorf("%q, retry %s; want %q, later", detail, retry, want)
	}
	if m.Error.Code != fault.UpstreamDown || strings.Contains(m.Error.Error(), "hidden") {
		t.Errorf("error %v", m.Error)
	}
}
