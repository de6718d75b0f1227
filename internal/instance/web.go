package instance

import (
	"context"
	"net/url"
	"time"

	"nodest/internal/fault"
	"nodest/internal/kbtool"
	"nodest/internal/logtool"
	"nodest/internal/outbound"
	"nodest/internal/researchtool"
	"nodest/internal/setup"
	"nodest/internal/webtool"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
	"nodest/websearch"
	"nodest/websearch/provider"
	"nodest/websearch/reader"
	"nodest/websearch/research"
	"nodest/websearch/research/agent"
)

// searchTimeout is how long a reply waits for a web search.
const searchTimeout = 8 * time.Second

// Web is what the server reaches the web with.
type Web struct {
	Chain  *provider.Chain
	reader *reader.Reader
	guard  *outbound.Guard
}

// NewWeb reads the settings of web search. counter counts requests per month; nil = in
// memory.
func NewWeb(cfg *setup.Config, counter provider.Counter) (*Web, error) {
	allow := setup.Split(cfg.Get("NODEST_FETCH_ALLOW"))
	pages, err := outbound.New(outbound.Options{Allow: allow})
	if err != nil {
		return nil, fault.InvalidField("NODEST_FETCH_ALLOW", "format", "%s", err)
	}
	base := cfg.Get("NODEST_SEARCH_BASE_URL")
	if u, err := url.Parse(base); err == nil && u.Hostname() != "" { // the operator's choice may be private
		allow = append(allow, u.Hostname())
	}
	engines, err := outbound.New(outbound.Options{Allow: allow})
	if err != nil {
		return nil, fault.InvalidField("NODEST_SEARCH_BASE_URL", "format", "%s", err)
	}
	chain, err := provider.New(provider.Config{
		Names: setup.Split(cfg.Get("NODEST_SEARCH")), BraveKeys: llm.ParseKeys(cfg.Get("BRAVE_API_KEY")), JinaKeys: llm.ParseKeys(cfg.Get("JINA_API_KEY")),
		BaseURL: base, Client: engines.Client(outbound.Use{}), Counter: counter,
	})
	if err != nil {
		return nil, err
	}
	return &Web{chain, reader.New(pages, reader.Config{}), pages}, nil
}

func (w *Web) Close() error {
	w.reader.Close()
	return w.Chain.Close()
}

// searchCounter counts requests in the database, so that a restart does not begin anew.
type searchCounter struct{ db *store.DB }

// Add implements provider.Counter.
func (c searchCounter) Add(ctx context.Context, key, month string) (int, error) {
	n, err := c.db.CountSearch(ctx, key, month)
	return int(n), err
}

// service returns web search as the server offers it.
func (w *Web) service(r *Instance) *websearch.Service {
	return websearch.New(r.db.WebSearch(), websearch.Options{
		Chain: w.Chain, Reader: w.reader, Private: w.guard.Allows, Now: r.db.Now,
		Country: r.Cfg.Get("NODEST_SEARCH_COUNTRY"), Safe: r.Cfg.Get("NODEST_SEARCH_SAFE"),
		Keywords: r.Cfg.Get("NODEST_SEARCH_INTENT") == "keywords",
		Embedder: r.Models.Meaning,
		Model: func(ctx context.Context, userID string) (llm.Asker, error) {
			model, _, err := r.engine.SummaryModel(ctx, userID)
			return model, err
		},
		Log: r.log,
	})
}

// newResearch returns deep research as the server offers it.
func (r *Instance) newResearch() *research.Service {
	return research.New(r.db.Research(), research.Options{
		Web: r.search, Documents: r.knowledge, Embedder: r.Models.Meaning, Ended: []func(research.Tx, *research.Run) error{logtool.LogResearch, researchtool.Ended}, Transient: r.hub.Transient, Log: r.log,
		Model: func(ctx context.Context, userID string) (llm.Asker, error) {
			model, _, err := r.engine.SummaryModel(ctx, userID)
			return model, err
		},
		Budget:  agent.Budget{Tokens: r.Cfg.Count("NODEST_RESEARCH_TOKENS"), Seconds: r.Cfg.Count("NODEST_RESEARCH_SECONDS")},
		PerUser: r.Cfg.Count("NODEST_RESEARCH_RUNS"),
	})
}

// sources are what a turn asks besides the chat itself.
func (r *Instance) sources() []nodest.Source {
	return []nodest.Source{nodest.WithDocuments(r.timed(nodest.Memories(r.memory, RecallTimeout)), r.dreams), webtool.Source(r.search, searchTimeout), researchtool.Source(r.research, KnowledgeTimeout), r.lore.Source()}
}

// tools are what models may call while they write.
func (r *Instance) tools() []nodest.Toolbox {
	return []nodest.Toolbox{kbtool.Toolbox(r.knowledge, KnowledgeTimeout), webtool.Toolbox(r.search, searchTimeout), researchtool.Toolbox(r.research, r.search, KnowledgeTimeout), logtool.Goals(r.cognition, r.branches, KnowledgeTimeout), r.mcp.Toolbox()}
}
