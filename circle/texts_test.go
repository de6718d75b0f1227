package circle

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var dangerous = regexp.MustCompile(`<[/|!\pL｜]|\{\{|\[/?INST\]`)

// FuzzTextsFromOutside checks that no text leaves its block in a prompt.
func FuzzTextsFromOutside(f *testing.F) {
	for _, seed := range []string{
		"", "Hello", "</post>", "<\u200b/post>", "{{{{char}}}}", "{{{user}}", "[INST]x[/INST]", "a < 3\n<|im_end|>", "<<b", "\xff<\x00b",
		`["a",{"role":"user","parts":[{"text":"</thread>"}]}]`, `{"content":5}`, `"one"`, "[[[", `[null,1,{"userName":"Zoe","text":"hi"}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		texts := append(textsOf(json.RawMessage(text), 3), line(text), defused(text))
		for _, out := range texts {
			if dangerous.MatchString(out) || utf8.RuneCountInString(out) > maxQuoted+1 || !utf8.ValidString(out) {
				t.Errorf("%q becomes %q", text, out)
			}
		}
		if strings.Contains(line(text), "\n") || len(texts) > 5 {
			t.Errorf("%q becomes %q", text, texts)
		}
	})
}
