package setup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nodest/llm"
	"nodest/llm/llmtest"
)

// The context of a model is what its provider's list tells, however the list calls it, and is asked for once.
func TestTheContextOfAModelIsThatOfTheList(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		told  int
		want  int
	}{{"m-1", 131_072, 131_072}, {"m-1", 0, 0}, {"another", 131_072, 0}} {
		fake := llmtest.NewOpenAI(t)
		fake.SetModels("m-1")
		fake.SetContext(tt.told)
		m, err := modelsOf(t, nil, "OPENAI_BASE_URL", fake.URL)
		if err != nil {
			t.Fatal(err)
		}
		m.lists.ask(t.Context(), m.Client("openai"), keyOf("openai", ""))
		for range 2 {
			model, err := m.Resolve(t.Context(), "ann", "openai", tt.model, "")
			if err != nil {
				t.Fatal(err)
			}
			if model.ContextTokens != tt.want {
				t.Errorf("%s, of which the list tells %d: %d tokens, want %d", tt.model, tt.told, model.ContextTokens, tt.want)
			}
		}
		if asked := len(fake.Requests()); asked != 1 {
			t.Errorf("the list was asked for %d times", asked)
		}
	}
}

// A provider whose models all have the same context needs no list for it.
func TestTheContextOfAModelIsKnownWithoutTheList(t *testing.T) {
	t.Parallel()
	m, err := modelsOf(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	model, err := m.Resolve(t.Context(), "ann", "offline", "", "")
	if err != nil || model.ContextTokens != 32_768 {
		t.Errorf("the offline model: %d, %v", model.ContextTokens, err)
	}
}

// slowList is a provider that takes its time to tell its models.
type slowList struct {
	llm.Provider // does nothing else
	takes        time.Duration
	fails        atomic.Bool
	asked        atomic.Int64
}

func (*slowList) Name() string { return "openai" }

func (p *slowList) Models(ctx context.Context) ([]llm.Model, error) {
	p.asked.Add(1)
	select {
	case <-time.After(p.takes): // virtual
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.fails.Load() {
		return nil, errors.New("down")
	}
	return []llm.Model{{ID: "m", ContextTokens: 8000, NoTools: true}}, nil
}

// Turns wait a moment for the first list, and ask for it once. Until it is there they count as if it told nothing;
// then as it tells, also while it is asked for again.
func TestTurnsDoNotWaitForAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, l, by := &slowList{takes: 10 * time.Second}, newLists(), keyOf("openai", "")
		turns := func(wantContext int, wantCalls bool, wait time.Duration, asked int64) {
			t.Helper()
			begun := time.Now()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if got := l.context(t.Context(), p, by, "m"); got != wantContext {
						t.Errorf("the context is %d, want %d", got, wantContext)
					}
				})
			}
			all.Wait()
			if got := l.calls(t.Context(), p, by, "m"); got != wantCalls {
				t.Errorf("the model calls tools: %v", got)
			}
			if took := time.Since(begun); took != wait {
				t.Errorf("twenty turns waited %v, want %v", took, wait)
			}
			synctest.Wait()
			if got := p.asked.Load(); got != asked {
				t.Errorf("the list was asked for %d times, want %d", got, asked)
			}
		}
		turns(0, true, firstList, 1)
		turns(0, true, 0, 1)
		time.Sleep(p.takes)
		turns(8000, false, 0, 1)
		time.Sleep(listAge)
		p.fails.Store(true)
		turns(8000, false, 0, 2)
		time.Sleep(p.takes)
		turns(8000, false, 0, 2) // the failure is remembered
		time.Sleep(unlistedAge)
		turns(8000, false, 0, 3)
		time.Sleep(askBeside) // the last answer
	})
}

// A provider that never tells its models is asked once in a while, and then nobody waits.
func TestAListThatFailsIsNotAskedForInEveryTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, l, by := &slowList{takes: time.Hour}, newLists(), keyOf("openai", "secret")
		l.context(t.Context(), p, by, "m")
		time.Sleep(askBeside)
		for range 100 {
			begun := time.Now()
			if l.context(t.Context(), p, by, "m"); time.Since(begun) != 0 {
				t.Fatal("a turn waits although the list failed")
			}
		}
		if got := p.asked.Load(); got != 1 {
			t.Errorf("the list was asked for %d times", got)
		}
		time.Sleep(unlistedAge)
		l.context(t.Context(), p, by, "m")
		synctest.Wait()
		if got := p.asked.Load(); got != 2 {
			t.Errorf("after a while the list was asked for %d times, want 2", got)
		}
		time.Sleep(askBeside) // the last answer
	})
}
