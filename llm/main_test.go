package llm_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"nodest/internal/fault"
	"nodest/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// step is what a scripted model does next: yield a chunk, fail, or (hang) wait
// until the context ends.
type step struct {
	chunk llm.Chunk
	err   error
	hang  bool
}

func say(text string) step  { return step{chunk: llm.Chunk{Text: text}} }
func end(f llm.Finish) step { return step{chunk: llm.Chunk{Last: true, Finish: f}} }
func fail(err error) step   { return step{err: err} }
func status(n int) error    { return llm.StatusError("test", n, 0, nil) }
func used(prompt, reply int) step {
	return step{chunk: llm.Chunk{Usage: &llm.Usage{PromptTokens: prompt, CompletionTokens: reply}}}
}
func answer(words ...string) []step {
	var s []step
	for _, w := range words {
		s = append(s, say(w))
	}
	return append(s, end(llm.FinishStop))
}

// scripted plays one script per request and the last one for all that follow.
type scripted struct {
	scripts  [][]step
	requests []llm.Request
}

func script(scripts ...[]step) *scripted { return &scripted{scripts: scripts} }

func (s *scripted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		n := min(len(s.requests), len(s.scripts)-1)
		s.requests = append(s.requests, req)
		for _, st := range s.scripts[n] {
			if st.hang {
				<-ctx.Done()
				yield(llm.Chunk{}, llm.NetworkError(ctx, "test", ctx.Err()))
				return
			}
			if !yield(st.chunk, st.err) || st.err != nil {
				return
			}
		}
	}
}

// read collects a reply.
func read(seq iter.Seq2[llm.Chunk, error]) (text string, last llm.Chunk, err error) {
	var b strings.Builder
	for c, err := range seq {
		if err != nil {
			return b.String(), last, err
		}
		b.WriteString(c.Text)
		last = c
	}
	return b.String(), last, nil
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if code == "" {
		if err != nil {
			t.Errorf("error = %v, want none", err)
		}
		return
	}
	if !fault.Is(err, code) {
		t.Errorf("error = %v, want %s", err, code)
	}
}
