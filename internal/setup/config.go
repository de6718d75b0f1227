package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// setting is one row of the configuration table: the README prints the same.
type setting struct {
	env    string // name in the environment
	dotted string // a second name in the YAML file; "" = none
	def    string
	help   string
	secret bool // masked by `nodest config`
	check  func(string) error
}

// key is the setting's name in the YAML file and of its flag's value: the
// environment name without NODEST_, in lower case.
func (s setting) key() string { return strings.ToLower(strings.TrimPrefix(s.env, "NODEST_")) }

// flag is the setting's flag: NODEST_LOG_LEVEL becomes log-level.
func (s setting) flag() string { return strings.ReplaceAll(s.key(), "_", "-") }

// names are those of the setting in the YAML file.
func (s setting) names() []string {
	if s.dotted == "" {
		return []string{s.key()}
	}
	return []string{s.key(), s.dotted}
}

// settings is every setting there is, in the order in which it is shown.
var settings = []setting{
	{env: "NODEST_ADDR", def: "127.0.0.1:8080", help: "server address: where serve listens and other commands connect", check: isAddr},
	{env: "NODEST_PUBLIC_URL", help: "public URL of the server if it differs from NODEST_ADDR (behind a proxy, in a container): browsers may call from it, and sign-in links lead to it", check: isURL},
	{env: "NODEST_DATA", def: "./data", help: "data folder with the database and the secret key"},
	{env: "NODEST_DATABASE_URL", help: "postgres://… URL of a PostgreSQL database; empty: SQLite in the data folder", secret: true, check: isDatabase},
	{env: "NODEST_ADMIN_TOKEN", help: "bearer token with the owner's rights; at least 16 characters", secret: true, check: isLong},
	{env: "NODEST_SECRET_KEY", help: "secret that encrypts stored provider keys; empty: generated and kept in the data folder", secret: true},
	{env: "NODEST_PROVIDER", help: "default model provider: gemini, openrouter, openai or offline; empty: the first one with a key", check: oneOf("", "gemini", "openrouter", "openai", "offline")},
	{env: "NODEST_MODEL", help: "default model; empty: one of the provider's own list, an alias or the newest stable one"},
	{env: "NODEST_FALLBACKS", help: "comma-separated list of provider[:model] to try in order when the default fails"},
	{env: "GEMINI_API_KEY", help: "Gemini API key; several, separated by commas, are rotated", secret: true},
	{env: "NODEST_GEMINI_BASE_URL", help: "base URL of the Gemini API, if not the default", check: isURL},
	{env: "NODEST_GEMINI_TRANSPORT", help: "Gemini SDK for all models: generative-ai-go or genai; empty: chosen by model", check: oneOf("", "generative-ai-go", "genai")},
	{env: "OPENROUTER_API_KEY", help: "OpenRouter API key", secret: true},
	{env: "NODEST_OPENROUTER_BASE_URL", help: "base URL of the OpenRouter API, if not the default", check: isURL},
	{env: "NODEST_OPENROUTER_BACKUP_MODELS", help: "comma-separated list of models that OpenRouter uses when the chosen one cannot answer"},
	{env: "NODEST_OPENROUTER_SORT", help: "how OpenRouter orders the providers of a model: price, latency or throughput; empty: as set in the OpenRouter account", check: oneOf("", "price", "latency", "throughput")},
	{env: "NODEST_OPENROUTER_IGNORE", help: "comma-separated list of providers that OpenRouter must not use"},
	{env: "NODEST_OPENROUTER_DATA_COLLECTION", help: "deny: OpenRouter uses no provider that keeps prompts; allow; empty: as set in the OpenRouter account", check: oneOf("", "allow", "deny")},
	{env: "NODEST_OPENROUTER_STRICT_TURNS", def: "auto", help: "merge consecutive messages of the same role for OpenRouter: auto (except for OpenAI, Anthropic, Google Gemini and xAI models), on or off", check: oneOf("auto", "on", "off")},
	{env: "OPENAI_API_KEY", help: "API key of the OpenAI-compatible server, if it needs one", secret: true},
	{env: "OPENAI_BASE_URL", help: "base URL of any OpenAI-compatible server, such as Ollama, llama.cpp, vLLM or LM Studio", check: isURL},
	{env: "NODEST_OPENAI_STRICT_TURNS", def: "auto", help: "merge consecutive messages of the same role for the OpenAI-compatible server: auto (except for OpenAI, Azure, xAI, Google and Anthropic), on or off", check: oneOf("auto", "on", "off")},
	{env: "NODEST_EMBEDDINGS", help: "embedding provider for memories and documents: offline, gemini or openai; empty: gemini or openai if its key is set and it supports embeddings, else offline", check: oneOf("", "offline", "gemini", "openai")},
	{env: "NODEST_EMBEDDING_MODEL", help: "embedding model; empty: the provider's default"},
	{env: "NODEST_MEMORY_IDLE_CLOSE", dotted: "memory.idle_close", def: "30m", help: "idle time before a model extracts facts from the latest messages", check: isDuration},
	{env: "NODEST_MEMORY_SUMMARY_SYNC_WAIT", dotted: "memory.summary_sync_wait", def: "3s", help: "maximum time a reply waits for a summary when the chat no longer fits the model's context", check: isDuration},
	{env: "NODEST_SEARCH", help: "web search providers in the order in which they are tried: brave, searxng, jina, mcp or duckduckgo, separated by commas; none: no web search; empty: those with a key or address, then duckduckgo"},
	{env: "BRAVE_API_KEY", help: "Brave Search API key; several, separated by commas, are rotated", secret: true},
	{env: "JINA_API_KEY", help: "Jina API key for web search and reranking; several, separated by commas, are rotated", secret: true},
	{env: "NODEST_SEARCH_BASE_URL", help: "URL of the SearXNG server or MCP server for web search; for other providers an override", check: isURL},
	{env: "NODEST_SEARCH_INTENT", def: "classifier", help: "what decides whether a message needs a web search: classifier, or keywords as in the NodeST app", check: oneOf("classifier", "keywords")},
	{env: "NODEST_SEARCH_COUNTRY", help: "country of the search results, two letters such as US or CN; empty: any", check: isCountry},
	{env: "NODEST_SEARCH_SAFE", def: "moderate", help: "safe search: off, moderate or strict", check: oneOf("off", "moderate", "strict")},
	{env: "NODEST_KB_FILES", def: "5000", help: "maximum number of documents per user", check: isPositive},
	{env: "NODEST_KB_MEGABYTES", def: "10240", help: "maximum size of all documents of a user together, in MiB", check: isPositive},
	{env: "NODEST_KB_CHUNK_RULES", help: "size and overlap of chunks by type of document, such as code=1500/200,csv=2000/0,default=800/100; empty: 800/400", check: areChunkRules},
	{env: "NODEST_RERANK", def: "local", help: "how the best passages of a document search are ordered: local (by how their words match the question); none; jina or cohere (question and passages are sent there after local ordering); or llm (they are sent to the user's model)", check: oneOf("local", "none", "jina", "cohere", "llm")},
	{env: "NODEST_RERANK_BASE_URL", help: "base URL of a server that reranks as Jina or Cohere do, if not theirs; /rerank is added", check: isURL},
	{env: "NODEST_RERANK_MODEL", help: "model for reranking with jina or cohere; empty: jina-reranker-v2-base-multilingual or rerank-v3.5"},
	{env: "COHERE_API_KEY", help: "Cohere API key for reranking; several, separated by commas, are rotated", secret: true},
	{env: "NODEST_MCP_SERVERS", help: "MCP servers whose tools characters may call, if their settings say so: name=https://host/mcp, separated by commas; they may be on private addresses", check: areToolServers},
	{env: "NODEST_MCP_KEYS", help: "bearer tokens for these servers: name=token, separated by commas", secret: true},
	{env: "NODEST_FETCH_ALLOW", help: "comma-separated list of hosts, addresses and networks (10.0.0.0/8) that web search may reach although they are private, on any port"},
	{env: "NODEST_ORIGINS", help: "comma-separated list of other web origins that may connect (CORS and WebSocket); empty: none"},
	{env: "NODEST_TRUSTED_PROXIES", help: "comma-separated list of addresses and networks (10.0.0.0/8) of reverse proxies in front of the server; failed sign-ins and connections before sign-in are counted by the client's address in their X-Forwarded-For; empty: by the address that connects", check: areNetworks},
	{env: "NODEST_METRICS", def: "owner", help: "who may read /metrics: owner (with an owner's token), or open (whoever reaches the server)", check: oneOf("owner", "open")},
	{env: "NODEST_QUOTA_MEGABYTES", def: "10240", help: "maximum size of what a user stores besides documents, in MiB: texts, cards, images, memories; 0: no limit", check: isCount},
	{env: "NODEST_QUOTA_MESSAGES", def: "5000000", help: "maximum number of messages per user; 0: no limit", check: isCount},
	{env: "NODEST_QUOTA_ITEMS", def: "100000", help: "maximum number per user of conversations, of characters, of memories, and of each other kind; 0: no limit", check: isCount},
	{env: "NODEST_EVENT_DAYS", def: "7", help: "days for which events are kept for devices that were away; a device that comes back later loads a snapshot", check: isDays},
	{env: "NODEST_EVENT_COUNT", def: "20000", help: "maximum number of events kept per user", check: isPositive},
	{env: "NODEST_TOKENS_PER_DAY", def: "0", help: "maximum tokens per user and day; 0: no limit", check: isCount},
	{env: "NODEST_GENERATIONS", def: "2", help: "maximum concurrent replies per user", check: isCount},
	{env: "NODEST_REPLY_KILOBYTES", def: "1024", help: "maximum size of a reply with the model's reasoning, in KiB; a longer one is cut there and ends with finish length", check: isPositive},
	{env: "NODEST_REQUEST_MEGABYTES", def: "1024", help: "memory for large requests and answers in work, in MiB, estimated at four times their size and 64 bytes for each JSON value; one user may take half of it", check: isPositive},
	{env: "NODEST_MAX_CONNECTIONS", def: "10000", help: "maximum WebSocket connections and event streams of this process", check: isCount},
	{env: "NODEST_GRACE", def: "20s", help: "maximum time running replies may take to finish after a stop signal", check: isDuration},
	{env: "NODEST_OFFLINE_DELAY", def: "15ms", help: "delay between words of the offline model", check: isDuration},
	{env: "NODEST_LOG_LEVEL", def: "info", help: "log level: debug, info, warn or error", check: oneOf("debug", "info", "warn", "error")},
	{env: "NODEST_LOG_FORMAT", def: "text", help: "log format: text or json", check: oneOf("text", "json")},
	{env: "NODEST_CONFIG", help: "YAML configuration file; it uses the same names, in lower case and without NODEST_"},
}

