package llm_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
)

var quiet = slog.New(slog.DiscardHandler)

func TestAProviderThatIsCheckedHasNoFallback(t *testing.T) {
	a, b := script([]step{fail(status(503))}), script(answer("two"))
	chain := llm.Chain(quiet, llm.Link{Provider: "a", Generator: a}, llm.Link{Provider: "b", Generator: b})
	_, _, err := read(chain.Stream(t.Context(), llm.Request{Alone: true}))
	wantCode(t, err, fault.UpstreamDown)
	if len(b.requests) > 0 {
		t.Error("the fallback was asked")
	}
}

func TestChainGoesOnWhereAnotherProviderCanHelp(t *testing.T) {
	for name, c := range map[string]struct {
		first    []step
		provider string // that answered
		text     string
		code     fault.Code
	}{
		"the first answers":        {first: answer("one"), provider: "a", text: "one"},
		"refused key":              {first: []step{fail(status(401))}, provider: "b", text: "two"},
		"no credit":                {first: []step{fail(status(402))}, provider: "b", text: "two"},
		"unknown model":            {first: []step{fail(status(404))}, provider: "b", text: "two"},
		"limited":                  {first: []step{fail(status(429))}, provider: "b", text: "two"},
		"down":                     {first: []step{fail(status(503))}, provider: "b", text: "two"},
		"empty":                    {first: answer(), provider: "b", text: "two"},
		"cut off before any text":  {first: []step{used(3, 0)}, provider: "b", text: "two"},
		"not set up":               {first: []step{fail(fault.New(fault.NotConfigured, "no key"))}, provider: "b", text: "two"},
		"failed after a word":      {first: []step{say("o"), fail(status(503))}, text: "o", code: fault.UpstreamDown},
		"failed after a thought":   {first: []step{{chunk: llm.Chunk{Reasoning: "hm"}}, fail(status(503))}, code: fault.UpstreamDown},
		"blocked stays blocked":    {first: []step{fail(llm.BlockedError("a", llm.StagePrompt, ""))}, code: fault.Blocked},
		"too long stays too long":  {first: []step{fail(status(413))}, code: fault.ContextTooLarge},
		"a cancel is not a defect": {first: []step{fail(fault.New(fault.Cancelled, "cancelled"))}, code: fault.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := script(c.first), script(answer("two"))
			chain := llm.Chain(quiet,
				llm.Link{Provider: "a", Generator: llm.Checked("a", a)},
				llm.Link{Provider: "b", Model: "m2", Generator: b})
			text, last, err := read(chain.Stream(t.Context(), llm.Request{Model: "m1"}))
			wantCode(t, err, c.code)
			if text != c.text || last.Last && last.Provider != c.provider {
				t.Errorf("%q from %q, want %q from %q", text, last.Provider, c.text, c.provider)
			}
			if a.requests[0].Model != "m1" {
				t.Errorf("first model = %q", a.requests[0].Model)
			}
			if c.provider == "b" && (b.requests[0].Model != "m2" || last.Model != "m2") {
				t.Errorf("second model: asked for %q, told %q", b.requests[0].Model, last.Model)
			}
			if c.provider != "b" && len(b.requests) > 0 {
				t.Error("the second provider was asked")
			}
		})
	}
}

func TestChainTellsTheModelThatReallyAnswered(t *testing.T) {
	routed := script([]step{{chunk: llm.Chunk{Model: "vendor/real"}}, say("x"), end(llm.FinishStop)})
	_, last, err := read(llm.Chain(quiet, llm.Link{Provider: "a", Generator: routed}).Stream(t.Context(), llm.Request{Model: "auto"}))
	if err != nil || last.Model != "vendor/real" || last.Provider != "a" {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestChainReportsTheChosenProviderWhenAllFail(t *testing.T) {
	var log bytes.Buffer
	chain := llm.Chain(slog.New(slog.NewTextHandler(&log, nil)),
		llm.Link{Provider: "a", Generator: script([]step{fail(llm.StatusError("a", 429, 0, nil))})},
		llm.Link{Provider: "b", Generator: script([]step{fail(llm.StatusError("b", 503, 0, nil))})})
	_, _, err := read(chain.Stream(t.Context(), llm.Request{}))
	wantCode(t, err, fault.UpstreamRate)
	if fault.Public(err).Details["provider"] != "a" {
		t.Errorf("details = %v", fault.Public(err).Details)
	}
	if got := log.String(); !strings.Contains(got, "provider=a") || !strings.Contains(got, "upstream_rate_limited") {
		t.Errorf("log = %s", got)
	}
	_, _, err = read(llm.Chain(quiet).Stream(t.Context(), llm.Request{}))
	wantCode(t, err, fault.NotConfigured)
}

// A fallback of the same provider has another model.
func TestChainTellsWhichModelRefusesTools(t *testing.T) {
	refuses := fail(llm.NoToolsError("a", 400))
	for name, c := range map[string]struct {
		first    step
		fallback bool
	}{"the first": {refuses, false}, "the fallback": {fail(status(503)), true}} {
		_, _, err := read(llm.Chain(quiet,
			llm.Link{Provider: "a", Generator: script([]step{c.first})},
			llm.Link{Provider: "a", Model: "m2", Generator: script([]step{refuses})}).Stream(t.Context(), llm.Request{Model: "m1"}))
		if !llm.ToolsUnsupported(err) || llm.OfFallback(err) != c.fallback || fault.Public(err).Details["provider"] != "a" {
			t.Errorf("%s refuses: %v, of a fallback %t", name, err, llm.OfFallback(err))
		}
	}
}

func TestChainStopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := script(answer("two"))
	_, _, err := read(llm.Chain(quiet,
		llm.Link{Provider: "a", Generator: script([]step{{hang: true}})},
		llm.Link{Provider: "b", Generator: b}).Stream(ctx, llm.Request{}))
	wantCode(t, err, fault.Cancelled)
	if len(b.requests) > 0 {
		t.Error("the second provider was asked")
	}
}

func TestParseRefs(t *testing.T) {
	got, err := llm.ParseRefs(" Gemini:gemini-2.0-flash, openrouter:deepseek/r1:free ,,offline")
	want := []llm.Ref{{"gemini", "gemini-2.0-flash"}, {"openrouter", "deepseek/r1:free"}, {"offline", ""}}
	if err != nil || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("ParseRefs = %v, %v; want %v", got, err, want)
	}
	if _, err := llm.ParseRefs("offline,:gpt"); !fault.Is(err, fault.Invalid) {
		t.Errorf("error = %v, want invalid_field", err)
	}
}
