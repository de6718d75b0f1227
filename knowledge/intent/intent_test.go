package intent_test

import (
	"testing"

	"nodest/knowledge/intent"
)

func TestSmallTalkIsNotSearchedFor(t *testing.T) {
	for _, text := range []string{
		"Hi!", "hello there", "How are you?", "Good morning, how are you?", "*waves* Hey", "*smiles at you*", "ok", "Thanks!", "lol", "What's up?",
		"What are you doing right now?", "Are you tired?", "Really?", "Do you miss me?", "Good night", "haha, you are sweet", "I missed you today.", "...",
		"你好", "你好吗？", "在吗？", "晚安", "*微笑*", "嗯嗯", "谢谢", "真的吗？", "今天过得怎么样？", "我想你了",
	} {
		if intent.Wanted(text, []string{"Harbour notes", "The town of Lanternport and its people"}) {
			t.Errorf("%q is searched for", text)
		}
	}
}

func TestQuestionsAboutDocumentsAreSearchedFor(t *testing.T) {
	for _, text := range []string{
		"Who keeps the lighthouse?", "When does the ferry leave on Sundays?", "Tell me about the harbour master.", "what is a happens-before edge",
		"Where is Lanternport", "I walked through Lanternport yesterday.", "*leans closer* How many bells does the tower have?", "Explain WAL mode",
		"灯塔是谁看守的？", "渡船几点开", "请介绍一下雾渡城", "孔乙己为什么被打断了腿",
	} {
		if !intent.Wanted(text, []string{"Harbour notes", "The town of Lanternport and its people"}) {
			t.Errorf("%q is not searched for", text)
		}
	}
}

func TestAMessageThatOnlyPointsIsSearchedWithTheOneBefore(t *testing.T) {
	for _, c := range []struct{ text, before, want string }{
		{"And when does it leave?", "Which ship goes to Halden?", "Which ship goes to Halden?\nAnd when does it leave?"},
		{"她住在哪里？", "灯塔看守是谁？", "灯塔看守是谁？\n她住在哪里？"},
		{"When does the ferry to Halden leave on Sundays?", "Who are you?", "When does the ferry to Halden leave on Sundays?"},
		{"Where is it?", "", "Where is it?"},
		{"*nods* Where is it?", "*looks up* The bell tower?", "The bell tower?\nWhere is it?"},
	} {
		if got := intent.Standalone(c.text, c.before); got != c.want {
			t.Errorf("%q after %q: %q, want %q", c.text, c.before, got, c.want)
		}
	}
}