// config is the effective configuration: flag before environment before file
// before default. Values have passed their check.
type config struct {
	values map[string]string // by environment name
	from   map[string]string // where each value came from
}

func (c *config) get(env string) string { return c.values[env] }

func (c *config) duration(env string) time.Duration {
	d, _ := time.ParseDuration(c.get(env)) // checked on loading
	return d
}

func (c *config) count(env string) int {
	n, _ := strconv.Atoi(c.get(env)) // checked on loading
	return n
}

// loadConfig reads all sources; flags holds values by environment name.
func loadConfig(getenv func(string) string, flags map[string]string) (*config, error) {
	path := flags["NODEST_CONFIG"]
	if path == "" {
		path = getenv("NODEST_CONFIG")
	}
	file, err := readConfigFile(path)
	if err != nil {
		return nil, err
	}
	c := &config{values: map[string]string{}, from: map[string]string{}}
	for _, s := range settings {
		value, from := s.def, "default"
		for _, name := range s.names() {
			if v, ok := file[name]; ok {
				value, from = v, path
			}
		}
		if v := getenv(s.env); v != "" {
			value, from = v, "environment"
		}
		if v, ok := flags[s.env]; ok {
			value, from = v, "flag"
		}
		if s.check != nil && (value != "" || s.def != "") {
			if err := s.check(value); err != nil {
				return nil, fmt.Errorf("%s (from %s): %w", s.env, from, err)
			}
		}
		c.values[s.env], c.from[s.env] = value, from
	}
	return c, nil
}

