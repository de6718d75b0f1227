package llm_test

import (
	"strings"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/gemini"
	"nodest/llm/llmtest"
	"nodest/llm/openai"
)

// adapter is what testConformance tests: a provider and the fake that it talks to.
type adapter struct {
	Provider llm.Provider
	Embedder llm.Embedder // nil where the adapter has none
	Fake     *llmtest.Fake
}

// factory makes a new adapter with a new fake. It arranges for the adapter's
// connections to be closed when the test ends.
type factory func(t testing.TB, keys ...llm.Key) adapter

// testConformance holds an adapter to the promises of package llm, one subtest for each.
func testConformance(t *testing.T, build factory) {
	t.Run("replies", func(t *testing.T) { testReplies(t, build) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, build) })
	t.Run("wrong address", func(t *testing.T) { testWrongAddress(t, build) })
	t.Run("pieces arrive as they are sent", func(t *testing.T) { testPieces(t, build) })
	t.Run("pieces arrive together in a crowd", func(t *testing.T) { testCrowd(t, build) })
	t.Run("code points cut anywhere", func(t *testing.T) { testSplits(t, build) })
	t.Run("breaking off closes the request", func(t *testing.T) { testBreak(t, build) })
	t.Run("ending the context closes the request", func(t *testing.T) { testCancel(t, build) })
	t.Run("deadline", func(t *testing.T) { testDeadline(t, build) })
	t.Run("keys change", func(t *testing.T) { testRotation(t, build) })
	t.Run("a key shows nowhere", func(t *testing.T) { testSecrecy(t, build) })
	t.Run("prompt", func(t *testing.T) { testPrompt(t, build) })
	t.Run("images", func(t *testing.T) { testImages(t, build) })
	t.Run("read twice", func(t *testing.T) { testTwice(t, build) })
	t.Run("no server", func(t *testing.T) { testNoServer(t, build) })
	t.Run("models", func(t *testing.T) { testModels(t, build) })
	t.Run("embeddings", func(t *testing.T) { testEmbeddings(t, build) })
}

// Both SDKs of Gemini keep the same promises: each is shown every trap, also thoughts in answers
// that generative-ai-go reads, which did not ask for any.
func TestGeminiConformance(t *testing.T) {
	for _, sdk := range []string{"generative-ai-go", "genai"} {
		t.Run(sdk, func(t *testing.T) {
			testConformance(t, func(t testing.TB, keys ...llm.Key) adapter {
				f := llmtest.NewGemini(t)
				p, err := gemini.New(keys, gemini.Options{Prefer: sdk, Model: "gemini-flash-latest", BaseURL: f.URL})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.Close)
				t.Cleanup(func() {
					for _, req := range f.Requests() {
						if strings.HasSuffix(req.Path, ":streamGenerateContent") && req.Transport != sdk {
							t.Errorf("%s went through %s", req.Path, req.Transport)
						}
					}
				})
				return adapter{Provider: p, Embedder: p.Embedder("", 0), Fake: f}
			})
		})
	}
}

func TestOpenAIConformance(t *testing.T) {
	for _, name := range []string{openai.OpenAI, openai.OpenRouter} {
		t.Run(name, func(t *testing.T) {
			testConformance(t, func(t testing.TB, keys ...llm.Key) adapter {
				f := llmtest.NewOpenAI(t)
				c, err := openai.New(keys, openai.Options{Name: name, BaseURL: f.URL})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				return adapter{Provider: c, Embedder: c.Embedder("", 0), Fake: f}
			})
		})
	}
}

