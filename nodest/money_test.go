package nodest_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// dear is a model whose every request costs a dollar.
type dear struct{ asked atomic.Int64 }

func (d *dear) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	d.asked.Add(1)
	return func(yield func(llm.Chunk, error) bool) {
		usd := 1.0
		yield(llm.Chunk{Text: "Fine.", Last: true, Finish: llm.FinishStop, Usage: &llm.Usage{PromptTokens: 1_000_000, CompletionTokens: 1, CostUSD: &usd}}, nil)
	}
}

func TestAtTheLimitOfTheMonthNoModelIsAsked(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 30, 12, 0, 0, 0, time.UTC)
	now := atomic.Pointer[time.Time]{}
	now.Store(&noon)
	s := newFixtureWithClock(t, nodest.Options{MonthlyUSD: 5}, func() time.Time { return *now.Load() })
	model := &dear{}
	s.RealModel = &nodest.Model{Generator: model, Provider: "openrouter", Name: "dear", ContextTokens: 8000}
	c := s.Chat()
	background, err := s.MemoryModel(t.Context(), nodesttest.Ann, "")
	s.Must(err)
	warnings := func() int { return strings.Count(s.Events.Types(), "usage.warning") }
	for i := range 5 {
		if i%2 == 0 {
			s.SayAndWait(c, "Hello")
		} else { // requests in the background count as well
			_, err := background.Ask(t.Context(), llm.Prompt{Text: "What is new?", MaxTokens: 10})
			s.Must(err)
		}
		want := 0
		if i >= 3 { // 80 %
			want = 1
		}
		if n := warnings(); n != want {
			t.Errorf("after %d dollars: %d warnings, want %d", i+1, n, want)
		}
	}
	asked := model.asked.Load()
	_, err = s.sendBusy(c, "two", "")
	if e := s.WantCode(err, fault.QuotaExceeded); e.Details["quota"] != "usdPerMonth" || e.RetryAfter != 36*time.Hour {
		t.Errorf("%+v", e)
	}
	_, err = background.Ask(t.Context(), llm.Prompt{Text: "What is new?", MaxTokens: 10})
	s.WantCode(err, fault.QuotaExceeded)
	if m, err := s.MemoryModel(t.Context(), nodesttest.Ann, ""); m != nil || err != nil {
		t.Errorf("a model for the background: %v, %v", m, err)
	}
	if n := model.asked.Load(); n != asked || n != 5 {
		t.Errorf("the model was asked %d times, want 5", n)
	}
	june := noon.AddDate(0, 0, 2)
	now.Store(&june)
	s.SayAndWait(c, "A new month")
	spent, err := s.Spending(t.Context(), nodesttest.Ann)
	if err != nil || spent.UsedUSD != 1 || spent.Month != "2026-06" || spent.Warned {
		t.Errorf("%+v, %v", spent, err)
	}
}
