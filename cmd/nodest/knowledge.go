package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"nodest/fault"
	"nodest/knowledge"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/knowledge/rerank"
	"nodest/llm"
)

// newKnowledge returns the service of files and knowledge bases.
func (r *running) newKnowledge() *knowledge.Service {
	cfg := r.cfg
	parser := &parse.Child{CacheDir: filepath.Join(cfg.get("NODEST_DATA"), "parse-cache")}
	rules, _ := chunkRules(cfg.get("NODEST_KB_CHUNK_RULES")) // checked on loading
	model := func(ctx context.Context, userID string) (*knowledge.Model, error) {
		m, err := r.engine.CircleModel(ctx, userID)
		if m == nil {
			return nil, err
		}
		return &knowledge.Model{Asker: m.Asker, Provider: m.Provider, Name: m.Name}, err
	}
	reranker, patience := newReranker(cfg, model)
	return knowledge.New(r.db.Knowledge(), knowledge.Options{
		MaxFiles: cfg.count("NODEST_KB_FILES"), MaxBytes: int64(cfg.count("NODEST_KB_MEGABYTES")) << 20,
		ReadPage: func(ctx context.Context, userID, url string) (*knowledge.WebPage, error) {
			page, err := r.search.Read(ctx, userID, url, "")
			if err != nil {
				return nil, err
			}
			return &knowledge.WebPage{URL: page.URL, Title: page.Title, Markdown: page.Markdown}, nil
		},
		Pipeline: knowledge.Pipeline{
			Parser: parser.Parse, NoRerank: cfg.get("NODEST_RERANK") == "none",
			Rules: func(contentType string) chunk.Rules {
				if own, ok := rules[contentType]; ok {
					return own
				}
				return rules[""]
			},
			Embedder: r.models.Embedder, EmbedderOf: r.models.EmbedderOf, Meaning: r.models.meaning, Transient: r.hub.Transient, Log: r.log,
			Model: model, Rerank: reranker, RerankTime: patience,
		},
	})
}

// modelRerankTime is how long a search waits for a model to order its passages.
const modelRerankTime = 6 * time.Second

// newReranker returns what orders the best passages after the words have, and how long a search
// waits for it; nil = nothing does. A server without the key that it needs degrades each search,
// and doctor tells.
func newReranker(cfg *config, model func(ctx context.Context, userID string) (*knowledge.Model, error)) (knowledge.Reranker, time.Duration) {
	switch name := cfg.get("NODEST_RERANK"); name {
	case rerank.Jina, rerank.Cohere:
		client, err := rerank.New(rerankConfig(cfg))
		return func(ctx context.Context, _, query string, texts []string) ([]int, error) {
			if err != nil {
				return nil, err
			}
			return client.Order(ctx, query, texts)
		}, 0
	case "llm":
		return knowledge.ModelReranker(model), modelRerankTime
	}
	return nil, 0
}

// checkRerank says what is wrong with NODEST_RERANK; nothing where words order the passages.
func checkRerank(cfg *config) []check {
	switch name := cfg.get("NODEST_RERANK"); name {
	case rerank.Jina, rerank.Cohere:
		if _, err := rerank.New(rerankConfig(cfg)); err != nil {
			return []check{{"reranking", "misconfigured", fault.Public(err).Message}}
		}
		return []check{{name: "reranking", detail: name + ", not contacted"}}
	}
	return nil
}

// rerankConfig is how to reach the server that NODEST_RERANK names.
func rerankConfig(cfg *config) rerank.Config {
	keys := cfg.get("COHERE_API_KEY")
	if cfg.get("NODEST_RERANK") == rerank.Jina {
		keys = cfg.get("JINA_API_KEY")
	}
	return rerank.Config{
		Server: cfg.get("NODEST_RERANK"), BaseURL: cfg.get("NODEST_RERANK_BASE_URL"), Model: cfg.get("NODEST_RERANK_MODEL"),
		Keys: llm.ParseKeys(keys), Client: llm.HTTPClient(llm.Transport()),
	}
}

// EmbedderOf returns the embedding provider with a model that made vectors earlier; nil if
// none of those that are set up now has it.
func (m *models) EmbedderOf(ctx context.Context, userID, modelID string) (llm.Embedder, error) {
	for _, name := range []string{"offline", "gemini", "openai"} {
		if e, err := m.embedder(ctx, userID, name); err == nil && e.ModelID() == modelID {
			return e, nil
		}
	}
	return nil, nil
}

// chunkRules reads a list such as code=1500/200,csv=2000/0,default=800/100: the size of
// chunks and their overlap in characters by type of content. The rules of "" are those of
// all other types.
func chunkRules(list string) (map[string]chunk.Rules, error) {
	rules := map[string]chunk.Rules{"": chunk.Default}
	for _, entry := range split(list) {
		kind, numbers, _ := strings.Cut(entry, "=")
		size, overlap, _ := strings.Cut(numbers, "/")
		var r chunk.Rules
		var err, failed error
		r.Size, err = strconv.Atoi(size)
		r.Overlap, failed = strconv.Atoi(overlap)
		if kind == "" || err != nil || failed != nil || r.Size < 100 || r.Size > 8000 || r.Overlap < 0 || r.Overlap > r.Size/2 {
			return nil, fmt.Errorf("%q is invalid; must be type=size/overlap such as code=1500/200, with a size of 100 to 8000 and an overlap of at most half of it", entry)
		}
		if kind == "default" {
			kind = ""
		}
		rules[kind] = r
	}
	return rules, nil
}

func areChunkRules(list string) error {
	_, err := chunkRules(list)
	return err
}
