package offline_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nodest/llm"
	"nodest/llm/offline"
)

var kbTools = []llm.Tool{{Name: "searchKnowledgeBase"}, {Name: "readKnowledge"}, {Name: "searchWeb"}}

const nothingFound = `<knowledge_base_search_results query="x" totalCount="0" round="1" degraded=""><instruction>Try other words once.</instruction></knowledge_base_search_results>`

const excerpts = `<knowledge_base_search_results query="x" totalCount="2" round="1" degraded="">
<instruction>Excerpts only. Cite with [^n].</instruction>
<file id="f-1" name="lanternport.md" type="markdown" relevance="0.71" knowledgeBase="World">
<chunk ref="1" id="f-1.1.0" similarity="0.78" heading="People › Maren Oduya" page="">Maren Oduya has been harbour master since 1031. She likes &lt;cake&gt; &amp; tea.</chunk>
<chunk ref="2" id="f-1.1.4" similarity="0.5" heading="Lamps" page="">The great lamp burns whale oil.</chunk>
</file>
<file id="f-2" name="ships.csv" type="csv" relevance="0.3" knowledgeBase="World">
<chunk ref="3" id="f-2.1.0" similarity="0.4" heading="" page="">ship: Petrel; captain: Odd.</chunk>
</file>
</knowledge_base_search_results>`

const whole = `<knowledge_base_files totalCount="1">
<instruction>Use this text to answer; cite with [^n].</instruction>
<file id="f-1" name="lanternport.md" ref="4" part="1/1" next="" chars="300"># Keys
The brass key of the great lamp hangs behind the stove of the bakery. It rains.</file>
<file id="f-9" error="not_found"/>
</knowledge_base_files>`

// turn plays the tools of a turn: the model's calls, each answered with the next result. It
// returns the calls and the reply.
func turn(t *testing.T, said string, results ...string) (calls []llm.ToolCall, reply string) {
	t.Helper()
	req := llm.Request{CharName: "Aurora", UserName: "Sam", Tools: kbTools, Messages: []llm.Message{
		system("Aurora keeps the archive of the harbour. Aurora is patient."), assistant("Welcome."), user(said)}}
	for {
		text, last := ask(t, offline.Options{}, req)
		if len(last.Calls) == 0 {
			return calls, text
		}
		if len(last.Calls) > 1 || text != "" || len(calls) == len(results) {
			t.Fatalf("after %d calls it asks for %+v", len(calls), last.Calls)
		}
		c := last.Calls[0]
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Calls: last.Calls, Echo: last.Echo},
			llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{CallID: c.ID, Name: c.Name, Text: results[len(calls)]}})
		calls = append(calls, c)
	}
}

func TestAQuestionIsLookedUpAndAnsweredWithItsSource(t *testing.T) {
	calls, reply := turn(t, "Who has been the harbour master since 1031?", excerpts)
	if len(calls) != 1 || calls[0].Name != "searchKnowledgeBase" {
		t.Fatalf("calls %+v", calls)
	}
	var args struct{ Query string }
	if err := json.Unmarshal([]byte(calls[0].Arguments), &args); err != nil || args.Query != "Who has been the harbour master since 1031?" {
		t.Errorf("arguments %s, %v", calls[0].Arguments, err)
	}
	if !strings.Contains(reply, "Maren Oduya has been harbour master since 1031. [^1]") || !strings.Contains(reply, "Aurora") {
		t.Errorf("reply %s", reply)
	}
	if strings.ContainsAny(reply, "<>&") || strings.Contains(reply, "Knowledge") {
		t.Errorf("markup or tools show in %s", reply)
	}
}

func TestTheBestFileIsReadWhereTheExcerptsDoNotAnswer(t *testing.T) {
	calls, reply := turn(t, "Where does the brass key of the lamp hang?", excerpts, whole)
	if len(calls) != 2 || calls[1].Name != "readKnowledge" {
		t.Fatalf("calls %+v", calls)
	}
	var args struct{ FileIDs, AroundChunkIDs []string }
	if err := json.Unmarshal([]byte(calls[1].Arguments), &args); err != nil || !slices.Equal(args.FileIDs, []string{"f-1"}) || !slices.Equal(args.AroundChunkIDs, []string{"f-1.1.0", "f-1.1.4"}) {
		t.Errorf("arguments %s, %v", calls[1].Arguments, err)
	}
	if !strings.Contains(reply, "The brass key of the great lamp hangs behind the stove of the bakery. [^4]") || strings.Contains(reply, "[^1]") {
		t.Errorf("reply %s", reply)
	}
}

