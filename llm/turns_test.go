package llm_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/llm"
)

// spoken writes a prompt down as "u:text|a:text".
func spoken(messages []llm.Message) string {
	parts := make([]string, len(messages))
	for i, m := range messages {
		parts[i] = string(m.Role[0]) + ":" + m.Text
	}
	return strings.Join(parts, "|")
}

func prompt(script string) (messages []llm.Message) {
	roles := map[string]llm.Role{"u": llm.User, "a": llm.Assistant, "s": llm.System}
	for part := range strings.SplitSeq(script, "|") {
		role, text, _ := strings.Cut(part, ":")
		messages = append(messages, llm.Message{Role: roles[role], Text: text})
	}
	return messages
}

func TestStrictTurns(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"strict already", "s:card|u:Hi|a:Ho|u:Hm", "s:card|u:Hi|a:Ho|u:Hm"},
		{"two of the user", "u:card|u:Hi", "u:card\n\nHi"},
		{"several system messages", "s:main|s:card|u:Hi", "s:main\n\ncard|u:Hi"},
		{"a late system message", "s:main|u:Hi|a:Ho|s:go on", "s:main|u:Hi|a:Ho|u:go on"},
		{"a late system message beside the user's", "u:Hi|s:note|u:you there?|a:Yes", "u:Hi\n\nnote\n\nyou there?|a:Yes"},
		{"the greeting", "s:card|a:Hello.|u:Hi", "s:card|u:[Start]|a:Hello.|u:Hi"},
		{"the greeting alone", "a:Hello.|a:Well?|u:Hi", "u:[Start]|a:Hello.\n\nWell?|u:Hi"},
		{"a prompt of system messages", "s:Summarise.|s:Now.", "u:Summarise.\n\nNow."},
	} {
		if got, _ := llm.StrictTurns(prompt(tt.in), "[Start]"); spoken(got) != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, spoken(got), tt.want)
		}
	}
	if got, places := llm.StrictTurns(nil, "x"); len(got) != 0 || len(places) != 0 {
		t.Errorf("nothing became %v", got)
	}
	cat, dog := llm.Image{Data: []byte("cat")}, llm.Image{Data: []byte("dog")}
	merged, _ := llm.StrictTurns([]llm.Message{{Role: llm.User, Images: []llm.Image{cat}}, {Role: llm.User, Text: "?"}, {Role: llm.User, Images: []llm.Image{dog}}}, "")
	if !reflect.DeepEqual(merged[0].Images, []llm.Image{cat, dog}) {
		t.Errorf("of two images %v are left", merged[0].Images)
	}
	got, _ := llm.StrictTurns([]llm.Message{{Role: llm.User, Name: "Sam", Text: "a"}, {Role: llm.User, Name: "Ana", Text: "b"}}, "")
	if got[0].Name != "" {
		t.Errorf("what two have said has the name %q", got[0].Name)
	}
}

func TestStrictTurnsOfAnyPrompt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	roles := []llm.Role{llm.User, llm.Assistant, llm.System}
	for range 5000 {
		in := make([]llm.Message, r.IntN(12))
		for i := range in {
			in[i] = llm.Message{Role: roles[r.IntN(3)], Text: []string{"a", "你好", "b\n\nb", "👋"}[r.IntN(4)]}
		}
		before := slices.Clone(in)
		got, places := llm.StrictTurns(in, "[Start]")
		want := llm.User
		for i, m := range got {
			switch {
			case m.Role == llm.System && i == 0:
				continue
			case m.Role != want:
				t.Fatalf("message %d of %s is not of the %s", i, spoken(got), want)
			}
			want = map[llm.Role]llm.Role{llm.User: llm.Assistant, llm.Assistant: llm.User}[want]
		}
		if again, _ := llm.StrictTurns(got, "[Start]"); !reflect.DeepEqual(again, got) {
			t.Fatalf("%s becomes %s the second time", spoken(got), spoken(again))
		}
		for i, m := range in {
			text := []rune(got[places[i].Message].Text)[places[i].At:]
			if !strings.HasPrefix(string(text), m.Text) {
				t.Fatalf("message %d (%q) is not at %v of %s", i, m.Text, places[i], spoken(got))
			}
		}
		if !reflect.DeepEqual(in, before) {
			t.Fatal("the prompt was changed")
		}
	}
}