func replyCases() []replyCase {
	hello := []llmtest.Part{{Text: "你好, "}, {Text: "Ana 👋🏽"}}
	return []replyCase{
		{name: "whole", reply: llmtest.Reply{Parts: hello, Usage: llmtest.Usage{Prompt: 11, Completion: 5, Cached: 3}}, text: "你好, Ana 👋🏽", finish: llm.FinishStop,
			usage: &llm.Usage{PromptTokens: 11, CompletionTokens: 5, CachedTokens: 3}},
		{name: "line ends of Windows", reply: llmtest.Reply{Parts: hello, CRLF: true}, text: "你好, Ana 👋🏽", finish: llm.FinishStop},
		{name: "no end mark", reply: llmtest.Reply{Parts: hello, End: llmtest.FinishOnly}, text: "你好, Ana 👋🏽", finish: llm.FinishStop},
		{name: "limit of tokens", reply: llmtest.Reply{Parts: hello, Finish: llmtest.Length}, text: "你好, Ana 👋🏽", finish: llm.FinishLength},
		{name: "chunk without content", reply: llmtest.Reply{Parts: []llmtest.Part{{Bare: true}, {Text: "a"}, {Bare: true}, {Text: "b"}}}, text: "ab", finish: llm.FinishStop},
		{name: "empty text", reply: llmtest.Reply{Parts: []llmtest.Part{{Text: ""}, {Text: "a"}}}, text: "a", finish: llm.FinishStop},
		{name: "no text at all", reply: llmtest.Reply{}, finish: llm.FinishStop},
		{name: "thoughts", reply: llmtest.Reply{Parts: []llmtest.Part{{Reasoning: "She greets me. "}, {Reasoning: "I wave."}, {Text: "Hi"}},
			Usage: llmtest.Usage{Prompt: 4, Completion: 9, Reasoning: 8}},
			text: "Hi", reasoning: "She greets me. I wave.", finish: llm.FinishStop, usage: &llm.Usage{PromptTokens: 4, CompletionTokens: 9}},
		{name: "thought signature", gemini: true, reply: llmtest.Reply{Parts: []llmtest.Part{{Text: "Hi"}, {Signature: true}, {Text: "!"}}}, text: "Hi!", finish: llm.FinishStop},
		{name: "thought signature only", gemini: true, reply: llmtest.Reply{Parts: []llmtest.Part{{Signature: true}}}, finish: llm.FinishStop},

		{name: "blocked, empty", reply: llmtest.Reply{Finish: llmtest.Safety}, code: fault.Blocked, stage: llm.StageReply},
		{name: "blocked after some text", reply: llmtest.Reply{Parts: hello, Finish: llmtest.Safety}, text: "你好, Ana 👋🏽", code: fault.Blocked, stage: llm.StageReply},
		{name: "recitation", gemini: true, reply: llmtest.Reply{Finish: "RECITATION"}, code: fault.Blocked, stage: llm.StageReply},
		{name: "prohibited content", gemini: true, reply: llmtest.Reply{Finish: "PROHIBITED_CONTENT"}, code: fault.Blocked, stage: llm.StageReply},
		{name: "blocklist", gemini: true, reply: llmtest.Reply{Finish: "BLOCKLIST"}, code: fault.Blocked, stage: llm.StageReply},
		{name: "personal data", gemini: true, reply: llmtest.Reply{Finish: "SPII"}, code: fault.Blocked, stage: llm.StageReply},
		{name: "language", gemini: true, reply: llmtest.Reply{Finish: "LANGUAGE"}, code: fault.Blocked, stage: llm.StageReply},
		{name: "malformed call", gemini: true, reply: llmtest.Reply{Parts: hello, Finish: "MALFORMED_FUNCTION_CALL"}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "prompt blocked", gemini: true, reply: llmtest.Reply{PromptBlock: "PROHIBITED_CONTENT"}, code: fault.Blocked, stage: llm.StagePrompt},
		{name: "prompt unsafe", gemini: true, reply: llmtest.Reply{PromptBlock: "SAFETY"}, code: fault.Blocked, stage: llm.StagePrompt},

		{name: "error in the stream", reply: llmtest.Reply{Parts: hello, End: llmtest.MidError}, text: "你好, Ana 👋🏽", code: fault.UpstreamDown},
		{name: "error at once", reply: llmtest.Reply{End: llmtest.MidError}, code: fault.UpstreamDown},
		{name: "truncated", reply: llmtest.Reply{Parts: hello, End: llmtest.Truncated}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "closed without a finish reason", gemini: true, reply: llmtest.Reply{Parts: hello, End: llmtest.MarkOnly}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "end mark without a finish reason", openai: true, reply: llmtest.Reply{Parts: hello, End: llmtest.MarkOnly}, text: "你好, Ana 👋🏽", finish: llm.FinishStop},
		{name: "connection cut", reply: llmtest.Reply{Parts: hello, End: llmtest.Cut}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "JSON breaks off", reply: llmtest.Reply{Parts: hello, End: llmtest.Garbage}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "a web page", reply: llmtest.Reply{HTML: true}, code: fault.UpstreamBadAnswer},
	}
}

type replyCase struct {
	name            string
	gemini, openai  bool // only there; neither: everywhere
	reply           llmtest.Reply
	text, reasoning string
	finish          llm.Finish
	usage           *llm.Usage
	code            fault.Code
	stage           string
}

func (tt replyCase) skip(a adapter) bool {
	_, isGemini := a.Provider.(*gemini.Provider)
	return tt.gemini && !isGemini || tt.openai && isGemini
}

