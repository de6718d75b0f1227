package recall_test

import (
	"slices"
	"testing"
	"time"

	"nodest/llm"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

func TestPromptRecall(t *testing.T) {
	t.Parallel()
	units := slices.Concat(
		sessionUnits(1, "2023-04-02", "Reed: Welcome aboard! The lighthouse and its keeper have waited for you.", "Ann: My goldfish is called Admiral.", "Reed: What is a goldfish to you, Ann?", "Ann: A friend who never interrupts."),
		sessionUnits(2, "2023-04-20", "Ann: What is my goldfish called?", "Ann: My sister Lucy keeps bees in Bergen.", "Ann: 我的猫很懒。", "Ann: 家里的茶是妈妈寄来的。", "Ann: 犬の名前はポチです。", "Ann: 우리 고양이는 까만색이야."),
	)
	units[0].Order = 1 // a greeting
	for i := range units {
		units[i].Hash = lang.ContentHash(units[i].Text)
	}
	x := indexOf(t, units...)
	for _, c := range []struct {
		name string
		q    recall.Query
		want []string // ids, in any order
	}{
		{"a question", recall.Query{Text: "What is my goldfish called?"}, []string{"1.1", "1.3"}},
		{"an echo", recall.Query{Text: "My sister Lucy keeps bees in Bergen."}, nil},
		{"a name in passing", recall.Query{Text: "I am off to see Lucy this afternoon."}, []string{"2.1"}},
		{"the greeting of another chat", recall.Query{Text: "Who is the lighthouse keeper?", Here: "here"}, nil},
		{"that of this one", recall.Query{Text: "Who is the lighthouse keeper?", Here: "c"}, []string{"1.0"}},
		{"one that refers to the turn before", recall.Query{Text: "And what about her?", Before: []string{"I called Lucy, my sister.", "How nice of you."}}, []string{"2.1"}},
		{"one that refers to nothing", recall.Query{Text: "And what about her?"}, nil},
		{"small talk behind such a turn", recall.Query{Text: "That's great!", Before: []string{"I called Lucy, my sister.", "How nice of you."}}, nil},
		{"one character", recall.Query{Text: "我的猫怎么样？"}, []string{"2.2"}},
		{"one that refers, in Chinese", recall.Query{Text: "那它呢？", Before: []string{"你喜欢猫吗？", "喜欢。"}}, []string{"2.2"}},
		{"one character of many", recall.Query{Text: "你喜欢茶吗"}, []string{"2.3"}},
		{"a Japanese noun without its particle", recall.Query{Text: "犬は元気？"}, []string{"2.4"}},
		{"a Korean noun with another particle", recall.Query{Text: "고양이가 무슨 색이야?"}, []string{"2.5"}},
		{"a Korean particle and verb alone", recall.Query{Text: "나는 뭐야?"}, nil},
		{"a back-channel", recall.Query{Text: "嗯嗯，好的"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := foundIDs(find(t, x, c.q))
			slices.Sort(got)
			if !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
				t.Errorf("%q finds %v, want %v", c.q.Text, got, c.want)
			}
		})
	}
}

// In Chinese a word of two characters carries a reference to the previous turn as a
// word does in English, even if it is not rare.
func TestAChineseReferenceRecalls(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sessionUnits(1, "2023-04-02", "Ann: 我妹妹在成都养蜜蜂", "Reed: 嗯。", "Ann: 我哥哥在大连卖船", "Reed: 嗯。", "Ann: 那我妹妹呢？", "Reed: 她很好。",
		"Ann: My sister keeps bees in Lisbon.", "Reed: Aye.", "Ann: My brother sells boats.", "Reed: Aye.", "Ann: And my sister?", "Reed: She is well.")...)
	for text, c := range map[string]struct{ before, want string }{"她住哪里？": {"那我妹妹呢？", "成都"}, "Where does she live?": {"And my sister?", "Lisbon"}} {
		hits := find(t, x, recall.Query{Text: text, Before: []string{c.before, ""}, Now: noon})
		if position(hits, c.want) < 0 {
			t.Errorf("%q behind %q finds %q", text, c.before, hitTexts(hits))
		}
	}
}

