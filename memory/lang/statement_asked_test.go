package lang

import (
	"slices"
	"testing"
	"time"
)

// A question has the statement that answers it in its words, and lines make it whatever stands in the place of the
// answer.
func TestAQuestionAsksForAStatement(t *testing.T) {
	for _, c := range []struct {
		ask, line string
		made      bool
	}{
		{"When do I get up?", "I usually get up at seven.", true},
		{"When do I get up?", "My sister gets up at seven.", false},
		{"When do I get up?", "Should I get up at seven?", false},
		{"What's my favourite bird?", "My favourite bird is the wren.", true},
		{"What's my favourite bird?", "User's favorite bird is the wren", true},
		{"What's my favourite bird?", "I saw my favourite bird again.", false},
		{"Which bus do I take?", "I take the 14 bus.", true},
		{"Which bus do I take?", "I take a nap at noon.", false},
		{"What boat do I sail?", "My boat is an old dinghy.", true},
		{"What did I say about the oars?", "I say the oars are fine.", false},
		{"我几点起床？", "我每天七点起床。", true},
		{"我几点起床？", "他每天七点起床。", false},
		{"我最喜欢哪首歌？", "我最喜欢的歌是《橄榄树》。", true},
		{"我最喜欢哪首歌？", "我最喜欢的鸟是鹪鹩。", false},
		{"我儿子上几年级？", "我儿子跳级了，现在上四年级。", true},
		{"我戴眼镜吗？", "我戴眼镜十年了。", true},
	} {
		q := ReadQuery(c.ask, Names{}, time.Now())
		if made := q.Asked != nil && q.Asked.MadeIn(c.line); made != c.made {
			t.Errorf("%q: %q makes the statement: %v, want %v", c.ask, c.line, made, c.made)
		}
	}
	for _, ask := range []string{"Where am I?", "What do I do?", "what do you think?", "我多高？"} {
		if q := ReadQuery(ask, Names{}, time.Now()); q.Asked != nil {
			t.Errorf("%q asks for a statement of common words", ask)
		}
	}
}

// A question about a thing names it, in whatever attribute of it is asked for.
func TestTheThingThatAQuestionIsAbout(t *testing.T) {
	for ask, want := range map[string]string{
		"What did I say about the sailing lessons?":    "lesson",
		"What did I tell you about the row with Otto?": "row",
		"What's my neighbour's goose called?":          "goos",
		"How did I break my collarbone?":               "collarbon",
		"我的木雕老师怎么样？":                                   "老师",
		"我邻居的鹦鹉叫什么？":                                   "鹦鹉",
		"我外婆几岁了？":                                      "外婆",
	} {
		q := ReadQuery(ask, Names{}, time.Now())
		if got := q.Heads(ask); !slices.Contains(got, want) {
			t.Errorf("%q is about %q, want %q", ask, got, want)
		}
	}
}
