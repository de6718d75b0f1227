package llm_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
)

func TestCheckedBelievesOnlyWholeReplies(t *testing.T) {
	for name, c := range map[string]struct {
		script []step
		text   string
		code   fault.Code
		stage  string
	}{
		"a whole reply":                   {script: answer("hello ", "you"), text: "hello you"},
		"stopped by its length":           {script: []step{say("hel"), end(llm.FinishLength)}, text: "hel"},
		"text in the last chunk":          {script: []step{{chunk: llm.Chunk{Text: "all", Last: true, Finish: llm.FinishStop}}}, text: "all"},
		"the end is missing":              {script: []step{say("hel")}, text: "hel", code: fault.UpstreamBadAnswer},
		"nothing at all":                  {script: nil, code: fault.UpstreamBadAnswer},
		"an end without a word for it":    {script: []step{say("hel"), end("")}, text: "hel", code: fault.UpstreamBadAnswer},
		"no text":                         {script: answer(), code: fault.EmptyReply},
		"blanks are no text":              {script: answer(" \n"), text: " \n", code: fault.EmptyReply},
		"reasoning is no text":            {script: []step{{chunk: llm.Chunk{Reasoning: "hm"}}, end(llm.FinishStop)}, code: fault.EmptyReply},
		"all tokens went into reasoning":  {script: []step{{chunk: llm.Chunk{Reasoning: "hm"}}, end(llm.FinishLength)}, code: fault.EmptyReply},
		"blocked in the middle":           {script: []step{say("I will"), end(llm.FinishBlocked)}, text: "I will", code: fault.Blocked, stage: "reply"},
		"blocked before the first word":   {script: []step{end(llm.FinishBlocked)}, code: fault.Blocked, stage: "reply"},
		"a blocked prompt":                {script: []step{fail(llm.BlockedError("test", llm.StagePrompt, "SAFETY"))}, code: fault.Blocked, stage: "prompt"},
		"the provider's error goes on":    {script: []step{say("a"), fail(status(500))}, text: "a", code: fault.UpstreamDown},
		"nothing is read after the end":   {script: append(answer("a"), say("b"), fail(status(500))), text: "a"},
		"nothing is read after a failure": {script: []step{fail(status(429)), say("b")}, code: fault.UpstreamRate},
	} {
		t.Run(name, func(t *testing.T) {
			text, last, err := read(llm.Checked("test", script(c.script)).Stream(t.Context(), llm.Request{}))
			if text != c.text {
				t.Errorf("text = %q, want %q", text, c.text)
			}
			wantCode(t, err, c.code)
			if last.Last != (c.code == "") {
				t.Errorf("Last = %v with error %v", last.Last, err)
			}
			if c.stage != "" && fault.Public(err).Details["stage"] != c.stage {
				t.Errorf("details = %v, want stage %s", fault.Public(err).Details, c.stage)
			}
		})
	}
}

func TestCheckedPassesTheUsageOfAFailureOn(t *testing.T) {
	seen := 0
	last := step{chunk: llm.Chunk{Last: true, Finish: llm.FinishStop, Usage: &llm.Usage{PromptTokens: 7}}}
	for c, err := range llm.Checked("test", script([]step{last})).Stream(t.Context(), llm.Request{}) {
		if err != nil {
			wantCode(t, err, fault.EmptyReply)
		} else if c.Usage != nil {
			seen += c.Usage.PromptTokens
		}
	}
	if seen != 7 {
		t.Errorf("prompt tokens seen = %d, want 7", seen)
	}
}

// Providers report what they like; sums of it must stay possible.
func TestCheckedBoundsTheUsage(t *testing.T) {
	for _, n := range []int{-5, 1e18} {
		last := step{chunk: llm.Chunk{Text: "Yes.", Last: true, Finish: llm.FinishStop, Usage: &llm.Usage{PromptTokens: n, CompletionTokens: n, CachedTokens: n, CostUSD: new(float64(n))}}}
		for c, err := range llm.Checked("test", script([]step{last})).Stream(t.Context(), llm.Request{}) {
			if err != nil {
				t.Fatal(err)
			}
			u := c.Usage
			for _, got := range []int{u.PromptTokens, u.CompletionTokens, u.CachedTokens} {
				if got < 0 || got > 1e9 {
					t.Errorf("%d tokens became %d", n, got)
				}
			}
			if *u.CostUSD < 0 || *u.CostUSD > 1e6 {
				t.Errorf("a cost of %d became %f", n, *u.CostUSD)
			}
		}
	}
}

