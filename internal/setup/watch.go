package setup

import (
	"context"
	"iter"
	"time"

	"nodest/internal/fault"
	"nodest/internal/metrics"
	"nodest/llm"
)

// UseMetrics has the requests to providers counted. It is called before the first one.
func (m *Models) UseMetrics(to *metrics.Set) { m.metrics = to }

// watch counts the requests that a Generator gets.
func (m *Models) watch(provider string) func(llm.Generator) llm.Generator {
	return func(gen llm.Generator) llm.Generator {
		return llm.GeneratorFunc(func(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
			return func(yield func(llm.Chunk, error) bool) { m.count(provider, gen.Stream(ctx, req), yield) }
		})
	}
}

// count passes a reply on, and counts it when it ends. One whose reader breaks off before its end was cancelled.
func (m *Models) count(provider string, reply iter.Seq2[llm.Chunk, error], yield func(llm.Chunk, error) bool) {
	began := time.Now()
	var first time.Duration
	code := string(fault.Cancelled)
	defer func() { m.metrics.Asked(provider, metrics.Reply, code, first, time.Since(began)) }()
	reply(func(c llm.Chunk, err error) bool {
		switch {
		case err != nil:
			code = string(fault.Public(err).Code)
		case c.Last:
			code = metrics.OK
		}
		if first == 0 && (c.Text != "" || c.Reasoning != "" || len(c.Calls) > 0) {
			first = max(time.Since(began), 1)
		}
		return yield(c, err)
	})
}

// watched is an Embedder whose requests are counted.
type watched struct {
	llm.Embedder
	provider string
	metrics  *metrics.Set
}

func (m *Models) watchEmbedder(provider string, e llm.Embedder) llm.Embedder {
	return watched{e, provider, m.metrics}
}

// Embed implements llm.Embedder.
func (w watched) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	began := time.Now()
	found, err := w.Embedder.Embed(ctx, task, texts)
	code := metrics.OK
	if err != nil {
		code = string(fault.Public(err).Code)
	}
	w.metrics.Asked(w.provider, metrics.Embed, code, 0, time.Since(began))
	return found, err
}