// readConfigFile returns the members of a YAML file as texts. A name that no
// setting has is an error: a typo must not be ignored silently.
func readConfigFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("NODEST_CONFIG: no file %s", path)
	}
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var known []string
	for _, s := range settings {
		known = append(known, s.names()...)
	}
	out := make(map[string]string, len(doc))
	for name, v := range doc {
		if !slices.Contains(known, name) {
			sort.Strings(known)
			return nil, fmt.Errorf("%s: unknown setting %q; the settings are %s", path, name, strings.Join(known, ", "))
		}
		if list, ok := v.([]any); ok {
			parts := make([]string, len(list))
			for i, item := range list {
				parts[i] = fmt.Sprint(item)
			}
			v = strings.Join(parts, ",")
		}
		if v != nil {
			out[name] = fmt.Sprint(v)
		}
	}
	return out, nil
}

// shown is a value as it may be printed.
func (s setting) shown(value string) string {
	if s.secret && value != "" {
		return "••••••••"
	}
	return value
}

func oneOf(words ...string) func(string) error {
	return func(v string) error {
		if slices.Contains(words, v) {
			return nil
		}
		return fmt.Errorf("%q is invalid; must be one of %s", v, strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), ", "))
	}
}

func isAddr(v string) error {
	_, port, err := net.SplitHostPort(v)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is invalid; must be host:port", v)
	}
	return nil
}

