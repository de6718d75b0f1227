package llmtest

import (
	"context"
	"fmt"
	"iter"
	"log"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"nodest/fault"
	"nodest/llm"
)

// Adapter is what Run tests: a provider and the fake that it talks to.
type Adapter struct {
	Provider llm.Provider
	Embedder llm.Embedder // nil where the adapter has none
	Fake     *Fake
}

// Factory makes a new adapter with a new fake. It arranges for the adapter's
// connections to be closed when the test ends.
type Factory func(t testing.TB, keys ...llm.Key) Adapter

// Run holds an adapter to the promises of package llm, one subtest for each.
func Run(t *testing.T, build Factory) {
	t.Run("replies", func(t *testing.T) { testReplies(t, build) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, build) })
	t.Run("wrong address", func(t *testing.T) { testWrongAddress(t, build) })
	t.Run("pieces arrive as they are sent", func(t *testing.T) { testPieces(t, build) })
	t.Run("code points cut anywhere", func(t *testing.T) { testSplits(t, build) })
	t.Run("breaking off closes the request", func(t *testing.T) { testBreak(t, build) })
	t.Run("ending the context closes the request", func(t *testing.T) { testCancel(t, build) })
	t.Run("deadline", func(t *testing.T) { testDeadline(t, build) })
	t.Run("keys change", func(t *testing.T) { testRotation(t, build) })
	t.Run("a key shows nowhere", func(t *testing.T) { testSecrecy(t, build) })
	t.Run("prompt", func(t *testing.T) { testPrompt(t, build) })
	t.Run("read twice", func(t *testing.T) { testTwice(t, build) })
	t.Run("no server", func(t *testing.T) { testNoServer(t, build) })
	t.Run("models", func(t *testing.T) { testModels(t, build) })
	t.Run("embeddings", func(t *testing.T) { testEmbeddings(t, build) })
}

// Result is a reply that was read to its end.
type Result struct {
	Text, Reasoning string
	Last            llm.Chunk // the chunk with Last set
	Usage           *llm.Usage
	Err             error
	Chunks          int
}

// Read reads a reply to its end and checks the form of the sequence.
func Read(t testing.TB, seq iter.Seq2[llm.Chunk, error]) Result {
	t.Helper()
	var r Result
	for c, err := range seq {
		if r.Err != nil || r.Last.Last {
			t.Errorf("something follows the end of the reply: %+v, %v", c, err)
		}
		if err != nil {
			r.Err = err
			continue
		}
		r.Chunks++
		r.Text += c.Text
		r.Reasoning += c.Reasoning
		if c.Usage != nil {
			r.Usage = c.Usage
		}
		if c.Last {
			r.Last = c
		}
	}
	if r.Err == nil && !r.Last.Last {
		t.Error("the reply has neither a last chunk nor an error")
	}
	return r
}

// Ask is a small prompt.
func Ask(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: llm.User, Text: text}}}
}

