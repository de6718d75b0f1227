package llm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/gemini"
	"nodest/llm/llmtest"
	"nodest/llm/openai"
)

// toolTest is an adapter and the provider that it should be.
type toolTest struct {
	name  string
	build factory
}

func toolAdapters() []toolTest {
	var all []toolTest
	for _, model := range []string{"gemini-2.5-flash-lite", "gemini-flash-latest"} {
		all = append(all, toolTest{model, func(t testing.TB, keys ...llm.Key) adapter {
			f := llmtest.NewGemini(t)
			p, err := gemini.New(keys, gemini.Options{Model: model, BaseURL: f.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			return adapter{Provider: p, Fake: f}
		}})
	}
	for _, name := range []string{openai.OpenAI, openai.OpenRouter} {
		all = append(all, toolTest{name, func(t testing.TB, keys ...llm.Key) adapter {
			f := llmtest.NewOpenAI(t)
			c, err := openai.New(keys, openai.Options{Name: name, BaseURL: f.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return adapter{Provider: c, Fake: f}
		}})
	}
	return all
}

// TestToolConformance holds each adapter to the same promises about tools.
func TestToolConformance(t *testing.T) {
	for _, tt := range toolAdapters() {
		t.Run(tt.name, func(t *testing.T) {
			t.Run("tools are offered", func(t *testing.T) { testOffer(t, tt.build) })
			t.Run("calls arrive whole", func(t *testing.T) { testCalls(t, tt.build) })
			t.Run("a round of calls and results", func(t *testing.T) { testRound(t, tt.build) })
			t.Run("the calls of another provider", func(t *testing.T) { testForeignCalls(t, tt.build) })
			t.Run("a signature is kept", func(t *testing.T) { testSignature(t, tt.build) })
			t.Run("no tools", func(t *testing.T) { testNoTools(t, tt.build) })
			t.Run("too much", func(t *testing.T) { testTooManyCalls(t, tt.build) })
			t.Run("nobody has asked for calls", func(t *testing.T) { testUnaskedCalls(t, tt.build) })
		})
	}
}

var tools = []llm.Tool{{
	Name: "searchKnowledgeBase", Description: "Find passages.",
	Parameters: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["query"],"properties":{
		"query":{"type":"string","description":"What to look for."},
		"topK":{"type":"integer","minimum":5,"maximum":100,"default":15},
		"knowledgeBaseIds":{"type":"array","minItems":1,"items":{"type":"string"}}}}`),
}, {Name: "roll", Description: "Roll a die.", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}

func askWithTools(text string) llm.Request {
	req := llmtest.Ask(text)
	req.Tools = tools
	return req
}

func testOffer(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	for _, noCalls := range []bool{false, true} {
		req := askWithTools("hi")
		req.NoCalls = noCalls
		checkCode(t, llmtest.Read(t, a.Provider.Stream(t.Context(), req)).Err, "")
	}
	got := a.Fake.Requests()
	if got[0].NoCalls || !got[1].NoCalls {
		t.Errorf("calls are refused: %v, %v; want false, true", got[0].NoCalls, got[1].NoCalls)
	}
	for _, req := range got {
		if len(req.Tools) != 2 || req.Tools[0].Name != "searchKnowledgeBase" || req.Tools[0].Description != "Find passages." || req.Tools[1].Name != "roll" {
			t.Fatalf("tools %+v", req.Tools)
		}
		schema := string(req.Tools[0].Parameters)
		for _, want := range []string{`"query"`, "What to look for.", `"topK"`, `"knowledgeBaseIds"`, `"required"`} {
			if !strings.Contains(schema, want) {
				t.Errorf("the schema lacks %s: %s", want, schema)
			}
		}
	}
}

// calling is a reply of an interim text and calls.
func calling(text string, calls ...llmtest.Call) llmtest.Reply {
	r := llmtest.Reply{Usage: llmtest.Usage{Prompt: 5, Completion: 3}}
	if text != "" {
		r.Parts = append(r.Parts, llmtest.Part{Text: text})
	}
	for _, c := range calls {
		r.Parts = append(r.Parts, llmtest.Part{Call: &c})
	}
	return r
}

func testCalls(t *testing.T, build factory) {
	tea := llmtest.Call{ID: "id-1", Name: "searchKnowledgeBase", Args: `{"query":"茶 <b> \"tea\""}`}
	bird := llmtest.Call{ID: "id-2", Name: "searchKnowledgeBase", Args: `{"query":"bird"}`}
	anon := func(c llmtest.Call) llmtest.Call { c.ID = ""; return c }
	pieces := func(c llmtest.Call) llmtest.Call { c.Pieces = 7; return c }
	with := func(r llmtest.Reply, change func(*llmtest.Reply)) llmtest.Reply { change(&r); return r }
	for _, tt := range []struct {
		name  string
		reply llmtest.Reply
		text  string
		calls int
	}{
		{"one", calling("", tea), "", 1},
		{"two behind a text", calling("I look.", tea, bird), "I look.", 2},
		{"in pieces", calling("", pieces(tea), pieces(bird)), "", 2},
		{"without ids", calling("", anon(tea), anon(bird)), "", 2},
		{"without ids and numbers", with(calling("", pieces(anon(tea)), anon(bird)), func(r *llmtest.Reply) { r.Index = llmtest.NoIndex }), "", 2},
		{"without numbers", with(calling("", pieces(tea), pieces(bird)), func(r *llmtest.Reply) { r.Index = llmtest.NoIndex }), "", 2},
		{"all with the number 0", with(calling("", tea, bird), func(r *llmtest.Reply) { r.Index = llmtest.AllZero }), "", 2},
		{"all with the number 0, no ids, in pieces", with(calling("", pieces(anon(tea)), pieces(anon(bird))), func(r *llmtest.Reply) { r.Index = llmtest.AllZero }), "", 2},
		{"one id for two", calling("", tea, with2(bird, "id-1")), "", 2},
		{"finished with stop", with(calling("", pieces(tea)), func(r *llmtest.Reply) { r.SaysStop = true }), "", 1},
		{"no end mark", with(calling("", pieces(tea)), func(r *llmtest.Reply) { r.End = llmtest.FinishOnly }), "", 1},
		{"bytes one at a time", with(calling("茶", pieces(tea)), func(r *llmtest.Reply) { r.Split = 1 }), "茶", 1},
		{"text between and behind", llmtest.Reply{Parts: []llmtest.Part{{Reasoning: "Hm."}, {Text: "a"}, {Call: &tea}, {Text: "b"}, {Call: &bird}, {Text: "c"}}}, "abc", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			a.Fake.Script(tt.reply)
			r := llmtest.Read(t, llm.Dependable(a.Provider.Name(), a.Provider).Stream(t.Context(), askWithTools("hi")))
			checkCode(t, r.Err, "")
			if r.Text != tt.text || r.Last.Finish != llm.FinishStop || len(r.Last.Calls) != tt.calls {
				t.Fatalf("text %q, finish %q, calls %+v", r.Text, r.Last.Finish, r.Last.Calls)
			}
			var ids []string
			for i, got := range r.Last.Calls {
				want := []llmtest.Call{tea, bird}[i]
				if got.Name != want.Name || got.Arguments != want.Args || got.ID == "" || slices.Contains(ids, got.ID) {
					t.Errorf("call %d is %+v, want %+v", i, got, want)
				}
				ids = append(ids, got.ID)
			}
			if r.Last.Echo == nil || r.Last.Echo.Provider != a.Provider.Name() {
				t.Errorf("echo %+v", r.Last.Echo)
			}
			// The fake checks the results that this request sends back.
			checkCode(t, llmtest.Read(t, a.Provider.Stream(t.Context(), answered(askWithTools("hi"), r))).Err, "")
		})
	}
}

func with2(c llmtest.Call, id string) llmtest.Call { c.ID = id; return c }

// answered is the request behind a reply with calls: the reply and a result for each.
func answered(req llm.Request, r llmtest.Result) llm.Request {
	req.Messages = append(slices.Clone(req.Messages), llm.Message{Role: llm.Assistant, Text: r.Text, Calls: r.Last.Calls, Echo: r.Last.Echo})
	for i, c := range r.Last.Calls {
		req.Messages = append(req.Messages, llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{CallID: c.ID, Name: c.Name, Text: fmt.Sprintf("<result n=\"%d\"/>", i)}})
	}
	return req
}

func testRound(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.Script(calling("I look.", llmtest.Call{ID: "a", Name: "searchKnowledgeBase", Args: `{"query":"x"}`}, llmtest.Call{Name: "roll", Args: `{}`}),
		calling("", llmtest.Call{ID: "b", Name: "roll", Args: `{}`}), llmtest.Say("Done."))
	req := askWithTools("hi")
	for range 2 {
		req = answered(req, llmtest.Read(t, a.Provider.Stream(t.Context(), req)))
	}
	req.NoCalls = true
	if r := llmtest.Read(t, a.Provider.Stream(t.Context(), req)); r.Text != "Done." || r.Err != nil {
		t.Errorf("%q, %v", r.Text, r.Err)
	}
	var got []string
	for _, m := range a.Fake.Requests()[2].Messages {
		line := m.Text
		for _, c := range m.Calls {
			line += " " + c.Name + c.Args
		}
		if m.Result != nil {
			line = "→ " + m.Result.Text
		}
		got = append(got, line)
	}
	want := `hi|I look. searchKnowledgeBase{"query":"x"} roll{}|→ <result n="0"/>|→ <result n="1"/>| roll{}|→ <result n="0"/>`
	if strings.Join(got, "|") != want {
		t.Errorf("arrived %s, want %s", strings.Join(got, "|"), want)
	}
}

func testForeignCalls(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.Always(llmtest.WantSignatures(func(llmtest.Request) llmtest.Reply { return llmtest.Say("Done.") }))
	req := askWithTools("hi")
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Text: "I look.", Echo: &llm.Echo{Provider: "another", Raw: json.RawMessage(`{"secret":1}`)},
			Calls: []llm.ToolCall{{ID: "x1", Name: "roll"}, {ID: "x2", Name: "roll", Arguments: `{"broken`}}},
		llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{CallID: "x1", Name: "roll", Text: "6"}},
		llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{CallID: "x2", Name: "roll", Text: "error"}})
	r := llmtest.Read(t, a.Provider.Stream(t.Context(), req))
	if llm.EchoRejected(r.Err) {
		if _, isGemini := a.Provider.(*gemini.Provider); isGemini && a.Provider.DefaultModel(t.Context()) == "gemini-flash-latest" {
			t.Error("the calls of another provider are refused for their signature")
		}
	} else {
		checkCode(t, r.Err, "")
	}
	if m := a.Fake.Requests()[0]; strings.Contains(string(m.Body), "secret") || len(m.Messages[1].Calls) != 2 || m.Messages[1].Text != "I look." {
		t.Errorf("arrived %+v", m.Messages)
	}
}

func testSignature(t *testing.T, build factory) {
	a := build(t, llm.NewKey("key-1"))
	n := 0
	a.Fake.Always(llmtest.WantSignatures(func(llmtest.Request) llmtest.Reply {
		n++
		return calling("", llmtest.Call{Name: "roll", Args: `{}`, Signature: fmt.Sprintf("\xff\x00signature %d+/", n)}, llmtest.Call{Name: "roll", Args: `{}`})
	}))
	if _, isGemini := a.Provider.(*gemini.Provider); !isGemini { // a signature is a text there
		a.Fake.Always(llmtest.WantSignatures(func(llmtest.Request) llmtest.Reply {
			n++
			return calling("", llmtest.Call{Name: "roll", Args: `{}`, Signature: fmt.Sprintf("c2ln+/%d", n), Pieces: 1}, llmtest.Call{Name: "roll", Args: `{}`})
		}))
	}
	req := askWithTools("hi")
	for range 3 {
		r := llmtest.Read(t, a.Provider.Stream(t.Context(), req))
		checkCode(t, r.Err, "")
		req = answered(req, r)
	}
	req.Messages[1].Echo.Raw = json.RawMessage(strings.ReplaceAll(string(req.Messages[1].Echo.Raw), "houghtSignature", "lost"))
	if _, isGemini := a.Provider.(*gemini.Provider); !isGemini {
		req.Messages[1].Echo = nil
	}
	n = len(a.Fake.Requests())
	r := llmtest.Read(t, llm.Dependable(a.Provider.Name(), a.Provider).Stream(t.Context(), req))
	checkCode(t, r.Err, fault.UpstreamBadAnswer)
	if !llm.EchoRejected(r.Err) || llm.ToolsUnsupported(r.Err) || len(a.Fake.Requests()) != n+1 {
		t.Errorf("%v after %d requests: a lost signature is not recognised", r.Err, len(a.Fake.Requests())-n)
	}
}

func testNoTools(t *testing.T, build factory) {
	for status, says := range map[int]string{
		400: "registry.ollama.ai/library/gemma:2b does not support tools",
		404: "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing",
		422: "`tool calling` is not supported with this model",
		500: "tools param requires --jinja flag",
		501: "Function calling is not enabled for models/gemma-3-27b-it",
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"), llm.NewKey("key-2"))
			a.Fake.Always(llmtest.WithoutTools(status, says, func(llmtest.Request) llmtest.Reply { return llmtest.Say("Hi.") }))
			model := llm.Dependable(a.Provider.Name(), a.Provider)
			fallback := script(answer("from another"))
			both := llm.Chain(quiet, llm.Link{Provider: "a", Generator: model}, llm.Link{Provider: "b", Generator: fallback})
			r := llmtest.Read(t, both.Stream(t.Context(), askWithTools("hi")))
			checkCode(t, r.Err, fault.UpstreamBadAnswer)
			if !llm.ToolsUnsupported(r.Err) || llm.EchoRejected(r.Err) || len(a.Fake.Requests()) != 1 || len(fallback.requests) != 0 {
				t.Errorf("%v after %d requests", r.Err, len(a.Fake.Requests()))
			}
			if r = llmtest.Read(t, model.Stream(t.Context(), llmtest.Ask("hi"))); r.Text != "Hi." || r.Err != nil {
				t.Errorf("without tools: %q, %v", r.Text, r.Err)
			}
		})
	}
	a := build(t, llm.NewKey("key-1"))
	for _, reply := range []llmtest.Reply{
		{Status: 400, Message: "messages[2]: a tool result belongs to no call"},
		{Status: 429, Message: "tools are not supported in your tier"},
		{Status: 400, Message: "this model does not support images"},
	} {
		a.Fake.Script(reply)
		if r := llmtest.Read(t, a.Provider.Stream(t.Context(), askWithTools("hi"))); r.Err == nil || llm.ToolsUnsupported(r.Err) {
			t.Errorf("%q counts as tools that are not supported: %v", reply.Message, r.Err)
		}
	}
}

