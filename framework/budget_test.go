package framework

import (
	"fmt"
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/fault"
)

// Under every budget, either the request fits or the error names the parts that do
// not.
func TestEveryBudgetIsKept(t *testing.T) {
	for context := 1; context < 700; context++ {
		in := sample()
		in.Options.Context = context
		p, err := Build(t.Context(), in)
		if err != nil {
			if e := fault.Public(err); e.Code != fault.ContextTooLarge || len(e.Details["parts"].([]largePart)) == 0 {
				t.Fatalf("context %d: %v", context, err)
			}
			continue
		}
		sum := 0
		for _, e := range p.Entries {
			sum += e.Tokens
		}
		if p.Tokens > context || p.Tokens != sum || p.Budget != context {
			t.Fatalf("context %d: %d tokens, entries %d, budget %d", context, p.Tokens, sum, p.Budget)
		}
		for _, want := range []string{"Before.", "Mara knows Sam.", "Keep it short.", "How is the engine?"} {
			if !strings.Contains(texts(p), want) {
				t.Fatalf("context %d: %q was dropped", context, want)
			}
		}
	}
}

func TestBudgetKeepsRoomForTheReply(t *testing.T) {
	in := Input{History: chatOf(50), User: Message{Text: "hi"}, Options: Options{Context: 400, Reserve: 150}}
	p := build(t, in)
	if p.Budget != 250 || p.Reserve != 150 || p.Tokens > 250 || p.Tokens < 200 {
		t.Errorf("budget %d, reserve %d, %d tokens", p.Budget, p.Reserve, p.Tokens)
	}
	in.Options.Reserve = 1000
	if _, err := Build(t.Context(), in); !fault.Is(err, fault.ContextTooLarge) {
		t.Errorf("a reserve above the context: %v", err)
	}
}

func TestNothingOfTheChatFits(t *testing.T) {
	in := Input{History: []Message{{ID: "a", Role: "user", Text: strings.Repeat("long ", 500)}}, User: Message{Text: "hi"}, Options: Options{Context: 300}}
	p := build(t, in)
	if len(p.Warnings) != 1 || p.Warnings[0].Code != "history_dropped" {
		t.Errorf("warnings = %+v", p.Warnings)
	}
}

// further adds two messages to the chat.
func addTurn(in *Input) {
	n := len(in.History)
	in.History = append(in.History,
		Message{Role: "user", Text: fmt.Sprintf("question %d", n)}, Message{Role: "assistant", Text: fmt.Sprintf("answer %d", n)})
	in.User.Text = fmt.Sprintf("next %d", n)
}

// A further turn computes only its new text, whatever the length of the chat.
func TestAFurtherTurnComputesOnlyItsNewText(t *testing.T) {
	for _, scan := range []int{20, -1} {
		type work struct{ entries, bytes int } // that the cache did not have
		cost := map[int]work{}
		for _, length := range []int{100, 2000} {
			in := sample()
			in.History = chatOf(length)
			in.Options.ScanDepth, in.Options.Tokenizer = scan, tokenizerEstimate
			in.Cache = NewCache(0)
			in.Compiled = Compile(in.Sources)
			build(t, in)
			entries, bytes := in.Cache.kept.Size()
			addTurn(&in)
			build(t, in)
			after, bytesAfter := in.Cache.kept.Size()
			cost[length] = work{after - entries, bytesAfter - bytes}
		}
		short, long := cost[100], cost[2000]
		// Three messages are new, and nothing in the frame repeats them.
		if short.entries != 6 || long.entries != 6 {
			t.Errorf("scan %d: a turn on 100 messages: %+v, on 2000: %+v; want 3 texts counted and 3 searched", scan, short, long)
		}
		if long.bytes > short.bytes+40 {
			t.Errorf("scan %d: a turn on 100 messages: %+v, on 2000: %+v", scan, short, long)
		}
	}
}

// With a budget, the work does not grow with the length of the chat, even with an
// empty cache.
func TestBudgetBoundsTheWork(t *testing.T) {
	cost := map[int]int{}
	for _, length := range []int{400, 20_000} {
		in := Input{History: chatOf(length), User: Message{Text: "hi"}, Options: Options{Context: 1000}, Cache: NewCache(0)}
		p := build(t, in)
		cost[length], _ = in.Cache.kept.Size()
		if d := p.Dropped[len(p.Dropped)-1]; d.Reason != DropBudget || d.ID != in.History[0].ID || d.Count+len(p.Messages) < length {
			t.Errorf("dropped %+v", d)
		}
	}
	if cost[400] < cost[20_000] {
		t.Errorf("results for chats of 400 and 20,000 messages: %v", cost)
	}
}

