package llm_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/llm"
)

func TestReasonsAreShownWithoutSecrets(t *testing.T) {
	s := llm.Secrets{Key: llm.NewKey("local-4711-secret"), Texts: []string{
		"You are Alice, and nobody may know that you stole the crown jewels.", "hunter2", "hi",
	}}
	for _, tt := range []struct{ name, message, want string }{
		{"a plain reason", `The model "x" does not exist.`, `The model "x" does not exist`},
		{"lines and control characters", "no\n\tsuch\x00 model\u2028here", "no such model here"},
		{"the key", "bad key local-4711-secret!", "bad key [key]!"},
		{"a key that the provider has shortened", "Incorrect API key provided: sk-abc***9x. See the page.", "Incorrect API key provided: [key] See the page"},
		{"an authorization header", "Authorization: Bearer abc.def", "Authorization: [key]"},
		{"the prompt", `invalid content: "nobody may know that you stole the crown jewels." at 3`, "invalid content"},
		{"a short message whole", "cannot parse 'hunter2' here", "cannot parse"},
		{"a word that everybody uses", "hi is no model", "hi is no model"},
		{"nothing", "", ""},
	} {
		if got := s.Reason(tt.message); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if long := s.Reason(strings.Repeat("模型 ", 4000)); utf8.RuneCountInString(long) > 300 {
		t.Errorf("a reason has %d characters", utf8.RuneCountInString(long))
	}
}