func TestWhatTheDocumentsDoNotSayIsNotMadeUp(t *testing.T) {
	for name, results := range map[string][]string{"no hit": {nothingFound}, "other hits": {excerpts, whole}, "an error": {"error: failed"}} {
		_, reply := turn(t, "Which opera did Verdi write in Cairo?", results...)
		if strings.Contains(reply, "[^") || !strings.Contains(reply, "say") && !strings.Contains(reply, "not written") {
			t.Errorf("%s: %s", name, reply)
		}
	}
}

func TestSmallTalkCallsNoTool(t *testing.T) {
	for _, said := range []string{
		"Hello!", "How are you?", "Good morning, did you sleep well?", "*waves*", "What do you like?", "你好吗？", "你喜欢什么？", "晚上好，在吗？", "I am tired.", "Who are you?", "What?", "",
	} {
		if calls, _ := turn(t, said); calls != nil {
			t.Errorf("%q calls %+v", said, calls)
		}
	}
	for _, said := range []string{"Do you know who keeps the lamp?", "灯塔的钥匙在谁手里？", "Tell me about the great lamp.", "潮汐表怎么读？"} {
		if calls, _ := turn(t, said, nothingFound); len(calls) != 1 {
			t.Errorf("%q calls %+v", said, calls)
		}
	}
}

func TestToolsAreLeftAloneWhereTheyAreNotAllowed(t *testing.T) {
	req := llm.Request{Messages: []llm.Message{user("Who keeps the lamp?")}, Tools: kbTools}
	for name, change := range map[string]func(*llm.Request){
		"no calls":     func(r *llm.Request) { r.NoCalls = true },
		"no tools":     func(r *llm.Request) { r.Tools = nil },
		"other tools":  func(r *llm.Request) { r.Tools = kbTools[2:] },
		"another task": func(r *llm.Request) { r.Task = llm.Impersonate },
	} {
		r := req
		change(&r)
		if text, last := ask(t, offline.Options{}, r); last.Calls != nil || text == "" {
			t.Errorf("%s: %q, %+v", name, text, last.Calls)
		}
	}
}

func TestReplyDrawsOnDocumentsInThePrompt(t *testing.T) {
	const bound = "<character_knowledge>\n<instruction>Cite.</instruction>\n<files totalCount=\"1\"><file id=\"f-5\" name=\"灯塔.md\" ref=\"1\"># 守塔\n灯塔的钥匙由马伦保管。塔高三十米。\nAurora keeps a secret diary here.</file></files>\n</character_knowledge>"
	with := func(messages ...llm.Message) llm.Request {
		return llm.Request{CharName: "Aurora", UserName: "Sam", Messages: messages}
	}
	for name, c := range map[string]struct {
		req       llm.Request
		want, not string
	}{
		"passages beside the message": {with(user("Who has been the harbour master since 1031?\n\n<knowledge>\nPassages:\n" + excerpts + "\n</knowledge>")), "since 1031. [^1]", "<"},
		"numbered passages":           {with(user("Who is harbour master?\n\n<knowledge>\n[7] lanternport.md\nMaren is harbour master.\n</knowledge>")), "Maren is harbour master. [^7]", "<"},
		"passages that do not answer": {with(user("Which opera did Verdi write?\n\n<knowledge>\n" + excerpts + "\n</knowledge>")), "", "[^"},
		"a whole file":                {with(user(bound), assistant("你好呀，今天想聊点什么呢？"), user("灯塔的钥匙由谁保管？")), "灯塔的钥匙由马伦保管。[^1]", "塔高"},
		"a file that does not answer": {with(user(bound), assistant("Welcome, come in."), user("Which opera did Verdi write?")), "Aurora", "secret diary"},
	} {
		text, _ := ask(t, offline.Options{}, c.req)
		if !strings.Contains(text, c.want) || strings.Contains(text, c.not) {
			t.Errorf("%s: want %q and no %q in\n%s", name, c.want, c.not, text)
		}
	}
}

func TestAQuestionWithoutACharacterGetsOnlyWhatTheDocumentsSay(t *testing.T) {
	for name, c := range map[string]struct{ rules, said, want string }{
		"a question":          {"Answer from the excerpts.", "Who has been the harbour master since 1031?", "Maren Oduya has been harbour master since 1031. [^1]"},
		"words":               {"Answer from the excerpts.", "great lamp oil", "The great lamp burns whale oil. [^2]"},
		"nothing":             {"Answer from the excerpts.", "Which opera did Verdi write?", "I have looked, and the documents do not say."},
		"nothing, in Chinese": {"请只根据摘录回答用户的问题。", "谁写了这部歌剧？", "我翻过了，文档里没有写。"},
	} {
		text, _ := ask(t, offline.Options{}, llm.Request{Messages: []llm.Message{
			system(c.rules), user("<knowledge>\n" + excerpts + "\n</knowledge>\n\n" + c.said)}})
		if text != c.want {
			t.Errorf("%s: %s", name, text)
		}
	}
}
