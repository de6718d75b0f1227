package setup

import (
	"context"
	"net/http"
	"sync"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/llm/openai"
)

// embeddingDim is the length that is asked of the default models, in numbers.
// They give three to four times as many, which finds hardly more and fills the
// memory.
const embeddingDim = 768

// embeds is a provider that can make vectors.
type embeds interface {
	Embedder(model string, dim int) llm.Embedder
	EmbeddingModel(ctx context.Context) string
}

// embeddings is the provider that makes vectors for everybody.
func (m *Models) embeddings() string {
	if name := m.cfg.Get("NODEST_EMBEDDINGS"); name != "" {
		return name
	}
	for _, name := range []string{"gemini", "openai"} {
		if secret, _ := m.configured(name); secret != "" {
			return name
		}
	}
	return "offline"
}

// newJina makes the client of Jina, which makes vectors and nothing else, with the key for its search
// and reranking. It is nil without one.
func newJina(cfg *Config) (*openai.Client, error) {
	key := cfg.Get("JINA_API_KEY")
	if key == "" {
		return nil, nil
	}
	return openai.New(llm.ParseKeys(key), openai.Options{Name: openai.Jina, BaseURL: cfg.Get("NODEST_JINA_BASE_URL")})
}

// checkEmbeddings refuses a provider that is not set up.
func (m *Models) checkEmbeddings() error {
	name := m.embeddings()
	if name == "jina" && m.jina != nil {
		return nil
	}
	if _, ok := m.server[name].(embeds); !ok && name != "offline" {
		return fault.New(fault.NotConfigured, "NODEST_EMBEDDINGS is %s, but %s is not set", name, needs[name])
	}
	return nil
}

// Embedder returns what makes vectors for a user's memories: the server's
// provider, with the user's own key for it where there is one. The user "" is
// the server itself.
func (m *Models) Embedder(ctx context.Context, userID string) (llm.Embedder, error) {
	return m.embedder(ctx, userID, m.vectorsBy(ctx, userID))
}

// Meaning is Embedder without the offline one, whose vectors are made of parts of words:
// citations are found better by whole words then (decision 0022).
func (m *Models) Meaning(ctx context.Context, userID string) (llm.Embedder, error) {
	name := m.vectorsBy(ctx, userID)
	if name == "offline" {
		return nil, nil
	}
	return m.embedder(ctx, userID, name)
}

func (m *Models) embedder(ctx context.Context, userID, name string) (llm.Embedder, error) {
	if name == "offline" {
		return offline.Embedder{}, nil
	}
	e, err := m.embeds(ctx, userID, name)
	if err != nil {
		return nil, err
	}
	if model := m.cfg.Get("NODEST_EMBEDDING_MODEL"); model != "" {
		return m.watchEmbedder(name, e.Embedder(model, 0)), nil // it is not known what other models can give
	}
	return m.watchEmbedder(name, e.Embedder(e.EmbeddingModel(ctx), embeddingDim)), nil
}

// embeds returns a provider that can make vectors, with the user's own key where there is one.
func (m *Models) embeds(ctx context.Context, userID, name string) (embeds, error) {
	if name == "jina" && m.jina != nil {
		return m.jina, nil
	}
	var own map[string]string
	var err error
	if userID != "" {
		if own, err = m.keys(ctx, userID); err != nil {
			return nil, err
		}
	}
	p, _, err := m.provider(ctx, name, own)
	if err != nil {
		return nil, err
	}
	e, ok := p.(embeds)
	if !ok {
		return nil, fault.New(fault.NotConfigured, "%s has no embedding models", name).With("what", "embeddings")
	}
	return e, nil
}

// EmbedderOf returns the embedding provider with a model that made vectors earlier; nil if
// none of those that are set up now has it.
func (m *Models) EmbedderOf(ctx context.Context, userID, modelID string) (llm.Embedder, error) {
	for _, name := range []string{"offline", "gemini", "openai", "jina"} {
		if e, err := m.embedder(ctx, userID, name); err == nil && e.ModelID() == modelID {
			return e, nil
		}
	}
	return nil, nil
}

// probed is what is known about the embeddings of a server that is not configured for
// them. It is probed once, and again after a while if it does not answer or refuses the
// key.
type probed struct {
	mu    sync.Mutex
	by    string               // "" = not known yet
	why   error                // there are none
	asked chan struct{}        // closed when the probe has ended; nil = none is running
	again map[string]time.Time // by the user whose key was used; "" = the server's
}

// The time limit of a probe. After one without a result there is a pause of ten times as
// long as it took, within these bounds: a server that is just starting refuses
// connections immediately.
const (
	probeTime  = 5 * time.Second
	probeSoon  = time.Second
	probePause = 30 * time.Second
)

// vectorsBy is embeddings, but offline if the OpenAI-compatible server was not chosen for
// embeddings and turns out to have none. Callers wait for the probe, once, so the vectors
// of a scope stay those of one model while the server runs; those of another model are
// never compared with them.
func (m *Models) vectorsBy(ctx context.Context, userID string) string {
	name := m.embeddings()
	if name != "openai" || m.cfg.Get("NODEST_EMBEDDINGS") != "" || m.cfg.Get("OPENAI_BASE_URL") == "" {
		return name
	}
	if userID != "" {
		if own, err := m.keys(ctx, userID); err == nil && own[name] == "" {
			userID = "" // the server's key is used
		}
	}
	p := &m.probed
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.by == "" {
		if p.asked == nil {
			if time.Now().Before(p.again[userID]) {
				return name
			}
			p.asked = make(chan struct{})
			go m.probe(context.WithoutCancel(ctx), userID) // ends after probeTime; a caller with less time does not stop it
		}
		asked := p.asked
		p.mu.Unlock()
		select {
		case <-asked:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if p.by == "" && ctx.Err() != nil {
			return name
		}
	}
	return p.by
}

// probe asks the OpenAI-compatible server whether it makes vectors.
func (m *Models) probe(ctx context.Context, userID string) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	began := time.Now()
	e, err := m.embedder(ctx, userID, "openai")
	if err == nil {
		_, err = e.Embed(ctx, llm.Query, []string{"hello"})
	}
	p := &m.probed
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.asked)
	p.asked = nil
	status := llm.ProviderStatus(err)
	switch {
	case err == nil:
		p.by = "openai"
	case fault.Is(err, fault.UpstreamBadAnswer), status == http.StatusNotImplemented, status == http.StatusForbidden:
		p.by, p.why = "offline", err
		m.log.InfoContext(ctx, "the provider has no embeddings; using offline embeddings for memories", "err", err)
	default:
		if p.again == nil {
			p.again = map[string]time.Time{}
		}
		p.again[userID] = time.Now().Add(min(max(10*time.Since(began), probeSoon), probePause))
	}
	if p.by != "" {
		p.again = nil
	}
}

// Vectors returns the embedding provider of the server, and why a server that could have been one
// is none; nil if it is one or that is not known. Only with network it is probed.
func (m *Models) Vectors(ctx context.Context, network bool) (name string, e llm.Embedder, why, err error) {
	if name = m.embeddings(); network {
		name = m.vectorsBy(ctx, "")
		m.probed.mu.Lock()
		why = m.probed.why
		m.probed.mu.Unlock()
	}
	e, err = m.embedder(ctx, "", name)
	return name, e, why, err
}