func replyCases() []replyCase {
	hello := []Part{{Text: "你好, "}, {Text: "Ana 👋🏽"}}
	return []replyCase{
		{name: "whole", reply: Reply{Parts: hello, Usage: Usage{Prompt: 11, Completion: 5, Cached: 3}}, text: "你好, Ana 👋🏽", finish: llm.FinishStop,
			usage: &llm.Usage{PromptTokens: 11, CompletionTokens: 5, CachedTokens: 3}},
		{name: "line ends of Windows", reply: Reply{Parts: hello, CRLF: true}, text: "你好, Ana 👋🏽", finish: llm.FinishStop},
		{name: "no end mark", reply: Reply{Parts: hello, End: FinishOnly}, text: "你好, Ana 👋🏽", finish: llm.FinishStop},
		{name: "limit of tokens", reply: Reply{Parts: hello, Finish: Length}, text: "你好, Ana 👋🏽", finish: llm.FinishLength},
		{name: "chunk without content", reply: Reply{Parts: []Part{{Bare: true}, {Text: "a"}, {Bare: true}, {Text: "b"}}}, text: "ab", finish: llm.FinishStop},
		{name: "empty text", reply: Reply{Parts: []Part{{Text: ""}, {Text: "a"}}}, text: "a", finish: llm.FinishStop},
		{name: "no text at all", reply: Reply{}, finish: llm.FinishStop},
		{name: "thoughts", reply: Reply{Parts: []Part{{Reasoning: "She greets me. "}, {Reasoning: "I wave."}, {Text: "Hi"}},
			Usage: Usage{Prompt: 4, Completion: 9, Reasoning: 8}},
			text: "Hi", reasoning: "She greets me. I wave.", finish: llm.FinishStop, usage: &llm.Usage{PromptTokens: 4, CompletionTokens: 9}},
		{name: "thought signature", gemini: true, reply: Reply{Parts: []Part{{Text: "Hi"}, {Signature: true}, {Text: "!"}}}, text: "Hi!", finish: llm.FinishStop},
		{name: "thought signature only", gemini: true, reply: Reply{Parts: []Part{{Signature: true}}}, finish: llm.FinishStop},

		{name: "blocked, empty", reply: Reply{Finish: Safety}, code: fault.Blocked, stage: llm.StageReply},
		{name: "blocked after some text", reply: Reply{Parts: hello, Finish: Safety}, text: "你好, Ana 👋🏽", code: fault.Blocked, stage: llm.StageReply},
		{name: "recitation", gemini: true, reply: Reply{Finish: Recitation}, code: fault.Blocked, stage: llm.StageReply},
		{name: "prohibited content", gemini: true, reply: Reply{Finish: Prohibited}, code: fault.Blocked, stage: llm.StageReply},
		{name: "blocklist", gemini: true, reply: Reply{Finish: Blocklist}, code: fault.Blocked, stage: llm.StageReply},
		{name: "personal data", gemini: true, reply: Reply{Finish: SPII}, code: fault.Blocked, stage: llm.StageReply},
		{name: "language", gemini: true, reply: Reply{Finish: Language}, code: fault.Blocked, stage: llm.StageReply},
		{name: "malformed call", gemini: true, reply: Reply{Parts: hello, Finish: Malformed}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "prompt blocked", gemini: true, reply: Reply{PromptBlock: "PROHIBITED_CONTENT"}, code: fault.Blocked, stage: llm.StagePrompt},
		{name: "prompt unsafe", gemini: true, reply: Reply{PromptBlock: "SAFETY"}, code: fault.Blocked, stage: llm.StagePrompt},

		{name: "error in the stream", reply: Reply{Parts: hello, End: MidError}, text: "你好, Ana 👋🏽", code: fault.UpstreamDown},
		{name: "error at once", reply: Reply{End: MidError}, code: fault.UpstreamDown},
		{name: "truncated", reply: Reply{Parts: hello, End: Truncated}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "closed without a finish reason", gemini: true, reply: Reply{Parts: hello, End: MarkOnly}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "end mark without a finish reason", openai: true, reply: Reply{Parts: hello, End: MarkOnly}, text: "你好, Ana 👋🏽", finish: llm.FinishStop},
		{name: "connection cut", reply: Reply{Parts: hello, End: Cut}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "JSON breaks off", reply: Reply{Parts: hello, End: Garbage}, text: "你好, Ana 👋🏽", code: fault.UpstreamBadAnswer},
		{name: "a web page", reply: Reply{HTML: true}, code: fault.UpstreamBadAnswer},
	}
}

type replyCase struct {
	name            string
	gemini, openai  bool // only there; neither: everywhere
	reply           Reply
	text, reasoning string
	finish          llm.Finish
	usage           *llm.Usage
	code            fault.Code
	stage           string
}

func (tt replyCase) skip(a Adapter) bool {
	_, isGemini := a.Fake.render.(gemini)
	return tt.gemini && !isGemini || tt.openai && isGemini
}

