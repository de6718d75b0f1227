package recall_test

import (
	"testing"

	"nodest/memory/recall"
)

// A line that answers a question word for word is first, however common its words are.
func TestTheStatementThatIsAskedForIsFirst(t *testing.T) {
	t.Parallel()
	told := []string{"I get up at seven.", "Seven gulls got up from the pier.", "My favourite bird is the wren.", "Every bird in the harbour is loud.", "I'm 61 kilos.", "I'm 1.71 m in socks."}
	firstLines(t, told, map[string]string{"When do I get up?": "at seven", "What's my favourite bird?": "wren", "What do I weigh?": "61", "How tall am I?": "1.71"})
	firstLines(t, []string{"我每天七点起床。", "小帆起床晚。", "我最喜欢的歌是《橄榄树》。", "小帆唱了一首歌。", "我61公斤。"}, map[string]string{"我几点起床？": "七点", "我最喜欢哪首歌？": "橄榄树", "我多重？": "61"})
}

// The line that replaces a value is before it; one that only shares a word with it is not.
func TestAChangeIsBeforeWhatItChanges(t *testing.T) {
	t.Parallel()
	told := []string{"Our gate code is heron4.", "I had to change the code, it's curlew5.", "I painted the heron on the ferry."}
	firstLines(t, told, map[string]string{"What's our gate code?": "curlew5"})
	firstLines(t, []string{"我家的门禁密码是bailu4。", "密码换了，现在是heiguan5。"}, map[string]string{"我家的门禁密码是什么？": "heiguan5"})
}

// Two lines answer a question together if the second one is about what the first one names.
func TestTwoLinesAnswerTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, second, ask string }{
		{"I lent Quirin my ladder.", "Quirin's birthday is on the 4th of May.", "When is the birthday of the man I lent my ladder to?"},
		{"我把梯子借给阿朗了。", "阿朗的生日是5月4号。", "我借了梯子的那个人什么时候过生日？"},
	} {
		x := indexOf(t, append(sessionUnits(1, "2022-03-03", "Ann: "+c.second, "Ann: The gulls are loud."), sessionUnits(2, "2022-04-03", "Ann: "+c.first)...)...)
		hits := find(t, x, recall.Query{Text: c.ask, Now: noon, Here: "here"})
		if position(hits, c.second) < 0 || position(hits, c.first) < 0 {
			t.Errorf("%q finds %q", c.ask, hitTexts(hits))
		}
	}
}

// A line about something else of the question than what it asks about does not answer it.
func TestTheThingThatIsAskedAboutMustBeTold(t *testing.T) {
	t.Parallel()
	told := sessionUnits(1, "2022-03-03", "Ann: The miller charged me nine crowns.", "Ann: I broke the oar on the pier.", "Ann: Your son is a good rower.", "Ann: 我干儿子会划船。", "Ann: 我折断过一支桨。")
	x := indexOf(t, told...)
	for _, ask := range []string{"What did I tell you about the lawsuit with the miller?", "How did I break my collarbone?", "What's my son's name?", "我儿子叫什么？", "我的锁骨是怎么断的？"} {
		if hits := find(t, x, recall.Query{Text: ask, Now: noon, Here: "here"}); len(hits) > 0 {
			t.Errorf("%q finds %q", ask, hitTexts(hits))
		}
	}
}
