package instance

import (
	"context"
	"path/filepath"
	"time"

	"nodest/internal/logtool"
	"nodest/internal/setup"
	"nodest/knowledge"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/knowledge/rerank"
	"nodest/llm"
)

// parser is what parses documents; it keeps compiled code in the data folder.
func (r *Instance) parser() *parse.Child {
	return &parse.Child{CacheDir: filepath.Join(r.Cfg.DataFolder(), "parse-cache")}
}

// warmParser has the parser compile its code when the server has started and is at rest, so that the
// first PDF need not wait for it.
func (r *Instance) warmParser(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(WarmAfter):
		if err := r.parser().Warm(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "the reader of PDFs was not compiled ahead", "err", err)
		}
	}
}

// newKnowledge returns the service of files and knowledge bases.
func (r *Instance) newKnowledge() *knowledge.Service {
	cfg := r.Cfg
	parser := r.parser()
	rules, _ := setup.ChunkRules(cfg.Get("NODEST_KB_CHUNK_RULES")) // checked on loading
	model := func(ctx context.Context, userID string) (*knowledge.Model, error) {
		m, err := r.engine.CircleModel(ctx, userID)
		if m == nil {
			return nil, err
		}
		return &knowledge.Model{Asker: m.Asker, Provider: m.Provider, Name: m.Name}, err
	}
	reranker, patience := newReranker(cfg, model)
	return knowledge.New(r.db.Knowledge(), knowledge.Options{
		Answered: logtool.LogAnswer,
		MaxFiles: cfg.Count("NODEST_KB_FILES"), MaxBytes: int64(cfg.Count("NODEST_KB_MEGABYTES")) << 20,
		ReadPage: func(ctx context.Context, userID, url string) (*knowledge.WebPage, error) {
			page, err := r.search.Read(ctx, userID, url, "")
			if err != nil {
				return nil, err
			}
			return &knowledge.WebPage{URL: page.URL, Title: page.Title, Markdown: page.Markdown}, nil
		},
		Pipeline: knowledge.Pipeline{
			Parser: parser.Parse, NoRerank: cfg.Get("NODEST_RERANK") == "none",
			Rules: func(contentType string) chunk.Rules {
				if own, ok := rules[contentType]; ok {
					return own
				}
				return rules[""]
			},
			Embedder: r.Models.Embedder, EmbedderOf: r.Models.EmbedderOf, Meaning: r.Models.Meaning, Transient: r.hub.Transient, Log: r.log,
			Model: model, Rerank: reranker, RerankTime: patience,
		},
	})
}

// modelRerankTime is how long a search waits for a model to order its passages.
const modelRerankTime = 6 * time.Second

// newReranker returns what orders the best passages after the words have, and how long a search
// waits for it; nil = nothing does. A server without the key that it needs degrades each search,
// and doctor tells.
func newReranker(cfg *setup.Config, model func(ctx context.Context, userID string) (*knowledge.Model, error)) (knowledge.Reranker, time.Duration) {
	switch name := cfg.Get("NODEST_RERANK"); name {
	case rerank.Jina, rerank.Cohere:
		client, err := rerank.New(RerankConfig(cfg))
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

// RerankConfig is how to reach the server that NODEST_RERANK names.
func RerankConfig(cfg *setup.Config) rerank.Config {
	keys := cfg.Get("COHERE_API_KEY")
	if cfg.Get("NODEST_RERANK") == rerank.Jina {
		keys = cfg.Get("JINA_API_KEY")
	}
	return rerank.Config{
		Server: cfg.Get("NODEST_RERANK"), BaseURL: cfg.Get("NODEST_RERANK_BASE_URL"), Model: cfg.Get("NODEST_RERANK_MODEL"),
		Keys: llm.ParseKeys(keys), Client: llm.HTTPClient(llm.Transport()),
	}
}