func testTooManyCalls(t *testing.T, build factory) {
	roll := llmtest.Call{Name: "roll", Args: `{}`}
	big := llmtest.Call{Name: "roll", Args: `{"n":"` + strings.Repeat("x", llm.MaxArguments) + `"}`}
	cut := big
	cut.Pieces = 40
	for name, tt := range map[string]struct {
		reply llmtest.Reply
		code  fault.Code
	}{
		"sixteen":         {calling("", slices.Repeat([]llmtest.Call{roll}, 16)...), ""},
		"seventeen":       {calling("", slices.Repeat([]llmtest.Call{roll}, 17)...), fault.UpstreamBadAnswer},
		"large":           {calling("", big), fault.UpstreamBadAnswer},
		"large in pieces": {calling("", cut), fault.UpstreamBadAnswer},
		"nameless":        {calling("", llmtest.Call{Args: `{}`}), fault.UpstreamBadAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			a.Fake.Script(tt.reply)
			r := llmtest.Read(t, llm.Checked(a.Provider.Name(), a.Provider).Stream(t.Context(), askWithTools("hi")))
			checkCode(t, r.Err, tt.code)
		})
	}
}

func testUnaskedCalls(t *testing.T, build factory) {
	for _, noCalls := range []bool{false, true} {
		a := build(t, llm.NewKey("key-1"))
		a.Fake.Script(calling("", llmtest.Call{Name: "roll", Args: `{}`}), calling("Hi.", llmtest.Call{Name: "roll", Args: `{}`}))
		req := llmtest.Ask("hi")
		if noCalls {
			req = askWithTools("hi")
			req.NoCalls = true
		}
		model := llm.Checked(a.Provider.Name(), a.Provider)
		checkCode(t, llmtest.Read(t, model.Stream(t.Context(), req)).Err, fault.EmptyReply)
		if r := llmtest.Read(t, model.Stream(t.Context(), req)); r.Text != "Hi." || r.Err != nil || r.Last.Calls != nil || r.Last.Echo != nil {
			t.Errorf("%q, %v, calls %v", r.Text, r.Err, r.Last.Calls)
		}
	}
}
