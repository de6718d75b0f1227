package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"nodest/internal/backup"
	"nodest/internal/fault"
	"nodest/internal/instance"
	"nodest/internal/setup"
	"nodest/knowledge/rerank"
	"nodest/websearch/provider"
)

// checkRetention lists what the server removes by itself, and when.
func checkRetention(cfg *setup.Config) check {
	lines := []string{"a running server removes by itself"}
	for _, k := range instance.Retention(cfg).Rules() {
		lines = append(lines, k.What+": "+k.How)
	}
	return check{name: "retention", detail: strings.Join(lines, "\n    ")}
}

// checkBackups says how scheduled backups are going, also while a server runs.
func checkBackups(ctx context.Context, cfg *setup.Config, log *slog.Logger) check {
	c, plan := check{name: "backups"}, backup.PlanOf(cfg)
	if !hasDatabase(cfg) {
		c.detail = "none yet"
		return c
	}
	st, err := backup.ReadState(ctx, plan, storeOptions(cfg, log))
	if err != nil {
		return check{c.name, "cannot be checked", oneLine(err)}
	}
	c.detail, c.fix = st.Report()
	return c
}

// checkSearch sends a real query to each search provider.
func checkSearch(ctx context.Context, cfg *setup.Config, network bool) (checks []check) {
	w, err := instance.NewWeb(cfg, nil)
	if err != nil {
		return []check{{"web search", "misconfigured", oneLine(err)}}
	}
	defer func() { _ = w.Close() }() // nothing is kept
	names := w.Chain.Names()
	if len(names) == 0 {
		return []check{{name: "web search", detail: "off (NODEST_SEARCH is none)"}}
	}
	if !network {
		return []check{{name: "web search", detail: fmt.Sprintf("%v, not contacted", names)}}
	}
	for _, found := range w.Chain.Check(ctx) {
		c := check{name: "web search " + found.Provider, detail: fmt.Sprintf("%d results in %d ms", found.Found, found.Took.Milliseconds())}
		if found.Err != nil {
			c.detail, c.fix = "not usable", fault.Public(found.Err).Message
		}
		if c.fix != "" && found.Provider == provider.DuckDuckGo && cfg.Get("NODEST_SEARCH") == "" { // nobody has chosen it
			c.detail, c.fix = "not usable now ("+c.fix+"); set BRAVE_API_KEY, JINA_API_KEY, or NODEST_SEARCH_BASE_URL for a SearXNG server", ""
		}
		checks = append(checks, c)
	}
	return checks
}

// checkToolServers asks each MCP server for its tools.
func checkToolServers(ctx context.Context, cfg *setup.Config, network bool) (checks []check) {
	tools, err := instance.NewToolServers(cfg, true, slog.New(slog.DiscardHandler))
	if err != nil {
		return []check{{"MCP servers", "misconfigured", oneLine(err)}}
	}
	defer func() { _ = tools.Close() }() // nothing is kept
	if names := tools.Names(); !network && len(names) > 0 {
		return []check{{name: "MCP servers", detail: fmt.Sprintf("%v, not contacted", names)}}
	} else if !network {
		return nil
	}
	for _, o := range tools.Offers(ctx) {
		c := check{name: "MCP server " + o.Server, detail: fmt.Sprintf("%d tools", len(o.Tools))}
		if o.Err != nil {
			c.detail, c.fix = "not usable", fault.Public(o.Err).Message
		}
		checks = append(checks, c)
	}
	return checks
}

// checkRerank says what is wrong with NODEST_RERANK; nothing where words order the passages.
func checkRerank(cfg *setup.Config) []check {
	switch name := cfg.Get("NODEST_RERANK"); name {
	case rerank.Jina, rerank.Cohere:
		if _, err := rerank.New(instance.RerankConfig(cfg)); err != nil {
			return []check{{"reranking", "misconfigured", fault.Public(err).Message}}
		}
		return []check{{name: "reranking", detail: name + ", not contacted"}}
	}
	return nil
}
