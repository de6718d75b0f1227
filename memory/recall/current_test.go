package recall_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/memory/recall"
)

// firstLines asks questions of a chat whose sessions are a month apart and expects the line with these words first.
func firstLines(t *testing.T, told []string, wants map[string]string) {
	t.Helper()
	var units []recall.Unit
	for i, text := range told {
		day := time.Date(2022, time.Month(1+i), 3, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		units = append(units, sessionUnits(i+1, day, "Ann: "+text)...)
	}
	x := indexOf(t, units...)
	for question, want := range wants {
		hits := find(t, x, recall.Query{Text: question, Now: noon, Here: "here"})
		if len(hits) == 0 || !strings.Contains(hits[0].Text, want) {
			t.Errorf("%q finds %q, want %q first", question, hitTexts(hits), want)
		}
	}
}

// The latest of what was told about somebody else is first in a question for how it is now, and what happened
// stays in its order.
func TestHowOthersAreNowIsTheLatest(t *testing.T) {
	t.Parallel()
	told := []string{"Otto sings in the harbour choir.", "Otto sings in the chapel choir.", "小帆上音乐班。", "小帆上绘画班。"}
	firstLines(t, told, map[string]string{"Which choir does Otto sing in?": "chapel", "小帆上什么班？": "绘画"})
}

// A later line in Chinese is first if one of its words is that of the older line: pairs of characters are no words.
func TestALongChineseLineMayBeTheLatest(t *testing.T) {
	t.Parallel()
	firstLines(t, []string{"我的帐篷是蓝色的。", "帐篷被山羊啃破了，奶奶缝了一顶橙色大的。"}, map[string]string{"我的帐篷是什么颜色？": "橙色"})
}

// The answer to a question is found where it is told in none of the words of the question, and the latest counts.
func TestPropertiesAreFoundWithoutTheirWords(t *testing.T) {
	t.Parallel()
	told := []string{
		"I'm 58, and the stairs know it.", "I turned 59 last night, no cake.", "We've unpacked the lamps in our new flat in Tromsø.",
		"I handed in my notice at the cannery.", "I'm going out with a glazier.", "The glazier and I split up last week.", "Nine weeks without a cigarette.", "I'm eating fish again.",
	}
	firstLines(t, told, map[string]string{
		"How old am I?": "59", "Where do I live?": "Tromsø", "Where do I work?": "notice", "Am I still single?": "split up", "Do I smoke?": "cigarette", "Am I a vegetarian?": "fish",
	})
	told = []string{"我在罐头厂当会计。", "我从罐头厂离职了。", "总算把灯装好了，特罗姆瑟的新家真亮。", "我跟那个玻璃匠掰了。", "不抽烟九周了。", "馋得不行，又开始吃肉。"}
	firstLines(t, told, map[string]string{"我在哪里上班？": "离职", "我住在哪里？": "新家", "我现在有对象吗？": "掰了", "我还抽烟吗？": "九周", "我吃素吗？": "吃肉"})
}

// A question for nothing but a common thing of the user's is about that thing.
func TestACommonThingOfTheUsersIsAskedFor(t *testing.T) {
	t.Parallel()
	firstLines(t, []string{"My boss whistles all day.", "A gull bit my finger."}, map[string]string{"Who is my boss?": "whistles", "How's my finger?": "gull"})
	x := indexOf(t, sessionUnits(1, "2022-01-03", "Ann: Boss fights are fun.", "Ann: I cut a finger of ginger.")...)
	for _, said := range []string{"ok boss", "What's up, boss?", "*lifts a finger*"} {
		if hits := find(t, x, recall.Query{Text: said, Now: noon, Here: "here"}); len(hits) > 0 {
			t.Errorf("%q finds %q", said, hitTexts(hits))
		}
	}
}

// A line that says a change and shares but one word with an older one does not hide it.
func TestAChangeOfSomethingElseHidesNothing(t *testing.T) {
	t.Parallel()
	x := indexOf(t, slices.Concat(
		sessionUnits(1, "2022-01-03", "Ann: I'm saving up for a loom."), sessionUnits(2, "2022-02-03", "Ann: I switched the heating off, it saves sixty a month."))...)
	if hits := find(t, x, recall.Query{Text: "What am I saving up for?", Now: noon, Here: "here"}); position(hits, "loom") < 0 {
		t.Errorf("finds %q", hitTexts(hits))
	}
}

// A fact is outdated for the profile as soon as the user says that its property has changed.
func TestALaterChangeOutdatesAFactOfTheProfile(t *testing.T) {
	t.Parallel()
	home := recall.Unit{ID: "home", Layer: recall.Fact, Text: "User lives in Lund", At: noon.AddDate(0, -6, 0), Claim: recall.Claim{Profile: true, ByRule: true}}
	age := recall.Unit{ID: "age", Layer: recall.Fact, Text: "User is 58 years old", At: noon.AddDate(0, -6, 0), Claim: recall.Claim{Profile: true, ByRule: true}}
	mine := recall.Unit{ID: "mine", Layer: recall.Fact, Text: "User lives in Lund", At: noon.AddDate(0, -6, 0), Claim: recall.Claim{Profile: true, ByHand: true}}
	for line, want := range map[string][]string{
		"We've settled in, our new flat in Tromsø is bright.": {"home"}, "I turned 59 last night.": {"age"}, "I live on the third floor.": nil, "My aunt moved to Tromsø.": nil,
	} {
		said := sessionUnits(1, "2023-05-02", "Ann: "+line)
		_, outdated, err := recall.Profile(t.Context(), indexOf(t, append(said, home, age, mine)...), &recall.Filter{})
		var ids []string
		for id := range outdated {
			ids = append(ids, id)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("%q outdates %q, want %q (%v)", line, ids, want, err)
		}
	}
}
