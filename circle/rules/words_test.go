package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestMentions(t *testing.T) {
	for _, test := range []struct {
		name, text string
		names      []string
		want       []string
	}{
		{"a whole word", "I saw Luna today", []string{"Luna", "Ann"}, []string{"Luna"}},
		{"in any case", "hey luna!", []string{"Luna"}, []string{"Luna"}},
		{"with an at sign", "@luna_x @Luna", []string{"Luna"}, []string{"Luna"}},
		{"with an apostrophe", "Luna's cat", []string{"Luna"}, []string{"Luna"}},
		{"not a part of a word", "The lunar annals", []string{"Luna", "Ann"}, nil},
		{"not the author of nothing", "", []string{"Luna", ""}, nil},
		{"not one letter", "I ask A and B", []string{"A", "I"}, nil},
		{"not one Han character", "月亮很圆", []string{"月"}, nil},
		{"a usual word is no name", "I will hope", []string{"Will", "Hope"}, nil},
		{"unless it is written like one", "I met Will and Hope", []string{"Will", "Hope"}, []string{"Will", "Hope"}},
		{"the first name", "Luna, are you there?", []string{"Luna Moonfall"}, []string{"Luna Moonfall"}},
		{"the name behind a title", "Ask strange about it", []string{"Dr. Strange"}, []string{"Dr. Strange"}},
		{"the longest name first", "Mary Ann was here", []string{"Mary", "Mary Ann"}, []string{"Mary Ann"}},
		{"two with one first name", "Mary was here", []string{"Mary Ann", "Mary Sue"}, []string{"Mary Ann", "Mary Sue"}},
		{"Chinese names in a sentence", "今天和林小雨去了海边", []string{"林小雨", "王明"}, []string{"林小雨"}},
		{"given names", "小雨说她不来", []string{"林小雨"}, []string{"林小雨"}},
		{"a longer Chinese name", "小明明来了", []string{"小明", "小明明"}, []string{"小明明"}},
		{"a Latin name in Chinese text", "我喜欢Luna的画", []string{"Luna"}, []string{"Luna"}},
		{"full width", "Ｌｕｎａ 来了", []string{"luna"}, []string{"luna"}},
		{"in the order of the names", "b2 and a1", []string{"a1", "b2", "c3"}, []string{"a1", "b2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Mentions(test.text, test.names); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	about := topics("Mira paints watercolours, repairs old radios and loves hiking in the mountains. 她喜欢画画和爬山，会修收音机。")
	for _, test := range []struct {
		text  string
		least float64
		most  float64
	}{
		{"Who wants to go hiking in the mountains?", 0.5, 1},
		{"My radio is broken", 0.3, 1},
		{"I had soup today and it was good", 0, 0},
		{"周末一起去爬山吗？", 0.3, 1},
		{"今天我很喜欢这个", 0, 0},
	} {
		if got := overlap(topics(test.text), about); got < test.least || got > test.most {
			t.Errorf("%q: %.2f", test.text, got)
		}
	}
}

func TestRepeats(t *testing.T) {
	long := "The rain has stopped at last, and I walked down to the harbour to look at the boats coming in."
	for _, test := range []struct {
		name, text, earlier string
		want                bool
	}{
		{"the same text", long, long, true},
		{"other punctuation and case", "HELLO, world", "hello world!!", true},
		{"a few words changed", "The rain has stopped at last, and I walked down to the harbour to watch the boats coming in.", long, true},
		{"a few words before", "Well. " + long, long, true},
		{"the same beginning", "I have been thinking about you and the sea", "I have been thinking about you, my old radio", true},
		{"five words in common at the beginning", "I have been thinking about trains", "I have been thinking about radios, and whether one can mend them with a spoon", false},
		{"another text", "My radio is broken again and I have no spare valve.", long, false},
		{"short texts that differ", "So lovely!", "So true!", false},
		{"Chinese, the same", "今天的雨终于停了！", "今天的雨，终于停了", true},
		{"Chinese, the same beginning", "今天早上我一个人去了海边看日出然后回家", "今天早上，我一个人去了海边，吃了一碗面，还遇到了老朋友", true},
		{"Chinese, another text", "今天早上我修好了那台旧收音机", "昨晚做了一个很奇怪的梦，梦见自己会飞", false},
		{"only signs", "!!!", "!!!", true},
		{"other signs", "😀😀", "😂", false},
		{"nothing", "", "something", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Repeats(test.text, nil, []string{"x", test.earlier}); got != test.want {
				t.Errorf("of the feed: %v", got)
			}
			if got := Repeats(test.text, []string{"x", test.earlier}, nil); got != test.want {
				t.Errorf("of its own: %v", got)
			}
		})
	}
}

func TestRepeatsForgetsOldTexts(t *testing.T) {
	texts := append(slices.Repeat([]string{"something else"}, ownTexts), "the same")
	if Repeats("the same", texts, nil) {
		t.Error("its own text number 21 still counts")
	}
	if !Repeats("the same", nil, texts) {
		t.Error("the feed's text number 21 does not count")
	}
}

func BenchmarkRepeats(b *testing.B) {
	own := slices.Repeat([]string{strings.Repeat("the quick brown fox has a plan ", 60)}, ownTexts)
	feed := slices.Repeat([]string{strings.Repeat("一只狐狸有一个计划", 200)}, feedTexts)
	for b.Loop() {
		Repeats("a new text that none of them has, which is long enough for a post of the circle", own, feed)
	}
}
