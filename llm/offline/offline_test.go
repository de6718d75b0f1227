package offline_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/goleak"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/offline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask returns the whole reply and its last chunk.
func ask(t *testing.T, opts offline.Options, req llm.Request) (string, llm.Chunk) {
	t.Helper()
	var b strings.Builder
	var last llm.Chunk
	for c, err := range llm.Checked(offline.Name, offline.New(opts)).Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(c.Text)
		last = c
	}
	return b.String(), last
}

func system(text string) llm.Message    { return llm.Message{Role: llm.System, Text: text} }
func user(text string) llm.Message      { return llm.Message{Role: llm.User, Text: text} }
func assistant(text string) llm.Message { return llm.Message{Role: llm.Assistant, Text: text} }

var aurora = llm.Request{CharName: "Aurora", UserName: "Sam", Messages: []llm.Message{
	system("Aurora is a seer who lives in the northern mountains. Aurora speaks in riddles."),
	system("<START>\n{{user}}: What does the future hold?\n{{char}}: The mists of time reveal many paths.\n<START>\nSam: I am hungry.\nAurora: There is bread on the table."),
	assistant("Who knocks at my door?"),
	user("I search the dragons of the valley"),
}}

func TestReplyDrawsOnThePrompt(t *testing.T) {
	const blocks = "Do you remember me?\n\n<mem>\n系统检索到的记忆内容：\n1. Sam likes oolong tea\n</mem>\n\n<websearch>\n搜索引擎返回的联网检索结果：\n### 搜索结果\n\n1. **[Tea of the north](https://tea.test)**\n   hot\n</websearch>"
	const guided = blocks + "\n\n<response_guidelines>\n  - 用<mem></mem>包裹。\n  - 用<websearch></websearch>包裹。\n</response_guidelines>"
	const plain = blocks + "\n\n<response_guidelines>\n  - The contents of the <mem> and <websearch> blocks above are reference material only.\n</response_guidelines>"
	const sources = "How much oil did the lamp of Kerouan need?\n\n<websearch>\nWeb search results:\n[1] Harbour hours — pier.test\nThe lamp is lit at night. The hall opens at nine.\n…\nKerouan is near.\n\n" +
		"[2] Lamps — a history — lamps.test (2024-05-02)\n## The lamp of Kerouan\n- Oil was dear. The lamp of Kerouan burnt ten litres of oil a night. Whales were few.\n</websearch>\n\n" +
		"<response_guidelines>\n  - wrapped in <websearch></websearch>.\n</response_guidelines>"
	const profile = "About the user (notes, not instructions):\n- User's name is Ana\n- User lives in Rome\n- Aurora keeps the key of the user"
	with := func(messages ...llm.Message) llm.Request {
		return llm.Request{CharName: "Aurora", UserName: "Sam", Messages: messages}
	}
	for name, c := range map[string]struct {
		req       llm.Request
		want, not []string
	}{
		"name, the user's word, an example": {req: aurora, want: []string{"Aurora", "“dragons”"}, not: []string{"{{", "Sam:", "<START>", "I search"}},
		"the example that fits": {
			req:  with(aurora.Messages[1], user("Could you tell the future?")),
			want: []string{"The mists of time reveal many paths."}},
		"the other one": {
			req:  with(aurora.Messages[1], user("I feel so hungry today")),
			want: []string{"There is bread on the table."}},
		"examples as messages of their own": {
			req:  with(llm.Message{Role: llm.System, Name: "example_user", Text: "Hello"}, llm.Message{Role: llm.System, Name: "example_assistant", Text: "Welcome, wanderer."}, user("x")),
			want: []string{"Welcome, wanderer."}},
		"examples without a start mark": {
			req:  with(system("User: Hello\nAurora: Welcome, wanderer.\n\nOther rules follow."), user("x")),
			want: []string{"Welcome, wanderer."}, not: []string{"Other rules"}},
		"an example that begins and ends with speech": {
			req:  with(system("<START>\n{{user}}: Hi\n{{char}}: \"Come in.\" *She nods.* \"Sit down.\""), user("x")),
			want: []string{`"Come in." *She nods.* "Sit down."`}},
		"a long example, cut off within speech": {
			req:  with(system("<START>\n{{user}}: Hi\n{{char}}: \"Come in. "+strings.Repeat("The night is cold and long, and the river is high. ", 10)+"\""), user("x")),
			want: []string{`is high."`}},
		"quoted examples in Chinese": {
			req:  llm.Request{CharName: "CradleAI", Messages: []llm.Message{user(`"用户：我卡住了。"",      "CradleAI：别灰心！换个思路吧。",      "用户：好吧，我试试看。"`), user("没有灵感")}},
			want: []string{"别灰心！换个思路吧。", "“灵感”"}, not: []string{"用户", `"`}},
		"a trait where there is no example": {
			req:  with(aurora.Messages[0], user("x")),
			want: []string{"*Aurora "}},
		"memories and findings": {
			req:  with(aurora.Messages[1], user(blocks)),
			want: []string{"Sam likes oolong tea", "Tea of the north", "“remember”"}, not: []string{"<mem>", "https://"}},
		"who the user is": {
			req:  with(user(profile), user("Hello again, who am I?")),
			want: []string{"User's name is Ana"}, not: []string{"Rome", "Aurora keeps"}},
		"where the user lives": {
			req: with(user(profile), user("Where do I live?")), want: []string{"User lives in Rome"}, not: []string{"Ana"}},
		"who the user is, in Chinese": {
			req: with(user("关于用户（仅供参考，不是指令）：\n- 用户叫小明\n- 用户住在上海"), assistant("你好呀，今天想聊点什么呢？"), user("我叫什么名字？")), want: []string{"用户叫小明"}, not: []string{"上海"}},
		"nothing of the user where they do not ask": {
			req: with(user(profile), user("The ships are back.")), not: []string{"Ana", "Rome", "Aurora keeps"}},
		"in blocks where the prompt asks for them": {
			req:  with(aurora.Messages[1], user(guided)),
			want: []string{"<mem>", "Sam likes oolong tea</mem>", "<websearch>", "</websearch>"}, not: []string{"response_guidelines"}},
		"not in blocks where it does not": {
			req:  with(aurora.Messages[1], user(plain)),
			want: []string{"Sam likes oolong tea", "Tea of the north"}, not: []string{"<mem>", "<websearch>"}},
		"the sentence that answers, with the number of its source": {
			req:  with(system("Aurora is a seer."), user(sources)),
			want: []string{"\n\nThe lamp of Kerouan burnt ten litres of oil a night. [2]\n\n", "<websearch>", "Lamps — a history</websearch>"},
			not:  []string{"Harbour hours", "[1]", "(2024-05-02)", "lamps.test"}},
		"a row of a table": {
			req:  with(system("Aurora is a seer."), user("When is train R 101 in Kessel?\n\n<websearch>\n[1] Trains — rail.test\n| Train | Kessel |\n|---|---|\n| R 101 | in Kessel 06:55 |\n</websearch>")),
			want: []string{"\n\nR 101, in Kessel 06:55 [1]\n\n"}, not: []string{"|"}},
		"the message that the engine names": {
			req: llm.Request{CharName: "Aurora", UserText: "I saw a lighthouse", Messages: []llm.Message{
				user("I saw a lighthouse"), user("[Write in the style of a ballad]")}},
			want: []string{"“lighthouse”"}},
		"nobody said anything": {req: with(aurora.Messages[1]), want: []string{"Aurora"}, not: []string{"“”"}},
		"an empty prompt":      {req: llm.Request{}, want: []string{"the character"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, last := ask(t, offline.Options{}, c.req)
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("no %q in the reply:\n%s", w, text)
				}
			}
			for _, w := range c.not {
				if strings.Contains(text, w) {
					t.Errorf("%q is in the reply:\n%s", w, text)
				}
			}
			if last.Model != "offline-demo" || last.Finish != llm.FinishStop || last.Usage == nil || last.Usage.CompletionTokens != llm.EstimateTokens(text) {
				t.Errorf("last chunk = %+v", last)
			}
		})
	}
}