// A statement about somebody whose name is known recalls them wherever the name
// stands; a statement that is not about them does not.
func TestAKnownNameRecalls(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sessionUnits(1, "2023-05-02", "Ann: My cat is called Miso, she is grey.", "Ann: I met Lena at the harbour.", "Ann: the ferry was late", "Ann: my boat is named swallow",
		"Ann: 我的绿萝叫翠花，放在阳台。", "Ann: 我的同事叫莉娜。", "Ann: 我叫外卖。", "Ann: 老师叫学生回答。", "Ann: Ferries are loud. Gulls are too.")...)
	for text, want := range map[string][]string{
		"Miso is sick": {"1.0"}, "Lena is back.": {"1.1"}, "I'm back. Swallow leaks.": {"1.3"}, "翠花该浇水了": {"1.4"}, "今天见到莉娜了": {"1.5"},
		"外卖好慢啊": nil, "学生很吵啊": nil, "Gulls are so noisy.": nil, "Ferries are so slow.": nil, "I'm grey.": nil,
	} {
		if got := foundIDs(find(t, x, recall.Query{Text: text, Now: noon, Here: "here"})); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", text, got, want)
		}
	}
}

// A text of the user in role play, in jest, or about what others say does not answer
// a question about the user if there is a real answer.
func TestPlayAndHearsayDoNotAnswerQuestions(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sessionUnits(1, "2023-05-02", "Ann: *waves* I live in Lisbon.", "Ann: I work as a tailor.",
		"Ann: Let's role-play: I live in Elm Street.", "Ann: My boss says I live in the office.", "Ann: I live in a volcano, just kidding!", "Ann: In our story I work as a spy.")...)
	zh := indexOf(t, sessionUnits(1, "2023-05-02", "Ann: 我住在里斯本。", "Ann: 我在面包店上班。", "Ann: 我们来扮演：我住在贝克街。", "Ann: 我老板说我住在公司。", "Ann: 开玩笑，我在火星上班。")...)
	for text, want := range map[string][]string{"Where do I live?": {"1.0"}, "What do I do for work?": {"1.1"}, "我住在哪里？": {"1.0"}, "我在哪里上班？": {"1.1"}} {
		x := x
		if text[0] >= 0x80 {
			x = zh
		}
		got := foundIDs(find(t, x, recall.Query{Text: text, Now: noon, Here: "here"}))
		if !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", text, got, want)
		}
	}
	x = indexOf(t, sessionUnits(1, "2023-05-02", "Ann: Let's role-play: I live in Elm Street.")...)
	if hits := find(t, x, recall.Query{Text: "Where do I live?", Now: noon, Here: "here"}); len(hits) != 1 {
		t.Errorf("the only answer is not found: %q", hitTexts(hits))
	}
}

// A question about a day recalls short answers of that day, but not its small talk.
func TestADayRecallsNoSmallTalk(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sessionUnits(1, "2023-05-09",
		"Ann: hm", "Reed: Hello there.", "Ann: I baked a rhubarb pie.", "Reed: Oh, great!", "Ann: yeah, ok", "Reed: Sure, sure.", "Ann: At 9.", "Ann: 嗯，好的", "Reed: 哈哈，真棒", "Ann: 我烤了面包。", "Reed: 哦？", "Ann: 好")...)
	for text, want := range map[string][]string{"What did I bake yesterday?": {"1.2", "1.6", "1.9"}, "昨天我做了什么？": {"1.2", "1.6", "1.9"}} {
		got := foundIDs(find(t, x, recall.Query{Text: text, Now: noon, Here: "here"}))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", text, got, want)
		}
	}
}

// Words without content recall nothing wherever they stand; a question about a day
// recalls what happened then.
func TestWordsThatTriggerRecall(t *testing.T) {
	t.Parallel()
	units := slices.Concat(
		sessionUnits(1, "2023-05-06", "Ann: The bailiff took our piano.", "Ann: 房东把锁换了。"),
		sessionUnits(2, "2023-05-01", "Ann: I left the passport on the ferry.", "Ann: 那只鹅谁都敢咬，我们喊它将军。", "Ann: 他说他不知道密码，其实是茉莉。", "Ann: 窗外面好安静，湖上的人不多，天黑得晚。", "Ann: 我管那条船叫海鸥。"),
		sessionUnits(3, "2023-05-10", "Ann: I sold the harp."),
		sessionUnits(4, "2021-11-01", "Ann: 병원에서 피를 뽑았어.", "Ann: Tickets to Iceland are booked for March.", "Ann: 三月的机票订好了。", "Ann: My favourite tea is smoky.", "Ann: My wrist, in 2019, on the ice.", "Ann: 我的电脑周一坏了。", "Ann: 我二十九岁了。", "Ann: 昨日は疲れたのでラーメンを食べた。", "Ann: 제가 좋아하는 차는 보이차예요.", "Ann: 피곤해 죽겠다던 언니가 이사했어."),
	)
	for i := range units {
		units[i].Hash = lang.ContentHash(units[i].Text)
	}
	x := indexOf(t, units...)
	for text, want := range map[string]string{
		"What was it that happened on Saturday?": "piano", "上周六出了什么事？": "锁", "What did I lose nine days ago?": "passport", "五月一日我丢了什么？": "passport",
		"Did I do anything today?": "harp", "How is today?": "", "今天还好吗？": "",
		"鹅叫什么？": "将军", "密码是什么？": "茉莉", "猜猜我是谁": "",
		"外面的人好多。": "", "晚上真安静。": "", "天呐！": "", "一个人好不好？": "",
		"작년에 뭐 했지?": "", "Where do we fly in March?": "Iceland", "三月我们去哪里？": "机票", "See you in March!": "", "What did I do on March 3?": "", "周一见": "", "疲れたね": "", "좋아": "", "피곤해요": "", "좋아하는 차는 뭐야?": "보이차", "你几岁": "", "What did I break in 2019?": "wrist",
		"What is your favourite colour?": "", "What is my favourite tea?": "smoky",
		"The lakes are pretty here, aren't they?": "", "Sell me something.": "", "安静，晚安": "",
	} {
		hits := find(t, x, recall.Query{Text: text, Now: noon, Here: "here"})
		if want == "" && len(hits) > 0 || want != "" && position(hits, want) < 0 {
			t.Errorf("%q finds %q, want %q", text, hitTexts(hits), want)
		}
	}
}

