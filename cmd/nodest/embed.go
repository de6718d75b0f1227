package main

import (
	"cmp"
	"context"
	"time"

	"nodest/fault"
	"nodest/llm"
	"nodest/llm/offline"
)

// embeddingDim is the length that is asked of the default models, in numbers.
// They give three to four times as many, which finds hardly more and fills the
// memory.
const embeddingDim = 768

// embeds is a provider that can make vectors.
type embeds interface {
	Embedder(model string, dim int) llm.Embedder
}

// embeddings is the provider that makes vectors for everybody.
func (m *models) embeddings() string {
	if name := m.cfg.get("NODEST_EMBEDDINGS"); name != "" {
		return name
	}
	for _, name := range []string{"gemini", "openai"} {
		if secret, _ := m.configured(name); secret != "" {
			return name
		}
	}
	return "offline"
}

// checkEmbeddings refuses a provider that is not set up.
func (m *models) checkEmbeddings() error {
	name := m.embeddings()
	if _, ok := m.server[name].(embeds); !ok && name != "offline" {
		return fault.New(fault.NotConfigured, "NODEST_EMBEDDINGS is %s, but %s is not set", name, needs[name])
	}
	return nil
}

// Embedder returns what makes vectors for a user's memories: the server's
// provider, with the user's own key for it where there is one. The user "" is
// the server itself.
func (m *models) Embedder(ctx context.Context, userID string) (llm.Embedder, error) {
	name := m.embeddings()
	if name == "offline" {
		return offline.Embedder{}, nil
	}
	p := m.server[name]
	if userID != "" {
		own, err := m.keys(ctx, userID)
		if err != nil {
			return nil, err
		}
		if key := own[name]; key != "" {
			if p, err = m.withKey(name, key); err != nil {
				return nil, err
			}
		}
	}
	e, ok := p.(embeds)
	if !ok {
		return nil, fault.New(fault.NotConfigured, "%s makes no vectors", name).With("what", "embeddings")
	}
	model := m.cfg.get("NODEST_EMBEDDING_MODEL")
	dim := embeddingDim
	if model != "" { // of others it is not known what they can give
		dim = 0
	}
	return e.Embedder(model, dim), nil
}

// checkVectors has a text embedded, if the network may be used.
func (m *models) checkVectors(ctx context.Context, network bool) check {
	e, err := m.Embedder(ctx, "")
	if err != nil {
		return check{"embeddings", m.embeddings(), oneLine(err)}
	}
	c := check{name: "embeddings", detail: e.ModelID()}
	if !network {
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := e.Embed(ctx, llm.Query, []string{"hello"}); err != nil {
		c.fix = cmp.Or(oneLine(err), "no answer")
	}
	return c
}