func testReplies(t *testing.T, build factory) {
	for _, tt := range replyCases() {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			if tt.skip(a) {
				t.Skip("not in this provider's format")
			}
			a.Fake.Script(tt.reply)
			r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask("hi")))
			if r.Text != tt.text || r.Reasoning != tt.reasoning {
				t.Errorf("text %q, reasoning %q; want %q, %q", r.Text, r.Reasoning, tt.text, tt.reasoning)
			}
			checkCode(t, r.Err, tt.code)
			if r.Last.Finish != tt.finish {
				t.Errorf("finish %q, want %q", r.Last.Finish, tt.finish)
			}
			if tt.stage != "" && fault.Public(r.Err).Details["stage"] != tt.stage {
				t.Errorf("stage %v, want %s", fault.Public(r.Err).Details["stage"], tt.stage)
			}
			if tt.usage != nil {
				checkUsage(t, r.Usage, *tt.usage)
			}
			if n := len(a.Fake.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func checkCode(t testing.TB, err error, code fault.Code) {
	t.Helper()
	switch {
	case code == "" && err != nil:
		t.Errorf("error %v, want none", err)
	case code != "" && err == nil:
		t.Errorf("no error, want %s", code)
	case code != "" && !fault.Is(err, code):
		t.Errorf("error %v, want %s", err, code)
	}
}

func checkUsage(t testing.TB, got *llm.Usage, want llm.Usage) {
	t.Helper()
	if got == nil {
		t.Error("no usage")
		return
	}
	g := *got
	if g.CostUSD = nil; g != want {
		t.Errorf("usage %+v, want %+v", g, want)
	}
}

func testRefusals(t *testing.T, build factory) {
	tests := []struct {
		name  string
		reply llmtest.Reply
		code  fault.Code
		after time.Duration
	}{
		{"400", llmtest.Fail(400), fault.UpstreamBadAnswer, 0},
		{"401", llmtest.Fail(401), fault.UpstreamAuth, 0},
		{"402", llmtest.Fail(402), fault.UpstreamQuota, 0},
		{"403", llmtest.Fail(403), fault.UpstreamAuth, 0},
		{"404", llmtest.Fail(404), fault.UpstreamBadAnswer, 0},
		{"408", llmtest.Fail(408), fault.UpstreamTimeout, 0},
		{"413", llmtest.Fail(413), fault.ContextTooLarge, 0},
		{"429 with Retry-After", llmtest.Reply{Status: 429, RetryAfter: 17 * time.Second}, fault.UpstreamRate, 17 * time.Second},
		{"429 without", llmtest.Fail(429), fault.UpstreamRate, 0},
		{"500", llmtest.Fail(500), fault.UpstreamDown, 0},
		{"502", llmtest.Fail(502), fault.UpstreamDown, 0},
		{"503 with Retry-After", llmtest.Reply{Status: 503, RetryAfter: 5 * time.Second}, fault.UpstreamDown, 5 * time.Second},
		{"503, asked once", llmtest.Fail(503), fault.UpstreamDown, 0},
		{"a redirect is not followed", llmtest.Fail(307), fault.UpstreamBadAnswer, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			a.Fake.Script(tt.reply)
			r := llmtest.Read(t, a.Provider.Stream(t.Context(), llmtest.Ask("hi")))
			checkCode(t, r.Err, tt.code)
			e := fault.Public(r.Err)
			if llm.ProviderStatus(r.Err) != tt.reply.Status || e.RetryAfter != tt.after {
				t.Errorf("status %d, retry after %v; want %d, %v", llm.ProviderStatus(r.Err), e.RetryAfter, tt.reply.Status, tt.after)
			}
			if e.Details["provider"] != a.Provider.Name() {
				t.Errorf("details.provider = %v", e.Details["provider"])
			}
			if n := len(a.Fake.Requests()); n != 1 {
				t.Errorf("%d requests, want 1: retrying is not the adapter's business", n)
			}
		})
	}
}

// testWrongAddress shows that what answers at a wrong address is asked once, and that
// the message tells what to check.
func testWrongAddress(t *testing.T, build factory) {
	for _, tt := range []struct {
		name  string
		reply llmtest.Reply
		says  string
	}{
		{"a web page", llmtest.Reply{HTML: true}, " sent a web page instead of an answer; check the base URL"},
		{"a redirect", llmtest.Reply{Status: 302, Location: "https://Login.example/secret/key-1?next=/v1"}, " redirects to https://Login.example (HTTP 302); check the base URL"},
		{"a redirect to another path", llmtest.Reply{Status: 308, Location: "/v1/"}, " (HTTP 308); check the base URL"},
		{"a redirect to nowhere", llmtest.Fail(307), " answers with a redirect (HTTP 307); check the base URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			a.Fake.Always(func(llmtest.Request) llmtest.Reply { return tt.reply })
			r := llmtest.Read(t, llm.WithRetry(a.Provider).Stream(t.Context(), llmtest.Ask("hi")))
			checkCode(t, r.Err, fault.UpstreamBadAnswer)
			e := fault.Public(r.Err)
			if !strings.Contains(e.Message, " at http://127.0.0.1:") || !strings.Contains(e.Message, tt.says) || e.Retry() != "no" {
				t.Errorf("%q, retry %s; want %q", e.Message, e.Retry(), tt.says)
			}
			if n := len(a.Fake.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}