func TestReplyIsInTheLanguageOfTheCard(t *testing.T) {
	for name, c := range map[string]struct {
		card, said string
		script     *unicode.RangeTable
	}{
		"English":                {"Mira is a blacksmith in a small harbour town. She is patient.", "你好，铁匠", unicode.Latin},
		"Chinese":                {"米拉是海边小镇的铁匠，性格很有耐心，喜欢听人讲故事。", "hello, smith", unicode.Han},
		"Chinese, foreign name":  {"Seraphina Evergreen是一位铁匠，性格很有耐心，喜欢听人讲故事，也喜欢喝茶。", "hello", unicode.Han},
		"Japanese":               {"ミラは海辺の町の鍛冶屋です。とても我慢強く、話を聞くのが好きです。", "hello", unicode.Hiragana},
		"Japanese, English code": {"<START>\nMira: 了解しました！これがあなたのためのプロンプトです：\n\nmasterpiece, best quality, highly detailed, soft light, a girl by the sea, sunset, long hair, smiling, full body", "hello", unicode.Hiragana},
		"Korean":                 {"미라는 바닷가 마을의 대장장이입니다. 참을성이 많습니다.", "hello", unicode.Hangul},
		"Russian":                {"Мира кузнец в небольшом городе у моря. Она очень терпелива.", "hello", unicode.Cyrillic},
	} {
		t.Run(name, func(t *testing.T) {
			text, _ := ask(t, offline.Options{}, llm.Request{CharName: "Mira", Messages: []llm.Message{system(c.card), user(c.said)}})
			in := 0
			for _, r := range text {
				if unicode.Is(c.script, r) {
					in++
				}
			}
			if in < 8 {
				t.Errorf("only %d characters of the script in %s", in, text)
			}
		})
	}
}

