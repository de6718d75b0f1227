package provider

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
)

// The names of the providers, as in NODEST_SEARCH, and None for no search.
const (
	Brave      = "brave"
	SearXNG    = "searxng"
	DuckDuckGo = "duckduckgo"
	Jina       = "jina"
	MCP        = "mcp"
	None       = "none"
)

// Config says which providers to ask.
type Config struct {
	Names     []string     // in order (NODEST_SEARCH); empty = those with a key or an address, then DuckDuckGo
	BraveKeys []llm.Key    // BRAVE_API_KEY
	JinaKeys  []llm.Key    // JINA_API_KEY
	BaseURL   string       // address of SearXNG or the MCP server; without them, of the others (NODEST_SEARCH_BASE_URL)
	Client    *http.Client // for all requests; with a transport of its own; required
	Counter   Counter      // counts the requests per month; nil = in memory
	Now       func() time.Time
}

// bases are the addresses of the providers that have one of their own.
var bases = map[string]string{
	Brave: "https://api.search.brave.com", DuckDuckGo: "https://html.duckduckgo.com", Jina: "https://s.jina.ai",
}

// New returns the chain that a configuration asks for. An unknown name or an address
// that is not valid is invalid_field; a missing key or address is not_configured, and
// details.what names the setting.
func New(cfg Config) (*Chain, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Counter == nil {
		cfg.Counter = &memoryCounter{}
	}
	cfg.BaseURL = strings.TrimRight(strings.TrimSpace(cfg.BaseURL), "/")
	if u, err := url.Parse(cfg.BaseURL); cfg.BaseURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return nil, fault.InvalidField("NODEST_SEARCH_BASE_URL", "format", "must be an http or https URL")
	}
	names, err := cfg.names()
	if err != nil {
		return nil, err
	}
	var providers []Provider
	for _, name := range names {
		p, err := cfg.provider(name, names)
		if err != nil {
			return nil, err
		}
		providers = append(providers, p)
	}
	return newChain(cfg.Now, providers...), nil
}

// names returns the providers to use, in order.
func (cfg Config) names() ([]string, error) {
	var names []string
	for _, n := range cfg.Names {
		n = strings.ToLower(strings.TrimSpace(n))
		switch {
		case n == "" || slices.Contains(names, n):
		case labels[n] == "" && n != None:
			return nil, fault.InvalidField("NODEST_SEARCH", "unknown", "unknown provider %q; use brave, searxng, duckduckgo, jina, mcp or none", n)
		default:
			names = append(names, n)
		}
	}
	switch {
	case slices.Contains(names, None):
		if len(names) > 1 {
			return nil, fault.InvalidField("NODEST_SEARCH", "invalid", "none cannot be combined with other providers")
		}
		return nil, nil
	case slices.Contains(names, SearXNG) && slices.Contains(names, MCP):
		return nil, fault.InvalidField("NODEST_SEARCH", "invalid", "searxng and mcp cannot be combined: there is one NODEST_SEARCH_BASE_URL")
	case len(names) > 0:
		return names, nil
	}
	return cfg.defaults(), nil
}

// defaults are the providers that are set up. An address whose path ends in /mcp or /sse
// is one of an MCP server.
func (cfg Config) defaults() (names []string) {
	if len(cfg.BraveKeys) > 0 {
		names = append(names, Brave)
	}
	switch {
	case cfg.BaseURL == "":
	case strings.HasSuffix(cfg.BaseURL, "/mcp") || strings.HasSuffix(cfg.BaseURL, "/sse"):
		names = append(names, MCP)
	default:
		names = append(names, SearXNG)
	}
	if len(cfg.JinaKeys) > 0 {
		names = append(names, Jina)
	}
	return append(names, DuckDuckGo)
}

func (cfg Config) provider(name string, all []string) (Provider, error) {
	a := api{name: name, base: bases[name], client: cfg.Client, now: cfg.Now}
	ownsURL := bases[name] == "" || !slices.Contains(all, SearXNG) && !slices.Contains(all, MCP)
	if cfg.BaseURL != "" && ownsURL {
		a.base = cfg.BaseURL
	}
	missing := func(setting string) error {
		return fault.New(fault.NotConfigured, "the search provider %s needs %s", name, setting).With("what", setting)
	}
	switch name {
	case Brave:
		if len(cfg.BraveKeys) == 0 {
			return nil, missing("BRAVE_API_KEY")
		}
		return newBrave(a, cfg.BraveKeys, cfg.Counter), nil
	case Jina:
		if len(cfg.JinaKeys) == 0 {
			return nil, missing("JINA_API_KEY")
		}
		return newJina(a, cfg.JinaKeys), nil
	case DuckDuckGo:
		return duckDuckGo{a}, nil
	}
	if a.base == "" {
		return nil, missing("NODEST_SEARCH_BASE_URL")
	}
	if name == MCP {
		return newMCP(a), nil
	}
	return newSearXNG(a), nil
}

// memoryCounter counts since the start of the program. It keeps the current month only.
type memoryCounter struct {
	mu    sync.Mutex
	month string
	n     map[string]int
}

func (c *memoryCounter) Add(_ context.Context, key, month string) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.month != month {
		c.month, c.n = month, map[string]int{}
	}
	c.n[key]++
	return c.n[key], nil
}
