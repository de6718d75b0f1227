package llm_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
)

// Who counts requests repeats them.
func TestARequestThatIsToBeSentOnceIsNotRepeated(t *testing.T) {
	for _, failure := range [][]step{{fail(status(503))}, answer(), {}} {
		model := script(failure, answer("hi"))
		_, _, err := read(llm.Dependable("test", model).Stream(t.Context(), llm.Request{Once: true}))
		if err == nil || len(model.requests) != 1 {
			t.Errorf("%v after %d requests, want a failure after one", err, len(model.requests))
		}
	}
}

func TestRetryRepeatsWhatPassesByItself(t *testing.T) {
	limited := func(d time.Duration) error { return llm.StatusError("test", 429, d, nil) }
	for name, c := range map[string]struct {
		scripts  [][]step
		requests int
		text     string
		code     fault.Code
		min, max time.Duration // waited
	}{
		"no failure":              {scripts: [][]step{answer("hi")}, requests: 1, text: "hi"},
		"one failure":             {scripts: [][]step{{fail(status(503))}, answer("hi")}, requests: 2, text: "hi", min: 250 * time.Millisecond, max: 750 * time.Millisecond},
		"two failures":            {scripts: [][]step{{fail(status(503))}, {fail(status(500))}, answer("hi")}, requests: 3, text: "hi", min: 750 * time.Millisecond, max: 2250 * time.Millisecond},
		"it stays down":           {scripts: [][]step{{fail(status(503))}}, requests: 3, code: fault.UpstreamDown, min: 750 * time.Millisecond, max: 2250 * time.Millisecond},
		"no connection":           {scripts: [][]step{{fail(llm.NetworkError(context.Background(), "test", errors.New("refused")))}, answer("hi")}, requests: 2, text: "hi", min: 1, max: time.Second},
		"Retry-After":             {scripts: [][]step{{fail(limited(7 * time.Second))}, answer("hi")}, requests: 2, text: "hi", min: 7 * time.Second, max: 7700 * time.Millisecond},
		"Retry-After at patience": {scripts: [][]step{{fail(limited(15 * time.Second))}, answer("hi")}, requests: 2, text: "hi", min: 15 * time.Second, max: 15 * time.Second},
		"Retry-After too long":    {scripts: [][]step{{fail(limited(time.Hour))}, answer("hi")}, requests: 1, code: fault.UpstreamRate},
		"a broken stream":         {scripts: [][]step{{}, answer("hi")}, requests: 2, text: "hi", min: 1, max: time.Second},
		"an empty reply":          {scripts: [][]step{answer(), answer("hi")}, requests: 2, text: "hi", min: 1, max: time.Second},
		"usage is not delivery":   {scripts: [][]step{{used(1, 0), fail(status(500))}, answer("hi")}, requests: 2, text: "hi", min: 1, max: time.Second},

		"after the first word":       {scripts: [][]step{{say("h"), fail(status(503))}, answer("hi")}, requests: 1, text: "h", code: fault.UpstreamDown},
		"cut off after a word":       {scripts: [][]step{{say("h")}, answer("hi")}, requests: 1, text: "h", code: fault.UpstreamBadAnswer},
		"no room for text":           {scripts: [][]step{{end(llm.FinishLength)}, answer("hi")}, requests: 1, code: fault.EmptyReply},
		"a bad request":              {scripts: [][]step{{fail(status(400))}, answer("hi")}, requests: 1, code: fault.UpstreamBadAnswer},
		"an unknown model":           {scripts: [][]step{{fail(status(404))}, answer("hi")}, requests: 1, code: fault.UpstreamBadAnswer},
		"a refused key":              {scripts: [][]step{{fail(status(401))}, answer("hi")}, requests: 1, code: fault.UpstreamAuth},
		"no credit":                  {scripts: [][]step{{fail(status(402))}, answer("hi")}, requests: 1, code: fault.UpstreamQuota},
		"a prompt that is too long":  {scripts: [][]step{{fail(status(413))}, answer("hi")}, requests: 1, code: fault.ContextTooLarge},
		"a blocked prompt":           {scripts: [][]step{{fail(llm.BlockedError("test", llm.StagePrompt, ""))}, answer("hi")}, requests: 1, code: fault.Blocked},
		"a blocked reply":            {scripts: [][]step{{end(llm.FinishBlocked)}, answer("hi")}, requests: 1, code: fault.Blocked},
		"an error that has no code":  {scripts: [][]step{{fail(errors.New("defect"))}, answer("hi")}, requests: 1, code: fault.Internal},
		"a cancel inside the answer": {scripts: [][]step{{fail(fault.New(fault.Cancelled, "cancelled"))}, answer("hi")}, requests: 1, code: fault.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := script(c.scripts...)
				start := time.Now()
				text, _, err := read(llm.WithRetry(llm.Checked("test", model)).Stream(t.Context(), llm.Request{}))
				waited := time.Since(start)
				wantCode(t, err, c.code)
				if text != c.text || len(model.requests) != c.requests {
					t.Errorf("text %q after %d requests, want %q after %d", text, len(model.requests), c.text, c.requests)
				}
				if waited < c.min || waited > c.max {
					t.Errorf("waited %v, want %v to %v", waited, c.min, c.max)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		model := script([]step{fail(llm.StatusError("test", 429, 10*time.Second, nil))})
		start := time.Now()
		_, _, err := read(llm.WithRetry(model).Stream(ctx, llm.Request{}))
		wantCode(t, err, fault.Cancelled)
		if d := time.Since(start); d != time.Second || len(model.requests) != 1 {
			t.Errorf("ended after %v and %d requests, want 1 s and one", d, len(model.requests))
		}
	})
}

func TestRetryStopsWhereItsReaderStops(t *testing.T) {
	model := script(answer("a", "b", "c"))
	for range llm.WithRetry(model).Stream(t.Context(), llm.Request{}) {
		break
	}
	if len(model.requests) != 1 {
		t.Errorf("%d requests, want 1", len(model.requests))
	}
}

func TestDeadlines(t *testing.T) {
	for name, c := range map[string]struct {
		pauses []time.Duration // before each word
		slow   time.Duration   // time that the reader takes for each word
		words  int
		code   fault.Code
		after  time.Duration
	}{
		"in time":                   {pauses: []time.Duration{89e9, 44e9, 44e9}, words: 3, after: 177e9},
		"no first word":             {pauses: []time.Duration{time.Hour}, code: fault.UpstreamTimeout, after: 90e9},
		"a stall":                   {pauses: []time.Duration{1e9, time.Hour}, words: 1, code: fault.UpstreamTimeout, after: 46e9},
		"too long in all":           {pauses: slices.Repeat([]time.Duration{44e9}, 40), words: 20, code: fault.UpstreamTimeout, after: 15 * time.Minute},
		"a slow reader is no stall": {pauses: []time.Duration{1e9, 1e9}, slow: 2 * time.Minute, words: 2, after: 242e9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				words := 0
				var failed error
				for chunk, err := range llm.WithDeadlines("test", paced(c.pauses)).Stream(t.Context(), llm.Request{}) {
					if failed = err; err == nil && chunk.Text != "" {
						words++
						time.Sleep(c.slow) // virtual
					}
				}
				wantCode(t, failed, c.code)
				if d := time.Since(start); words != c.words || d != c.after {
					t.Errorf("%d words in %v, want %d in %v", words, d, c.words, c.after)
				}
			})
		})
	}
}

// paced says a word after each pause.
func paced(pauses []time.Duration) llm.Generator {
	return llm.GeneratorFunc(func(ctx context.Context, _ llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			for _, p := range pauses {
				select {
				case <-time.After(p):
				case <-ctx.Done():
					yield(llm.Chunk{}, llm.NetworkError(ctx, "test", ctx.Err()))
					return
				}
				if !yield(llm.Chunk{Text: "w"}, nil) {
					return
				}
			}
			yield(llm.Chunk{Last: true, Finish: llm.FinishStop}, nil)
		}
	})
}

func TestDeadlinesLeaveACancelACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _, err := read(llm.WithDeadlines("test", script([]step{{hang: true}})).Stream(ctx, llm.Request{}))
		wantCode(t, err, fault.Cancelled)
	})
}

func TestAHangingProviderIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := script([]step{{hang: true}})
		start := time.Now()
		_, _, err := read(llm.Dependable("test", model).Stream(t.Context(), llm.Request{}))
		wantCode(t, err, fault.UpstreamTimeout)
		if d := time.Since(start); d != 90*time.Second || len(model.requests) != 1 {
			t.Errorf("gave up after %v and %d requests, want 90 s and one", d, len(model.requests))
		}
	})
}