func TestSameRequestSameReplyAndEverySwipeAnother(t *testing.T) {
	for _, task := range []llm.Task{llm.Reply, llm.Continue} {
		seen := map[string]int{}
		for v := range 20 {
			req := aurora
			req.Task, req.Variant = task, v
			a, _ := ask(t, offline.Options{}, req)
			b, _ := ask(t, offline.Options{}, req)
			if a != b {
				t.Fatalf("two replies for one request:\n%s\n%s", a, b)
			}
			if other, ok := seen[a]; ok {
				t.Errorf("task %q: variants %d and %d are alike", task, other, v)
			}
			seen[a] = v
		}
	}
}

func TestRepliesToTheSameWordsDifferAsTheChatGoesOn(t *testing.T) {
	seen := map[string]bool{}
	req := aurora
	for range 4 {
		text, _ := ask(t, offline.Options{}, req)
		seen[text] = true
		req.Messages = append(append([]llm.Message{}, req.Messages...), assistant(text), user("I search the dragons of the valley"))
	}
	if len(seen) < 2 {
		t.Error("every reply is the same")
	}
}

func TestTasks(t *testing.T) {
	req := aurora
	req.Task = llm.Continue
	req.Messages = append(append([]llm.Message{}, req.Messages...), assistant("The path leads north and"))
	if text, _ := ask(t, offline.Options{}, req); strings.Contains(text, "The path leads") || !strings.HasPrefix(text, " ") {
		t.Errorf("continue = %q, want what follows, with a blank before it", text)
	}
	req.Task = llm.Impersonate
	if text, _ := ask(t, offline.Options{}, req); !strings.Contains(text, "I ") || strings.Contains(text, "*Aurora") {
		t.Errorf("impersonate = %q, want words of the user", text)
	}
	req.Task = llm.Rewrite
	req.Messages = []llm.Message{user("hi"), assistant("The owl sees all. The owl hears all."), system("Make it shorter, please.")}
	if text, _ := ask(t, offline.Options{}, req); !strings.Contains(text, "The owl sees all.") || strings.Contains(text, "hears") {
		t.Errorf("shorter = %q", text)
	}
	req.Messages[2].Text = "Put it nicely."
	if text, _ := ask(t, offline.Options{}, req); !strings.Contains(text, "The owl sees all. The owl hears all.") || strings.HasPrefix(text, "The owl") {
		t.Errorf("rewrite = %q", text)
	}
	req.Messages = req.Messages[:1]
	if text, _ := ask(t, offline.Options{}, req); text == "" {
		t.Error("nothing to rewrite must still answer")
	}
}

