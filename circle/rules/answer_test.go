package rules

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestReadAnswer(t *testing.T) {
	said := func(thoughts string, like bool, comment string) Answer {
		return Answer{Success: true, Thoughts: thoughts, Action: &Act{like, comment}}
	}
	with := func(a Answer, change func(*Answer)) Answer {
		change(&a)
		return a
	}
	failed := Answer{Error: noAnswer}
	for _, test := range []struct {
		name, reply string
		want        Answer
	}{
		{"nothing is a decision", `{"thoughts":"meh","action":{"like":false,"comment":""}}`, said("meh", false, "")},
		{"an empty action is nothing", `{"thoughts":"meh","action":{}}`, said("meh", false, "")},
		{`"false" is no like`, `{"action":{"like":"false","comment":"x"}}`, said("", false, "x")},
		{"1 is a like", `{"action":{"like":1}}`, said("", true, "")},
		{"2 is no like", `{"action":{"like":2,"comment":"x"}}`, said("", false, "x")},
		{"yes is no like", `{"action":{"like":"yes","comment":"x"}}`, said("", false, "x")},
		{"a list is no like", `{"action":{"like":[true],"comment":"x"}}`, said("", false, "x")},
		{"a like without an action", `{"like":true}`, said("", true, "")},
		{"the word null is no comment", `{"action":{"like":true,"comment":"null"}}`, said("", true, "")},
		{"a number can be a comment", `{"comment":42}`, said("", false, "42")},
		{"a list is no comment", `{"comment":["a"]}`, failed},
		{"a post wins over an action", `{"post":"p","thoughts":"t","action":{"like":true,"comment":"c"}}`,
			with(said("t", false, "p"), func(a *Answer) { a.Post = "p" })},
		{"a response with thoughts wins over an action", `{"thoughts":"t","response":"r","action":{"like":true}}`,
			with(said("t", false, "r"), func(a *Answer) { a.Response = "r" })},
		{"a response without thoughts is a comment", `{"response":"r"}`, with(said("", false, "r"), func(a *Answer) { a.Response = "r" })},
		{"an action wins over a reflection", `{"reflection":"r","action":{"like":true}}`, said("", true, "")},
		{"a reflection wins over loose text", `{"text":"x","reflection":"r"}`, said("", false, "r")},
		{"content, message and text in this order", `{"text":"x","message":"m","content":"c"}`, said("", false, "c")},
		{"thoughts alone are no answer", `{"thoughts":"t"}`, failed},
		{"an object in an object", `{"result":{"action":{"like":true,"comment":"c"}}}`, said("", true, "c")},
		{"the first object that says something", `{a} {"b":1} {"comment":"c"} {"comment":"d"}`, said("", false, "c")},
		{"thinking is not read", `<think>{"comment":"a"}</think>{"comment":"b"}`, said("", false, "b")},
		{"a brace in quotes before the object", `so "{" {"comment":"a"}`, said("", false, "a")},
		{"braces in strings", `so: {"comment":"a \"}\" {b"}`, said("", false, `a "}" {b`)},
		{"a fence with a language", "Here:\n```JSON\n{\"comment\":\"c\"}\n```\nbye", said("", false, "c")},
		{"raw line breaks of two characters", "{\"comment\":\"a\r\nb\tc\"}", said("", false, "a b c")},
		{"escaped line breaks stay", `{"comment":"a\nb"}`, said("", false, "a\nb")},
		{"control characters go", `{"comment":"a\u0000b\u001b"}`, said("", false, "ab")},
		{"an unfinished object", `{"thoughts":"t","action":{"like":true,"comment":"c"`, failed},
		{"no text at all", "", failed},
		{"intensity is bounded", `{"comment":"c","emotion":{"type":"Positive","intensity":7}}`,
			with(said("", false, "c"), func(a *Answer) { a.Emotion = &Emotion{"positive", 1} })},
		{"intensity below zero", `{"comment":"c","emotion":{"type":"negative","intensity":"-0.1"}}`,
			with(said("", false, "c"), func(a *Answer) { a.Emotion = &Emotion{"negative", 0} })},
		{"intensity that is no number", `{"comment":"c","emotion":{"type":"negative","intensity":"NaN"}}`,
			with(said("", false, "c"), func(a *Answer) { a.Emotion = &Emotion{"negative", 0.5} })},
		{"an unknown emotion is neutral", `{"comment":"c","emotion":{"type":"joy","intensity":0.3}}`,
			with(said("", false, "c"), func(a *Answer) { a.Emotion = &Emotion{"neutral", 0.3} })},
		{"an emotion as a word", `{"comment":"c","emotion":"positive"}`,
			with(said("", false, "c"), func(a *Answer) { a.Emotion = &Emotion{"positive", 0.5} })},
		{"an emoticon of the list", `{"comment":"c","emoticon":"smile.png"}`, with(said("", false, "c"), func(a *Answer) { a.Emoticon = "smile.png" })},
		{"an emoticon that is not on the list", `{"comment":"c","emoticon":"../etc/passwd"}`, said("", false, "c")},
		{"evidence and end", `{"comment":"c","evidence":["p1","p1",7,"",{"a":1}],"end":"true"}`,
			with(said("", false, "c"), func(a *Answer) { a.Evidence, a.End = []string{"p1", "7"}, true })},
		{"one id as evidence", `{"comment":"c","evidence":"p1","end":"false"}`, with(said("", false, "c"), func(a *Answer) { a.Evidence = []string{"p1"} })},
		{"relationships after the object", "{\"comment\":\"c\"}\n关系更新：\nchar-1-+2-friend", with(said("", false, "c"), func(a *Answer) {
			a.RelationshipUpdates = []Update{{"char-1", 2, "friend"}}
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ReadAnswer(test.reply, []string{"smile.png"}); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v %+v\nwant %+v %+v", got, got.Action, test.want, test.want.Action)
			}
		})
	}
}