func isURL(v string) error {
	u, err := url.Parse(v)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return errors.New("must be a URL such as https://host/path")
	}
	return nil
}

func isDatabase(v string) error {
	if strings.HasPrefix(v, "postgres://") || strings.HasPrefix(v, "postgresql://") {
		return nil
	}
	return errors.New("must be a URL such as postgres://user@host/database") // the value may hold a password
}

func isLong(v string) error {
	if len(v) < 16 {
		return errors.New("must have at least 16 characters, because it gives full access to the server")
	}
	return nil
}

func areNetworks(v string) error {
	_, err := networks(v)
	return err
}

// networks reads a list of addresses and networks.
func networks(list string) (nets []netip.Prefix, err error) {
	for _, item := range split(list) {
		net, err := netip.ParsePrefix(item)
		if addr, single := netip.ParseAddr(item); single == nil {
			net, err = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is invalid; must be an address such as 127.0.0.1 or a network such as 10.0.0.0/8", item)
		}
		if mapped := net.Addr(); mapped.Is4In6() && net.Bits() >= 96 { // ::ffff:10.0.0.0/104 is 10.0.0.0/8
			net = netip.PrefixFrom(mapped.Unmap(), net.Bits()-96)
		}
		nets = append(nets, net)
	}
	return nets, nil
}

func isCountry(v string) error {
	if len(v) != 2 || strings.Trim(strings.ToUpper(v), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("%q is invalid; must be two letters such as US", v)
	}
	return nil
}

func isCount(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 0 {
		return fmt.Errorf("%q is invalid; must be a whole number, 0 or more", v)
	}
	return notTooLarge(v)
}

func isPositive(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 {
		return fmt.Errorf("%q is invalid; must be a whole number, 1 or more", v)
	}
	return notTooLarge(v)
}

// isDays accepts a number of days, up to a hundred years.
func isDays(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 36_500 {
		return fmt.Errorf("%q is invalid; must be a whole number of days, 1 to 36500", v)
	}
	return nil
}

// notTooLarge keeps numbers of kilobytes and megabytes within what a number of bytes can be.
func notTooLarge(v string) error {
	const most = 1 << 40
	if n, err := strconv.Atoi(v); err != nil || n > most {
		return fmt.Errorf("%q is too large; must be at most %d", v, most)
	}
	return nil
}

func isDuration(v string) error {
	if d, err := time.ParseDuration(v); err != nil || d < 0 {
		return fmt.Errorf("%q is invalid; must be a duration such as 20s", v)
	}
	return nil
}

// onlyHere says whether only this machine can reach the server: it listens on a
// loopback address, or, in a container, its port is published on one.
func (c *config) onlyHere() bool {
	public, err := url.Parse(c.get("NODEST_PUBLIC_URL"))
	return loopback(c.get("NODEST_ADDR")) || err == nil && loopback(net.JoinHostPort(public.Hostname(), "0"))
}

// loopback says whether only this machine can reach addr.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
