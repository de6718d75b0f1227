package nodest

import (
	"cmp"
	"sync"

	"nodest/chat"
	"nodest/llm"
)

// meter counts what the requests of a generation cost.
type meter struct {
	mu       sync.Mutex
	usage    *llm.Usage // usage of all requests, as the provider reported it; nil = it has not
	earlier  llm.Usage  // usage of the requests before this one
	reported bool       // the usage of the last one is known
	requests int
	asked    int    // tokens of all requests
	asking   int    // tokens of the last one
	provider string // that answers
	model    string // that answers
	wanted   string // the name by which it was asked
}

func (m *meter) noteModel(asked Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.provider, m.model = asked.Provider, asked.Name
}

func (m *meter) noteRequest(tokens int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.reported, m.asking = false, tokens
	m.asked += tokens
	if m.usage != nil {
		m.earlier = *m.usage
	}
}

// noteChunk notes what a chunk tells besides its text.
func (m *meter) noteChunk(c llm.Chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Usage != nil {
		m.usage, m.reported = new(m.earlier.Plus(*c.Usage)), true
	}
	m.model, m.wanted, m.provider = cmp.Or(c.Model, m.model), cmp.Or(c.Asked, m.wanted), cmp.Or(c.Provider, m.provider)
}

// tell sets what g has of it.
func (m *meter) tell(g *chat.Generation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g.NameModels(m.model, m.wanted)
	if m.usage != nil {
		g.Usage = new(*m.usage)
	}
}

// row is the usage of the generation, which wrote so many tokens: each count as the provider reported
// it, else an estimate once the model had answered. nil means none.
func (m *meter) row(wrote int) *UsageRow {
	m.mu.Lock()
	defer m.mu.Unlock()
	row := &UsageRow{Provider: m.provider, Model: m.model, Requests: int64(max(m.requests, 1))}
	switch {
	case m.usage != nil:
		row.PromptTokens, row.CompletionTokens = int64(cmp.Or(m.usage.PromptTokens, m.asked)), int64(cmp.Or(m.usage.CompletionTokens, wrote))
		if m.usage.CostUSD != nil {
			row.CostUSD = *m.usage.CostUSD
		}
		if !m.reported { // the last request was broken off, after others that reported theirs
			row.PromptTokens, row.CompletionTokens = row.PromptTokens+int64(m.asking), row.CompletionTokens+int64(wrote)
		}
	case wrote > 0:
		row.PromptTokens, row.CompletionTokens = int64(m.asked), int64(wrote)
	default:
		return nil
	}
	return row
}
