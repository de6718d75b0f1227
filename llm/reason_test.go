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
		"I have\nflu and\nmy boss\nknows it", "请不要把这件事告诉任何人，我今天偷偷去见了我的前女友，我们聊了很久。",
	}}
	for _, tt := range []struct{ name, message, want string }{
		{"a plain reason", `The model "x" does not exist.`, `The model "x" does not exist`},
		{"lines and control characters", "no\n\tsuch\x00 model\u2028here", "no such model here"},
		{"the key", "bad key local-4711-secret!", "bad key [key]!"},
		{"a key that the provider has shortened", "Incorrect API key provided: sk-abc***9x. See the page.", "Incorrect API key provided: [key] See the page"},
		{"an authorization header", "Authorization: Bearer abc.def", "Authorization: [key]"},
		{"the prompt", `invalid content: "nobody may know that you stole the crown jewels." at 3`, "invalid content"},
		{"a short message whole", "cannot parse 'hunter2' here", "cannot parse"},
		{"the prompt in another case", "SHE SAYS: NOBODY MAY KNOW THAT YOU STOLE THE CROWN JEWELS", "SHE SAYS"},
		{"a short message in another case", "İ cannot parse Hunter2", "İ cannot parse"},
		{"short lines of the prompt in JSON", `bad body: {"content":"I have\nflu and\nmy boss\nknows it"}`, `bad body: {"content`},
		{"short lines of the prompt in JSON in JSON", `bad body: {\"content\":\"I have\\nflu and\\nmy boss\\nknows it\"}`, `bad body: {"content`},
		{"the prompt in escapes", `bad: \u8bf7\u4e0d\u8981\u628a\u8fd9\u4ef6\u4e8b\u544a\u8bc9\u4efb\u4f55\u4eba\uff0c\u6211\u4eca\u5929\u5077\u5077\u53bb\u89c1\u4e86\u6211\u7684\u524d\u5973\u53cb`, "bad"},
		{"escapes of nothing", `C:\models\x \ud800 \u00zz`, `C:\models\x � \u00zz`},
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
