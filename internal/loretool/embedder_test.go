package loretool

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/llm"
	"nodest/nodest/nodesttest"
)

func TestMain(m *testing.M) { nodesttest.Main(m) }

// concepts are words that mean the same; a text is the sum of its concepts.
var concepts = [...][]string{
	{"lighthouse", "beacon", "灯塔"}, {"dragon", "wyrm", "龙"}, {"plague", "illness", "sick", "瘟疫"}, {"king", "monarch", "国王"}, {"train", "railway"},
}

// meaning is an embedding provider of one user that knows concepts. It is strict: the test fails if it gets what
// no provider should.
type meaning struct {
	t     *testing.T
	model string

	mu       sync.Mutex
	passages []string
	queries  []string
	calls    []int // sizes of the calls for passages
	at       int   // calls for passages that run
	most     int   // at once
	err      error // fails every call; nil = none
	refuses  string
	gate     chan struct{} // received from in a call for passages; nil = no waiting
}

func (m *meaning) ModelID() string { return m.model }

func (m *meaning) Dim() int { return len(concepts) + noise }

func (m *meaning) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	if len(texts) == 0 || len(texts) > embedBatch || slices.ContainsFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }) {
		m.t.Errorf("asked for %d texts", len(texts))
	}
	switch task {
	case llm.Query:
		m.mu.Lock()
		m.queries = append(m.queries, texts...)
		m.mu.Unlock()
		if len(texts) != 1 {
			m.t.Errorf("%d queries at once", len(texts))
		}
	case llm.Passage:
		if err := m.passage(ctx, texts); err != nil {
			return llm.Embeddings{}, err
		}
	default:
		m.t.Errorf("asked for the task %s", task)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return llm.Embeddings{}, m.err
	}
	found := llm.Embeddings{Model: m.model, Dim: m.Dim()}
	for _, text := range texts {
		if m.refuses != "" && strings.Contains(text, m.refuses) {
			return llm.Embeddings{}, fault.New(fault.UpstreamBadAnswer, "not this one")
		}
		found.Vectors = append(found.Vectors, vectorFor(text))
	}
	return found, nil
}

// noise is how many numbers tell texts without a concept apart.
const noise = 256

func vectorFor(text string) []float32 {
	v, any := make([]float32, len(concepts)+noise), false
	for i, words := range concepts {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(text), w) }) {
			v[i], any = 1, true
		}
	}
	if hash := fnv.New64a(); !any {
		_, _ = hash.Write([]byte(text))
		r := rand.New(rand.NewPCG(hash.Sum64(), 1))
		for i := range noise {
			v[len(concepts)+i] = r.Float32() - 0.5
		}
	}
	return v
}

func (m *meaning) passage(ctx context.Context, texts []string) error {
	m.mu.Lock()
	m.passages, m.calls, m.at = append(m.passages, texts...), append(m.calls, len(texts)), m.at+1
	m.most = max(m.most, m.at)
	gate := m.gate
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.at--
		m.mu.Unlock()
	}()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// set changes the provider.
func (m *meaning) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// seen returns how many passages and queries the provider has got.
func (m *meaning) seen() (passages, queries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.passages), len(m.queries)
}

// only is the provider of each user; others have none.
func only(byUser map[string]*meaning) func(context.Context, string) (llm.Embedder, error) {
	return func(_ context.Context, userID string) (llm.Embedder, error) {
		if m := byUser[userID]; m != nil {
			return m, nil
		}
		return nil, nil
	}
}

// made returns random vectors.
func made(n, dim int) []vector {
	r, all := rand.New(rand.NewPCG(1, 2)), make([]vector, n)
	for i := range all {
		v := make([]float32, dim)
		for j := range v {
			v[j] = r.Float32() - 0.5
		}
		all[i] = vector{model: "m", packed: index.Pack(v)}
	}
	return all
}