func TestCheckedTellsACancelFromACut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	quiet := llm.GeneratorFunc(func(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			yield(llm.Chunk{Text: "a"}, nil)
			cancel() // an adapter that just stops when its context ends
		}
	})
	text, _, err := read(llm.Checked("test", quiet).Stream(ctx, llm.Request{}))
	if text != "a" {
		t.Errorf("text = %q", text)
	}
	wantCode(t, err, fault.Cancelled)
}

func TestAPanicOfAnAdapterEndsOneReply(t *testing.T) {
	model := llm.GeneratorFunc(func(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			if req.Model == "at once" || yield(llm.Chunk{Text: "a"}, nil) || req.Model == "behind a break" {
				panic("nil candidate")
			}
		}
	})
	gen := llm.Dependable("test", model)
	text, _, err := read(gen.Stream(t.Context(), llm.Request{Model: "at once"}))
	wantCode(t, err, fault.Internal)
	if text != "" || fault.Public(err).Message != "internal error" {
		t.Errorf("%q, %q", text, fault.Public(err).Message)
	}
	text, _, err = read(gen.Stream(t.Context(), llm.Request{Model: "after a word"}))
	wantCode(t, err, fault.Internal)
	if text != "a" {
		t.Errorf("text = %q", text)
	}
	for range gen.Stream(t.Context(), llm.Request{Model: "behind a break"}) {
		break
	}
}

func TestAPanicOfTheReaderIsItsOwn(t *testing.T) {
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v", p)
		}
	}()
	for range llm.Dependable("test", script(answer("a"))).Stream(t.Context(), llm.Request{}) {
		panic("mine")
	}
}

func TestALongReplyIsCutWhereItsBoundIs(t *testing.T) {
	endless := func(c llm.Chunk) llm.GeneratorFunc {
		return func(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
			return func(yield func(llm.Chunk, error) bool) {
				for yield(c, nil) { //nolint:revive // until the reader breaks off
				}
			}
		}
	}
	for name, c := range map[string]struct {
		piece llm.Chunk
		bound int
		text  int
		code  fault.Code
	}{
		"text":                       {piece: llm.Chunk{Text: "0123456789"}, bound: 25, text: 25},
		"no code point is cut":       {piece: llm.Chunk{Text: "茶茶"}, bound: 10, text: 9},
		"reasoning counts":           {piece: llm.Chunk{Text: "01234", Reasoning: "01234"}, bound: 28, text: 13},
		"nothing but reasoning":      {piece: llm.Chunk{Reasoning: "01234"}, bound: 28, code: fault.EmptyReply},
		"one MiB without another":    {piece: llm.Chunk{Text: strings.Repeat("x", 1000)}, text: llm.MaxReply},
		"all of it in a single part": {piece: llm.Chunk{Text: strings.Repeat("x", 1000), Last: true, Finish: llm.FinishStop}, bound: 1, text: 1},
	} {
		t.Run(name, func(t *testing.T) {
			text, last, err := read(llm.Checked("test", endless(c.piece)).Stream(t.Context(), llm.Request{MaxBytes: c.bound}))
			wantCode(t, err, c.code)
			if len(text) != c.text || c.code == "" && last.Finish != llm.FinishLength {
				t.Errorf("%d bytes, finish %q; want %d, length", len(text), last.Finish, c.text)
			}
		})
	}
}

func TestTheNameOfAModelIsAShortLine(t *testing.T) {
	script := script([]step{{chunk: llm.Chunk{Text: "hi", Last: true, Finish: llm.FinishStop, Model: "gpt\x1b[2J\n" + strings.Repeat("模", 300_000)}}})
	_, last, err := read(llm.Checked("test", script).Stream(t.Context(), llm.Request{}))
	wantCode(t, err, "")
	if want := "gpt [2J " + strings.Repeat("模", 191) + "…"; last.Model != want {
		t.Errorf("model %q, want %q", last.Model, want)
	}
}