func TestReadAnswerCutsLongTexts(t *testing.T) {
	long := strings.Repeat("好", 6_000)
	doc, err := json.Marshal(map[string]any{"post": long, "thoughts": long, "evidence": strings.Split(strings.Repeat("abc,", 50)+long, ",")})
	if err != nil {
		t.Fatal(err)
	}
	checkBounds(t, ReadAnswer(string(doc), nil))
	if a := ReadAnswer(string(doc), nil); utf8.RuneCountInString(a.Post) != maxLongText {
		t.Errorf("the post has %d code points", utf8.RuneCountInString(a.Post))
	}
}

// A hostile reply costs a bounded time.
func TestReadAnswerOfHostileReplies(t *testing.T) {
	for name, reply := range map[string]string{
		"open braces":        strings.Repeat(`{"a":`, 1<<20),
		"open lists":         `{"a":` + strings.Repeat("[", 1<<20),
		"one string":         `{"a":"` + strings.Repeat("{", 1<<20),
		"objects of nothing": strings.Repeat(`{}`, 1<<20),
		"bad objects":        strings.Repeat(`{{}`, 1<<20),
	} {
		start := time.Now()
		if a := ReadAnswer(reply, nil); a.Success {
			t.Errorf("%s: an answer was found", name)
		}
		t.Logf("%s: %v", name, time.Since(start).Round(time.Millisecond))
	}
}

func checkBounds(t *testing.T, a Answer) {
	t.Helper()
	for text, most := range map[string]int{
		a.Post: maxLongText, a.Thoughts: maxText, a.Response: maxText, a.Expectation: maxText, a.Emoticon: maxShortText,
	} {
		if utf8.RuneCountInString(text) > most || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			t.Errorf("%.40q… has more than %d code points, or bad ones", text, most)
		}
	}
	if a.Success != (a.Action != nil) || a.Success != (a.Error == "") {
		t.Errorf("it is neither a success nor a failure: %+v", a)
	}
	if a.Action != nil && utf8.RuneCountInString(a.Action.Comment) > maxText {
		t.Errorf("the comment is too long")
	}
	if e := a.Emotion; e != nil && (e.Intensity < 0 || e.Intensity > 1 || e.Type != "positive" && e.Type != "negative" && e.Type != "neutral") {
		t.Errorf("emotion %+v", *e)
	}
	if len(a.Evidence) > maxEvidence || len(a.RelationshipUpdates) > maxUpdates {
		t.Errorf("%d ids, %d updates", len(a.Evidence), len(a.RelationshipUpdates))
	}
}

func FuzzReadAnswer(f *testing.F) {
	for _, s := range []string{
		`{"thoughts":"t","action":{"like":true,"comment":"c"},"emotion":{"type":"positive","intensity":1},"end":1}`,
		"```json\n{\"post\":\"a\nb\",\"evidence\":[\"x\"]}\n```", `{"a":{"b":"\"}"}} {"text":1}`, "{\"emotion\":\"x\",\"like\":1}\n关系更新:\na-+1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		a := ReadAnswer(reply, []string{"a"})
		checkBounds(t, a)
		if _, err := json.Marshal(a); err != nil {
			t.Error(err)
		}
	})
}

func TestReadReview(t *testing.T) {
	for _, test := range []struct {
		name, reply string
		want        []Update
	}{
		{"in English", "Relationship updates:\nc1-+5-friend\nc2--3", []Update{{"c1", 5, "friend"}, {"c2", -3, ""}}},
		{"as a list in bold", "**关系更新：**\n\n- c1-+5\n- `c2--3-rival`\n", []Update{{"c1", 5, ""}, {"c2", -3, "rival"}}},
		{"without a sign is no change", "关系更新:\nuser-5\nc1-+1", []Update{{"c1", 1, ""}}},
		{"without an id is no change", "关系更新:\n-+5\nc1-+1", []Update{{"c1", 1, ""}}},
		{"a huge number is no change", "关系更新:\nc1-+99999999999999999999", []Update{}},
		{"ids with signs", "关系更新:\na-+1-b-+2-friend", []Update{{"a-+1-b", 2, "friend"}}},
		{"a heading alone", "关系更新:", []Update{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ReadReview(test.reply); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func FuzzReadReview(f *testing.F) {
	for _, s := range []string{"关系更新:\na-b-+5-friend\n\nc-+1", "relationship update:\n* a--400", "关系更新：\n-+-+1-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		updates := ReadReview(reply)
		if updates == nil || len(updates) > maxUpdates {
			t.Errorf("%d updates", len(updates))
		}
		for _, u := range updates {
			if u.TargetID == "" || strings.Contains(u.TargetID+u.NewType, "\n") || len(u.TargetID) > maxReviewLine {
				t.Errorf("%+v", u)
			}
			if s, typ, _ := Changed(0, "stranger", false, u.StrengthDelta, u.NewType); s < -10 || s > 10 || typ == "" {
				t.Errorf("%+v makes %d %s", u, s, typ)
			}
		}
	})
}