// Questions about who the user is find the line that says it, in whatever form,
// before any fact is extracted, and not what was said about others.
func TestQuestionsAboutTheUsersIdentity(t *testing.T) {
	t.Parallel()
	for line, c := range map[string]struct{ asked, other string }{
		"I'm Anna, nice to meet you!": {"What's my name?", "How old am I?"}, "叫我小王就好": {"我叫什么名字？", "我几岁？"}, "我姓王，叫王芳": {"我是谁？", "我住哪里？"}, "我是小汤，二十九岁": {"我几岁？", "我住哪里？"},
		"私の名前は健太です。": {"僕の名前は？", "僕は何歳？"}, "京都に住んでいます。": {"私はどこに住んでる？", "私の仕事は？"}, "病院で働いています。": {"私の仕事は何？", "私の名前は？"},
		"제 이름은 민수예요.": {"내 이름이 뭐야?", "내 직업이 뭐야?"}, "부산에 살아요.": {"내가 어디에 살아?", "내 이름이 뭐야?"}, "병원에서 일해요.": {"내 직업이 뭐야?", "내가 어디 살아?"},
	} {
		x := indexOf(t, sessionUnits(1, "2023-05-06", "Ann: "+line, "Reed: I see.")...)
		for asked, want := range map[string]int{c.asked: 1, c.other: 0} {
			if hits := find(t, x, recall.Query{Text: asked, Now: noon, Here: "here"}); len(hits) != want {
				t.Errorf("%q finds %q, want %d of %q", asked, hitTexts(hits), want, line)
			}
		}
	}
	x := indexOf(t, sessionUnits(1, "2023-05-06", "Ann: 妹は札幌に住んでいます。", "Ann: 여동생은 병원에서 일해요.", "Ann: I watched a movie, nice to meet Amelie.",
		"Ann: My name is Bond lol", "Ann: 他们说我三十岁", "Ann: 我女儿今年六岁", "Ann: 我朋友住在北京，是医生")...)
	for _, text := range []string{"我几岁？", "我住哪里？", "私はどこに住んでる？", "내 직업이 뭐야?", "What's my name?"} {
		if hits := find(t, x, recall.Query{Text: text, Now: noon, Here: "here"}); len(hits) > 0 {
			t.Errorf("%q finds %q", text, hitTexts(hits))
		}
	}
}

// Offline vectors alone recall nothing, because parts of words are alike by chance.
func TestOfflineVectorsAloneRecallNothing(t *testing.T) {
	t.Parallel()
	x := indexOf(t, withVectors(t, sampleUnits)...)
	text := "sunrisee orangee"
	v := vector(t, llm.Query, text)
	if len(findNear(t, x, recall.Query{Text: text}, recall.Vectors{Spelling: v})) > 0 {
		t.Error("spelling alone opens the gate")
	}
	if len(findNear(t, x, recall.Query{Text: text}, recall.Vectors{Model: v})) == 0 {
		t.Error("a vector of a model that stands out does not")
	}
}

func TestFactsOfTheUserComeFirst(t *testing.T) {
	t.Parallel()
	old := fact("old", "User's lucky number is seven.", func(u *recall.Unit) { u.At, u.ByHand = noon.AddDate(-1, 0, 0), true })
	fresh := fact("fresh", "User's lucky number is lucky number nine, the lucky one.", func(u *recall.Unit) { u.At = noon.Add(-time.Hour) })
	if got := foundIDs(find(t, indexOf(t, old, fresh), recall.Query{Text: "What is my lucky number?"})); !slices.Equal(got, []string{"old", "fresh"}) {
		t.Errorf("found %v", got)
	}
}