func TestTokenizerFor(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-4o": "o200k_base", "gpt-4o-mini": "o200k_base", "openai/gpt-4o": "o200k_base", "gpt-4.1-nano": "o200k_base",
		"gpt-5": "o200k_base", "o3-mini": "o200k_base", "o1": "o200k_base", "gpt-4": "cl100k_base", "gpt-4-turbo": "cl100k_base",
		"openai/gpt-3.5-turbo": "cl100k_base", "ft:gpt-4o-2024": "o200k_base",
		"gemini-2.0-flash-exp": "estimate", "llama3.1:8b": "estimate", "": "estimate", "openrouter/auto": "estimate", "o1x": "estimate",
	} {
		if got := TokenizerFor("openai", model); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
	if got := TokenizerFor("gemini", "gpt-4o"); got != "estimate" {
		t.Errorf("a tokenizer of OpenAI for Gemini: %s", got)
	}
}

func TestTokensAreCounted(t *testing.T) {
	for text, want := range map[string]int{"": 0, "hello world": 2, "你好，世界": 3} {
		if got := CountTokens("o200k_base", text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
	if got := CountTokens("cl100k_base", "hello world"); got != 2 {
		t.Errorf("cl100k_base: %d", got)
	}
	if got := CountTokens("no such tokenizer", "abcdefgh"); got != 2 {
		t.Errorf("estimate: %d", got)
	}
	p := build(t, Input{User: Message{Text: "hi"}, Options: Options{Tokenizer: "o200k_base"}})
	if p.Tokenizer != "o200k_base" || p.Estimate {
		t.Errorf("counted by %s, estimate %v", p.Tokenizer, p.Estimate)
	}
	if p = build(t, Input{User: Message{Text: "hi"}}); p.Tokenizer != tokenizerEstimate || !p.Estimate {
		t.Errorf("counted by %s, estimate %v", p.Tokenizer, p.Estimate)
	}
}

// Texts are cut before they reach the tokenizer, because its time grows with the
// square of a run without breaks.
func TestLongTextsAreCutBeforeTokenizing(t *testing.T) {
	for name, text := range map[string]string{
		"no break": strings.Repeat("a", 50_000), "chinese": strings.Repeat("字", 20_000),
		"words": strings.Repeat("some words ", 2_000), "spaces": strings.Repeat(" ", 20_000),
	} {
		for rest := text; rest != ""; {
			n := cut(rest)
			if n < 1 || n > longestPiece || !strings.HasPrefix(text, "字") && n == 0 {
				t.Fatalf("%s: a piece of %d bytes", name, n)
			}
			if name == "chinese" && n%3 != 0 {
				t.Fatal("a code point was cut")
			}
			rest = rest[n:]
		}
	}
	words := strings.Repeat("some words ", 2_000)
	whole := newCounter("o200k_base", nil)
	n, err := whole.codec.Count(words)
	if got := whole.count(words); err != nil || got != n {
		t.Errorf("in pieces %d tokens, in one %d, %v", got, n, err)
	}
}

func TestEstimateIsNearTheRealCount(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("The quick brown fox jumps over the lazy dog, and nobody minds. ", 20),
		strings.Repeat("林晚晴，二十四岁，旧城区书店的店主，说话轻声细语，对书和猫毫无抵抗力。", 20),
		strings.Repeat("Быстрая лиса прыгает через ленивую собаку, и никто не против. ", 20),
	} {
		real, guess := CountTokens("o200k_base", text), CountTokens(tokenizerEstimate, text)
		t.Logf("%.20q: %d tokens, estimated %d", text, real, guess)
		if guess < real*8/10 || guess > real*2 {
			t.Errorf("%.20q: %d tokens, estimated %d", text, real, guess)
		}
	}
}

func TestRequestScriptsAreCachedByTextAndPlace(t *testing.T) {
	deep := 2
	in := Input{History: chatOf(30), User: Message{Text: "hi"}, Cache: NewCache(0)}
	in.Scripts = compileScripts(card.NodeST, replying(
		card.RegexScript{Find: "message", Replace: "MSG", PromptOnly: true, MinDepth: &deep},
		card.RegexScript{Find: "1", Replace: "one", PromptOnly: true},
	), patient).Run(in.Cache)
	first := texts(build(t, in))
	known, _ := in.Cache.kept.Size()
	second := texts(build(t, in))
	if now, _ := in.Cache.kept.Size(); second != first || now != known {
		t.Errorf("the second time: %s, %d results after %d", second, now, known)
	}
	if !strings.Contains(first, "|MSG one8|message 19|MSG 20|") {
		t.Errorf("got %s", first)
	}
}
