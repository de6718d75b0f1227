package recall_test

import (
	"slices"
	"testing"

	"nodest/memory/lang"
	"nodest/memory/recall"
)

// A later change is recalled before the text that it changes, even if it shares no
// word with the question.
func TestLaterChangesComeFirst(t *testing.T) {
	t.Parallel()
	units := slices.Concat(
		sessionUnits(1, "2023-04-02",
			"Ann: My favourite drink is root beer.", "Ann: our tortoise Winston's awake again!", "Ann: im writing this on my old thinkpad", "Ann: i'm a receptionist at a dental practice",
			"Ann: 我最爱喝柠檬茶。", "Ann: 我手机里给我老公的备注是猪头", "Ann: 我用的红米，便宜耐造"),
		sessionUnits(2, "2023-04-20",
			"Ann: The chapel roof leaks again.", "Reed: Winston? A fine name.", "Ann: There is a market at the harbour now.", "Ann: 外面下雨了。"),
		sessionUnits(3, "2023-05-01",
			"Ann: I've gone off root beer, these days it's ginger ale.", "Ann: winston laid an egg. so. shes Winifred", "Ann: thinkpad died mid sentence, im on a refurbished Zenbook",
			"Ann: handed in my badge, from monday on you're talking to a florist", "Ann: 柠檬茶不喝了，改喝酸梅汤。", "Ann: 他偷看到备注闹了半天，改成债主", "Ann: 红米屏碎了，捡了我妈换下来的荣耀"),
	)
	for i := range units {
		units[i].Hash = lang.ContentHash(units[i].Text)
	}
	x := indexOf(t, units...)
	for question, want := range map[string][2]string{ // the present, and the past
		"What's my favourite drink?":      {"ginger ale", "My favourite drink is root beer"},
		"What's the name of my tortoise?": {"Winifred", "tortoise Winston"},
		"我最爱喝什么？":                         {"酸梅汤", "最爱喝柠檬茶"},
		"我老公的备注是什么？":                      {"债主", "猪头"},
	} {
		hits := find(t, x, recall.Query{Text: question, Now: noon, Here: "here"})
		now, was := position(hits, want[0]), position(hits, want[1])
		if now < 0 || was >= 0 && was < now {
			t.Errorf("%q finds %q, want %q before %q", question, hitTexts(hits), want[0], want[1])
		}
		if at := position(hits, "A fine name"); at >= 0 && at < now {
			t.Errorf("%q: what the character says comes first: %q", question, hitTexts(hits))
		}
		for _, h := range hits {
			sum := h.Parts.Lexical + h.Parts.Vector + h.Parts.Recency + h.Parts.Importance
			if diff := sum - h.Score; diff > 1e-6 || diff < -1e-6 {
				t.Errorf("%q: the parts of %q make %v, its score is %v", question, h.Text, sum, h.Score)
			}
		}
	}
	// A question about the past finds it, and texts that are not about the user find no
	// later changes.
	if hits := find(t, x, recall.Query{Text: "What was my favourite drink before?", Now: noon, Here: "here"}); position(hits, "My favourite drink is root beer") < 0 {
		t.Errorf("the past: %q", hitTexts(hits))
	}
	if hits := find(t, x, recall.Query{Text: "Is there root beer in this tavern?", Now: noon, Here: "here"}); position(hits, "Zenbook") >= 0 {
		t.Errorf("the tavern: %q", hitTexts(hits))
	}
}

// A question about how somebody or something else is now, or will be, also finds the later change.
func TestLaterChangesOfOthersComeFirst(t *testing.T) {
	t.Parallel()
	units := slices.Concat(
		sessionUnits(1, "2023-04-02", "Ann: We want to call the boat Marigold.", "Ann: My cousin Otto drives a tram.", "Ann: 我们想给船起名叫金盏花。"),
		sessionUnits(2, "2023-04-20", "Ann: The chapel roof leaks again.", "Ann: There is a market at the harbour now."),
		sessionUnits(3, "2023-05-01", "Ann: Marigold is taken, so it's going to be Pearl.", "Ann: Otto has switched to buses.", "Ann: 金盏花被人抢了，那就叫珍珠吧。"),
	)
	for i := range units {
		units[i].Hash = lang.ContentHash(units[i].Text)
	}
	x := indexOf(t, units...)
	for question, want := range map[string][2]string{
		"What will the boat be called?": {"Pearl", "call the boat Marigold"},
		"What does Otto drive?":         {"buses", "drives a tram"},
		"船叫什么？":                         {"珍珠", "起名叫金盏花"},
	} {
		hits := find(t, x, recall.Query{Text: question, Now: noon, Here: "here"})
		now, was := position(hits, want[0]), position(hits, want[1])
		if now < 0 || was >= 0 && was < now {
			t.Errorf("%q finds %q, want %q before %q", question, hitTexts(hits), want[0], want[1])
		}
	}
}