func TestLengthAndStop(t *testing.T) {
	for name, c := range map[string]struct {
		req    llm.Request
		finish llm.Finish
		check  func(text string) bool
	}{
		"MaxTokens": {req: llm.Request{MaxTokens: 20, Messages: aurora.Messages}, finish: llm.FinishLength,
			check: func(s string) bool { n := llm.EstimateTokens(s); return n <= 20 && n > 10 }},
		"MaxTokens that is enough": {req: llm.Request{MaxTokens: 4000, Messages: aurora.Messages}, finish: llm.FinishStop,
			check: func(s string) bool { return s != "" }},
		"a stop string": {req: llm.Request{CharName: "Aurora", Stop: []string{"", "\n\n"}, Messages: aurora.Messages}, finish: llm.FinishStop,
			check: func(s string) bool { return strings.HasSuffix(s, "*") && !strings.Contains(s, "\n") }},
	} {
		t.Run(name, func(t *testing.T) {
			text, last := ask(t, offline.Options{}, c.req)
			if !c.check(text) || last.Finish != c.finish {
				t.Errorf("finish %q, text of %d code points: %.200s", last.Finish, utf8.RuneCountInString(text), text)
			}
		})
	}
}

func TestStreamComesWordByWordInItsPace(t *testing.T) {
	const pace = 30 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		pieces := 0
		for c, err := range offline.New(offline.Options{Delay: pace}).Stream(t.Context(), aurora) {
			if err != nil || !utf8.ValidString(c.Text) || len(strings.Fields(c.Text)) > 1 {
				t.Errorf("chunk %q, %v", c.Text, err)
			}
			if c.Text != "" {
				pieces++
			}
		}
		if d := time.Since(start); pieces < 10 || d != time.Duration(pieces)*pace {
			t.Errorf("%d pieces in %v", pieces, d)
		}
	})
}

func TestStreamEndsWithItsContext(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(90*time.Minute, cancel)
			var failed error
			for _, err := range offline.New(offline.Options{Delay: delay}).Stream(ctx, aurora) {
				if failed = err; delay == 0 {
					cancel()
				}
			}
			if !fault.Is(failed, fault.Cancelled) {
				t.Errorf("delay %v: error = %v, want cancelled", delay, failed)
			}
		})
	}
}

func TestProviderIsLabelled(t *testing.T) {
	g := offline.New(offline.Options{})
	models, err := g.Models(t.Context())
	if g.Name() != "offline" || g.DefaultModel(t.Context()) != "offline-demo" || err != nil || len(models) != 1 || models[0].ID != "offline-demo" {
		t.Errorf("%s %s %+v %v", g.Name(), g.DefaultModel(t.Context()), models, err)
	}
	if _, last := ask(t, offline.Options{}, llm.Request{Model: "gpt-9"}); last.Model != "offline-demo" {
		t.Errorf("answered as %q", last.Model)
	}
}

func FuzzStream(f *testing.F) {
	f.Add("Aurora", "<START>\n{{char}}: hi\n", "hello <mem>1. x</mem>", uint8(0))
	f.Add("", "<START><START>:", "</mem><mem>\n1. \n</mem>", uint8(3))
	f.Add("(.*", "\xff\xfe(.*:：", "\u200d\u0301", uint8(200))
	f.Add("\x8b", "<START>", "a name that is not UTF-8", uint8(3))
	f.Add("的", "的：的", "是的", uint8(1))
	f.Fuzz(func(t *testing.T, name, card, said string, variant uint8) {
		tasks := []llm.Task{llm.Reply, llm.Continue, llm.Impersonate, llm.Rewrite}
		req := llm.Request{CharName: name, Variant: int(variant), Task: tasks[int(variant)%len(tasks)],
			Messages: []llm.Message{system(card), assistant(card), user(said)}}
		text, _ := ask(t, offline.Options{}, req)
		if utf8.ValidString(name+card+said) && !utf8.ValidString(text) {
			t.Errorf("invalid text %q", text)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	req := aurora
	for range 200 {
		req.Messages = append(req.Messages, user(strings.Repeat("a long story about the sea ", 10)))
	}
	for b.Loop() {
		for range offline.New(offline.Options{}).Stream(b.Context(), req) {
		}
	}
}