func testReplies(t *testing.T, build Factory) {
	for _, tt := range replyCases() {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			if tt.skip(a) {
				t.Skip("not in this provider's format")
			}
			a.Fake.Script(tt.reply)
			r := Read(t, a.Provider.Stream(t.Context(), Ask("hi")))
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

func testRefusals(t *testing.T, build Factory) {
	tests := []struct {
		name  string
		reply Reply
		code  fault.Code
		after time.Duration
	}{
		{"400", Fail(400), fault.UpstreamBadAnswer, 0},
		{"401", Fail(401), fault.UpstreamAuth, 0},
		{"402", Fail(402), fault.UpstreamQuota, 0},
		{"403", Fail(403), fault.UpstreamAuth, 0},
		{"404", Fail(404), fault.UpstreamBadAnswer, 0},
		{"408", Fail(408), fault.UpstreamTimeout, 0},
		{"413", Fail(413), fault.ContextTooLarge, 0},
		{"429 with Retry-After", Reply{Status: 429, RetryAfter: 17 * time.Second}, fault.UpstreamRate, 17 * time.Second},
		{"429 without", Fail(429), fault.UpstreamRate, 0},
		{"500", Fail(500), fault.UpstreamDown, 0},
		{"502", Fail(502), fault.UpstreamDown, 0},
		{"503 with Retry-After", Reply{Status: 503, RetryAfter: 5 * time.Second}, fault.UpstreamDown, 5 * time.Second},
		{"503, asked once", Fail(503), fault.UpstreamDown, 0},
		{"a redirect is not followed", Fail(307), fault.UpstreamBadAnswer, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			a.Fake.Script(tt.reply)
			r := Read(t, a.Provider.Stream(t.Context(), Ask("hi")))
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
func testWrongAddress(t *testing.T, build Factory) {
	for _, tt := range []struct {
		name  string
		reply Reply
		says  string
	}{
		{"a web page", Reply{HTML: true}, " sent a web page instead of an answer; check the base URL"},
		{"a redirect", Reply{Status: 302, Location: "https://Login.example/secret/key-1?next=/v1"}, " redirects to https://Login.example (HTTP 302); check the base URL"},
		{"a redirect to another path", Reply{Status: 308, Location: "/v1/"}, " (HTTP 308); check the base URL"},
		{"a redirect to nowhere", Fail(307), " answers with a redirect (HTTP 307); check the base URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			a.Fake.Always(func(Request) Reply { return tt.reply })
			r := Read(t, llm.WithRetry(a.Provider, llm.Retry{Base: time.Millisecond}).Stream(t.Context(), Ask("hi")))
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

// testPieces shows that nothing is held back: each piece is read before the fake
// sends the next one.
func testPieces(t *testing.T, build Factory) {
	a := build(t, llm.NewKey("key-1"))
	gate := make(chan struct{}, 1)
	reply := Say("one ", "two ", "three")
	reply.Gate = gate
	a.Fake.Script(reply)
	gate <- struct{}{}
	var text string
	for c, err := range a.Provider.Stream(t.Context(), Ask("count")) {
		if err != nil {
			t.Fatal(err)
		}
		if text += c.Text; c.Text != "" {
			gate <- struct{}{}
		}
	}
	if text != "one two three" {
		t.Errorf("text %q", text)
	}
}

func testSplits(t *testing.T, build Factory) {
	for _, split := range []int{1, 2, 3, 5, 7, 64} {
		t.Run(fmt.Sprint(split), func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			want := "茶香四溢，👩‍👩‍👧 says “привет”\n\\\"end\u2028"
			reply := Say(strings.SplitAfter(want, "，")...)
			reply.Split = split
			a.Fake.Script(reply)
			for c, err := range a.Provider.Stream(t.Context(), Ask("hi")) {
				if err != nil || strings.ContainsRune(c.Text, '\uFFFD') {
					t.Errorf("chunk %q is damaged: %v", c.Text, err)
				}
			}
			a.Fake.Script(reply)
			if r := Read(t, a.Provider.Stream(t.Context(), Ask("hi"))); r.Text != want || r.Err != nil {
				t.Errorf("text %q, %v; want %q", r.Text, r.Err, want)
			}
		})
	}
}

// patience is how long a test waits for something that must happen.
const patience = 60 * time.Second

// waitClosed waits until the fake sees that its client has gone away.
func waitClosed(t testing.TB, f *Fake) Closed {
	t.Helper()
	select {
	case c := <-f.Closed():
		return c
	case <-time.After(patience):
		t.Fatal("the provider's request was never closed")
	}
	return Closed{}
}

func testBreak(t *testing.T, build Factory) {
	a := build(t, llm.NewKey("key-1"))
	reply := Say("one")
	reply.End = Stall
	a.Fake.Script(reply)
	for _, err := range a.Provider.Stream(t.Context(), Ask("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	start := time.Now()
	t.Logf("closed %v after the loop was left (aim: 100 ms)", waitClosed(t, a.Fake).At.Sub(start))
}

func testCancel(t *testing.T, build Factory) {
	for _, when := range []string{"before the first piece", "in the middle"} {
		t.Run(when, func(t *testing.T) {
			a := build(t, llm.NewKey("key-1"))
			reply := Reply{End: Stall}
			if when == "in the middle" {
				reply.Parts = []Part{{Text: "one"}}
			}
			a.Fake.Script(reply)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var at time.Time
			stop := func() {
				at = time.Now()
				cancel()
			}
			done := make(chan struct{})
			if when != "in the middle" {
				go func() {
					defer close(done)
					select {
					case <-a.Fake.Arrived():
					case <-time.After(patience):
						t.Error("no request arrived")
					}
					stop()
				}()
			} else {
				close(done)
			}
			var last error
			for c, err := range a.Provider.Stream(ctx, Ask("hi")) {
				if last = err; c.Text != "" {
					stop()
				}
			}
			<-done
			checkCode(t, last, fault.Cancelled)
			t.Logf("closed %v after the context ended (aim: 100 ms)", waitClosed(t, a.Fake).At.Sub(at))
		})
	}
}

func testDeadline(t *testing.T, build Factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.Script(Reply{End: Stall})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := Read(t, a.Provider.Stream(ctx, Ask("hi")))
	checkCode(t, r.Err, fault.UpstreamTimeout)
}

func testRotation(t *testing.T, build Factory) {
	for _, status := range []int{401, 403, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			a := build(t, llm.NewKey("bad"), llm.NewKey("good"))
			a.Fake.ForKey("bad", Fail(status))
			r := Read(t, a.Provider.Stream(t.Context(), Ask("hi")))
			checkCode(t, r.Err, "")
			var used []string
			for _, req := range a.Fake.Requests() {
				used = append(used, req.Key)
			}
			if fmt.Sprint(used) != "[bad good]" {
				t.Errorf("keys used: %v", used)
			}
		})
	}
	t.Run("400 is not the key's fault", func(t *testing.T) {
		a := build(t, llm.NewKey("bad"), llm.NewKey("good"))
		a.Fake.ForKey("bad", Fail(400))
		r := Read(t, a.Provider.Stream(t.Context(), Ask("hi")))
		checkCode(t, r.Err, fault.UpstreamBadAnswer)
		if n := len(a.Fake.Requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
	t.Run("not after text was delivered", func(t *testing.T) {
		a := build(t, llm.NewKey("first"), llm.NewKey("second"))
		a.Fake.ForKey("first", Reply{Parts: []Part{{Text: "half"}}, End: MidError})
		r := Read(t, a.Provider.Stream(t.Context(), Ask("hi")))
		checkCode(t, r.Err, fault.UpstreamDown)
		if n := len(a.Fake.Requests()); n != 1 || r.Text != "half" {
			t.Errorf("%d requests, text %q", n, r.Text)
		}
	})
}

// testSecrecy lets every way of failing happen with a key that must not show, and
// with providers that quote it.
func testSecrecy(t *testing.T, build Factory) {
	const secret = "sk-7Zq-secret"
	const prompt = "my diary of today"
	var seen strings.Builder
	log.SetOutput(&seen) // an SDK may write there
	defer log.SetOutput(os.Stderr)
	record := func(err error) {
		fmt.Fprintf(&seen, "%v %+v %#v\n", err, err, fault.Public(err))
		slog.New(slog.NewTextHandler(&seen, &slog.HandlerOptions{Level: slog.LevelDebug})).Error("failed", "err", err)
	}
	replies := []Reply{{End: Cut}, {End: Truncated}, {End: Garbage}, {HTML: true}, {Finish: Safety},
		{End: MidError, Message: "bad key " + secret + " for " + prompt}}
	for _, status := range []int{307, 400, 401, 402, 403, 404, 429, 500, 503} {
		replies = append(replies, Reply{Status: status, Message: "bad key " + secret + " for " + prompt, Reason: secret})
	}
	for _, reply := range replies {
		a := build(t, llm.NewKey(secret))
		a.Fake.Script(reply)
		r := Read(t, a.Provider.Stream(t.Context(), Ask(prompt)))
		if r.Err == nil {
			t.Errorf("%+v gave no error", reply)
			continue
		}
		record(r.Err)
		if reply.Status != 0 {
			reply.Message = "bad key " + secret // the list is asked for without a prompt to quote
			a.Fake.Always(func(Request) Reply { return reply })
			if _, err := a.Provider.Models(t.Context()); err != nil {
				record(err)
			}
			if a.Embedder != nil {
				reply.Message += " for " + prompt
				_, err := a.Embedder.Embed(t.Context(), llm.Query, []string{prompt})
				record(err)
			}
		}
		for _, req := range a.Fake.Requests() {
			if strings.Contains(req.Path+req.Query, secret) {
				t.Error("the key is in the address")
			}
			if req.Key != secret {
				t.Errorf("the key arrived as %q", req.Key)
			}
		}
		fmt.Fprintf(&seen, "%v %+v\n", a.Provider, a.Embedder)
	}
	for _, word := range []string{secret, "7Zq", prompt} {
		if at := strings.Index(seen.String(), word); at >= 0 {
			t.Errorf("%q shows in: …%s…", word, seen.String()[max(0, at-120):min(seen.Len(), at+60)])
		}
	}
}

func testPrompt(t *testing.T, build Factory) {
	a := build(t, llm.NewKey("key-1"))
	temperature, topP := 1.25, 0.5
	r := Read(t, a.Provider.Stream(t.Context(), llm.Request{
		Messages: []llm.Message{
			{Role: llm.System, Text: "You are Mei."},
			{Role: llm.Assistant, Text: "*bows* <b>你好</b> & welcome"},
			{Role: llm.User, Text: "hi"},
		},
		Temperature: &temperature, TopP: &topP, MaxTokens: 321, Stop: []string{"\nUser:"},
	}))
	checkCode(t, r.Err, "")
	req := a.Fake.Requests()[0]
	if req.Model != a.Provider.DefaultModel() {
		t.Errorf("model %q, want the default", req.Model)
	}
	var all strings.Builder
	fmt.Fprintf(&all, "%s|", req.System)
	for _, m := range req.Messages {
		fmt.Fprintf(&all, "%s: %s|", m.Role, m.Text)
	}
	for _, want := range []string{"You are Mei.", "*bows* <b>你好</b> & welcome|user: hi|"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the prompt %q lacks %q", all.String(), want)
		}
	}
	body := string(req.Body)
	for _, want := range []string{"1.25", "0.5", "321", `\nUser:`} {
		if !strings.Contains(body, want) {
			t.Errorf("the request lacks %s: %s", want, body)
		}
	}
}

func testTwice(t *testing.T, build Factory) {
	a := build(t, llm.NewKey("key-1"))
	seq := a.Provider.Stream(t.Context(), Ask("hi"))
	if n := len(a.Fake.Requests()); n != 0 {
		t.Errorf("%d requests before the sequence is read", n)
	}
	if one, two := Read(t, seq), Read(t, seq); one.Text != two.Text || len(a.Fake.Requests()) != 2 {
		t.Errorf("%q and %q with %d requests", one.Text, two.Text, len(a.Fake.Requests()))
		return
	}
	all := a.Fake.Requests()
	t.Logf("connection used again: %v", all[0].From == all[1].From)
}

func testNoServer(t *testing.T, build Factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.server.Close()
	r := Read(t, a.Provider.Stream(t.Context(), Ask("hi")))
	checkCode(t, r.Err, fault.UpstreamDown)
	if r.Err != nil && strings.Contains(r.Err.Error(), "key-1") {
		t.Error("the key shows")
	}
}

func testModels(t *testing.T, build Factory) {
	a := build(t, llm.NewKey("key-1"))
	a.Fake.SetModels("chat-1", "text-embedding-1")
	models, err := a.Provider.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(models) != 2 || models[0].ID != "chat-1" || !models[0].Generates || !models[1].Embeds || models[1].Generates {
		t.Errorf("models %+v", models)
	}
}

func testEmbeddings(t *testing.T, build Factory) {
	texts := []string{"茶", "tea", "coffee"}
	for range 300 {
		texts = append(texts, fmt.Sprintf("text %d", len(texts)))
	}
	a := build(t, llm.NewKey("bad"), llm.NewKey("good"))
	if a.Embedder == nil {
		t.Skip("no embedder")
	}
	a.Fake.ForKey("bad", Fail(401))
	got, err := a.Embedder.Embed(t.Context(), llm.Passage, texts)
	if err != nil {
		t.Fatal(err)
	}
	if got.Dim == 0 || got.Dim != a.Embedder.Dim() || got.Model != a.Embedder.ModelID() || len(got.Vectors) != len(texts) {
		t.Fatalf("%d vectors of %d numbers by %q", len(got.Vectors), got.Dim, got.Model)
	}
	for i, v := range got.Vectors {
		want := make([]float32, len(v))
		fill(want, texts[i])
		for j := range v {
			if math.Abs(float64(v[j]-want[j])) > 1e-6 {
				t.Fatalf("vector %d is not that of its text", i)
			}
		}
	}
	if n := len(a.Fake.Requests()); n < 4 {
		t.Errorf("%d requests: the texts were not split into batches", n)
	}
	t.Run("one vector is missing", func(t *testing.T) {
		a := build(t, llm.NewKey("key-1"))
		a.Fake.LoseVectors()
		_, err := a.Embedder.Embed(t.Context(), llm.Query, []string{"a", "b"})
		checkCode(t, err, fault.UpstreamBadAnswer)
	})
	t.Run("no texts", func(t *testing.T) {
		got, err := build(t, llm.NewKey("key-1")).Embedder.Embed(t.Context(), llm.Query, nil)
		if err != nil || len(got.Vectors) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
}
