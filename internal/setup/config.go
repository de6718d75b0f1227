package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"nodest/internal/mcptool"
	"nodest/knowledge/chunk"
)

// Setting is one row of the table of settings.
type Setting struct {
	Env     string // name in the environment
	Default string
	Help    string
	Secret  bool // masked by `nodest config`

	dotted string // a second name in the YAML file; "" = none
	check  func(string) error
}

// key is the setting's name in the YAML file and of its flag's value: the
// environment name without NODEST_, in lower case.
func (s Setting) key() string { return strings.ToLower(strings.TrimPrefix(s.Env, "NODEST_")) }

// Flag is the setting's flag: NODEST_LOG_LEVEL becomes log-level.
func (s Setting) Flag() string { return strings.ReplaceAll(s.key(), "_", "-") }

// names are those of the setting in the YAML file.
func (s Setting) names() []string {
	return slices.DeleteFunc([]string{s.key(), s.dotted}, func(name string) bool { return name == "" })
}

// Settings is every setting there is, in the order in which it is shown.
var Settings = []Setting{
	{Env: "NODEST_ADDR", Default: "127.0.0.1:8080", Help: "server address: where serve listens and other commands connect", check: isAddr},
	{Env: "NODEST_PUBLIC_URL", Help: "public URL of the server if it differs from NODEST_ADDR (behind a proxy, in a container): browsers may call from it, and sign-in links lead to it", check: isURL},
	{Env: "NODEST_DATA", Default: "./data", Help: "data folder with the database and the secret key"},
	{Env: "NODEST_DATABASE_URL", Help: "postgres://… URL of a PostgreSQL database; empty: SQLite in the data folder", Secret: true, check: isDatabase},
	{Env: "NODEST_NATS_URL", Help: "nats:// or tls:// URLs of NATS, separated by commas, with user and password: replies that another process writes are seen as they are written; empty: PostgreSQL carries them, a little later", Secret: true, check: isNATS},
	{Env: "NODEST_NATS_CREDS", Help: "file with the credentials for NATS, if it asks for them"},
	{Env: "NODEST_NATS_CA", Help: "file with the certificates that sign those of NATS; empty: those of the system"},
	{Env: "NODEST_ADMIN_TOKEN", Help: "bearer token with the owner's rights; at least 16 characters", Secret: true, check: isLong},
	{Env: "NODEST_SECRET_KEY", Help: "secret that encrypts stored provider keys; empty: generated and kept in the data folder", Secret: true},
	{Env: "NODEST_PROVIDER", Help: "default model provider: gemini, openrouter, openai, offline, or the name of a server that an owner has added on the page; empty: the first one with a key", check: readable(providerName)},
	{Env: "NODEST_MODEL", Help: "default model; empty: one of the provider's own list, an alias or the newest stable one. The server asks for the list when it starts; the first turn waits for it up to 3 seconds, and without it an alias answers"},
	{Env: "NODEST_FALLBACKS", Help: "comma-separated list of provider[:model] to try in order when the default fails; servers that owners have added can be named, too"},
	{Env: "GEMINI_API_KEY", Help: "Gemini API key; several, separated by commas, are rotated", Secret: true},
	{Env: "NODEST_GEMINI_BASE_URL", Help: "base URL of the Gemini API, if not the default", check: isURL},
	{Env: "NODEST_GEMINI_TRANSPORT", Help: "Gemini SDK for all models: generative-ai-go or genai; empty: chosen by model", check: oneOf("", "generative-ai-go", "genai")},
	{Env: "OPENROUTER_API_KEY", Help: "OpenRouter API key", Secret: true},
	{Env: "NODEST_OPENROUTER_BASE_URL", Help: "base URL of the OpenRouter API, if not the default", check: isURL},
	{Env: "NODEST_OPENROUTER_BACKUP_MODELS", Help: "comma-separated list of models that OpenRouter uses when the chosen one cannot answer"},
	{Env: "NODEST_OPENROUTER_SORT", Help: "how OpenRouter orders the providers of a model: price, latency or throughput; empty: as set in the OpenRouter account", check: oneOf("", "price", "latency", "throughput")},
	{Env: "NODEST_OPENROUTER_IGNORE", Help: "comma-separated list of providers that OpenRouter must not use"},
	{Env: "NODEST_OPENROUTER_DATA_COLLECTION", Help: "deny: OpenRouter uses no provider that keeps prompts; allow; empty: as set in the OpenRouter account", check: oneOf("", "allow", "deny")},
	{Env: "NODEST_OPENROUTER_STRICT_TURNS", Default: "auto", Help: "merge consecutive messages of the same role for OpenRouter: auto (except for OpenAI, Anthropic, Google Gemini and xAI models), on or off", check: oneOf("auto", "on", "off")},
	{Env: "OPENAI_API_KEY", Help: "API key of the OpenAI-compatible server, if it needs one", Secret: true},
	{Env: "OPENAI_BASE_URL", Help: "base URL of any OpenAI-compatible server, such as Ollama, llama.cpp, vLLM or LM Studio", check: isURL},
	{Env: "NODEST_OPENAI_STRICT_TURNS", Default: "auto", Help: "merge consecutive messages of the same role for the OpenAI-compatible server: auto (except for OpenAI, Azure, xAI, Google and Anthropic), on or off", check: oneOf("auto", "on", "off")},
	{Env: "NODEST_EMBEDDINGS", Help: "embedding provider for memories, documents and vectorised world-book entries: offline, gemini, openai or jina (which reads the passages of a page together); empty: gemini or openai if its key is set and it supports embeddings, else offline", check: oneOf("", "offline", "gemini", "openai", "jina")},
	{Env: "NODEST_EMBEDDING_MODEL", Help: "embedding model; empty: the provider's default"},
	{Env: "NODEST_MEMORY_IDLE_CLOSE", dotted: "memory.idle_close", Default: "30m", Help: "idle time before a model extracts facts from the latest messages", check: isDuration},
	{Env: "NODEST_MEMORY_SUMMARY_SYNC_WAIT", dotted: "memory.summary_sync_wait", Default: "3s", Help: "maximum time a reply waits for a summary when the chat no longer fits the model's context", check: isDuration},
	{Env: "NODEST_SEARCH", Help: "web search providers in the order in which they are tried: brave, searxng, jina, mcp or duckduckgo, separated by commas; none: no web search; empty: those with a key or address, then duckduckgo"},
	{Env: "BRAVE_API_KEY", Help: "Brave Search API key; several, separated by commas, are rotated", Secret: true},
	{Env: "JINA_API_KEY", Help: "Jina API key for web search, reranking and embeddings; several, separated by commas, are rotated", Secret: true},
	{Env: "NODEST_JINA_BASE_URL", Help: "base URL of the Jina API for embeddings, if not the default", check: isURL},
	{Env: "NODEST_SEARCH_BASE_URL", Help: "URL of the SearXNG server or MCP server for web search; for other providers an override", check: isURL},
	{Env: "NODEST_SEARCH_INTENT", Default: "classifier", Help: "what decides whether a message needs a web search: classifier, or keywords as in the NodeST app", check: oneOf("classifier", "keywords")},
	{Env: "NODEST_SEARCH_COUNTRY", Help: "country of the search results, two letters such as US or CN; empty: any", check: isCountry},
	{Env: "NODEST_SEARCH_SAFE", Default: "moderate", Help: "safe search: off, moderate or strict", check: oneOf("off", "moderate", "strict")},
	{Env: "NODEST_RESEARCH_TOKENS", Default: "60000", Help: "tokens that a deep research may use if it names no budget: 2000 to 1000000", check: isWithin(2_000, 1_000_000)},
	{Env: "NODEST_RESEARCH_SECONDS", Default: "600", Help: "seconds that a deep research may take if it names no budget: 10 to 3600", check: isWithin(10, 3_600)},
	{Env: "NODEST_RESEARCH_RUNS", Default: "2", Help: "maximum concurrent deep research runs per user; more wait", check: isPositive},
	{Env: "NODEST_KB_FILES", Default: "5000", Help: "maximum number of documents per user", check: isPositive},
	{Env: "NODEST_KB_MEGABYTES", Default: "10240", Help: "maximum size of all documents of a user together, in MiB", check: isPositive},
	{Env: "NODEST_KB_CHUNK_RULES", Help: "size and overlap of chunks by type of document, such as code=1500/200,csv=2000/0,default=800/100; empty: 800/400", check: readable(ChunkRules)},
	{Env: "NODEST_RERANK", Default: "local", Help: "how the best passages of a document search are ordered: local (by how their words match the question); none; jina or cohere (question and passages are sent there after local ordering); or llm (they are sent to the user's model)", check: oneOf("local", "none", "jina", "cohere", "llm")},
	{Env: "NODEST_RERANK_BASE_URL", Help: "base URL of a server that reranks as Jina or Cohere do, if not theirs; /rerank is added", check: isURL},
	{Env: "NODEST_RERANK_MODEL", Help: "model for reranking with jina or cohere; empty: jina-reranker-v2-base-multilingual or rerank-v3.5"},
	{Env: "COHERE_API_KEY", Help: "Cohere API key for reranking; several, separated by commas, are rotated", Secret: true},
	{Env: "NODEST_MCP_SERVERS", Help: "MCP servers whose tools characters may call, if their settings say so: name=https://host/mcp, separated by commas; they may be on private addresses", check: readable(toolServers)},
	{Env: "NODEST_MCP_KEYS", Help: "bearer tokens for these servers: name=token, separated by commas", Secret: true},
	{Env: "NODEST_FETCH_ALLOW", Help: "comma-separated list of hosts, addresses and networks (10.0.0.0/8) that web search may reach although they are private, on any port"},
	{Env: "NODEST_ORIGINS", Help: "comma-separated list of other web origins that may connect (CORS and WebSocket); empty: none"},
	{Env: "NODEST_TRUSTED_PROXIES", Help: "comma-separated list of addresses and networks (10.0.0.0/8) of reverse proxies in front of the server; failed sign-ins and connections before sign-in are counted by the client's address in their X-Forwarded-For; empty: by the address that connects", check: readable(Networks)},
	{Env: "NODEST_METRICS", Default: "owner", Help: "who may read /metrics: owner (with an owner's token), or open (whoever reaches the server)", check: oneOf("owner", "open")},
	{Env: "NODEST_QUOTA_MEGABYTES", Default: "10240", Help: "maximum size of what a user stores besides documents, in MiB: texts, cards, images, memories; 0: no limit", check: isCount},
	{Env: "NODEST_QUOTA_MESSAGES", Default: "5000000", Help: "maximum number of messages per user; 0: no limit", check: isCount},
	{Env: "NODEST_QUOTA_ITEMS", Default: "100000", Help: "maximum number per user of conversations, of characters, of memories, and of each other kind; 0: no limit", check: isCount},
	{Env: "NODEST_EVENT_DAYS", Default: "7", Help: "days for which events are kept for devices that were away; a device that comes back later loads a snapshot", check: isDays},
	{Env: "NODEST_EVENT_COUNT", Default: "20000", Help: "maximum number of events kept per user", check: isPositive},
	{Env: "NODEST_AUDIT_DAYS", Default: "180", Help: "days for which the audit log is kept: sign-ins, and changes of accounts, rights, keys and limits", check: isDays},
	{Env: "NODEST_TOKENS_PER_DAY", Default: "0", Help: "maximum tokens per user and day; 0: no limit", check: isCount},
	{Env: "NODEST_USD_PER_MONTH", Default: "0", Help: "maximum cost of models per user and month, in US dollars, where the provider tells the cost; 0: no limit", check: isAmount},
	{Env: "NODEST_GENERATIONS", Default: "2", Help: "maximum concurrent replies per user", check: isCount},
	{Env: "NODEST_REPLY_KILOBYTES", Default: "1024", Help: "maximum size of a reply with the model's reasoning, in KiB; a longer one is cut there and ends with finish length", check: isPositive},
	{Env: "NODEST_REQUEST_MEGABYTES", Default: "1024", Help: "memory for large requests and answers in work, in MiB, estimated at four times their size and 64 bytes for each JSON value; one user may take half of it", check: isPositive},
	{Env: "NODEST_MAX_CONNECTIONS", Default: "10000", Help: "maximum WebSocket connections and event streams of this process", check: isCount},
	{Env: "NODEST_BACKUP_FOLDER", Help: "folder for scheduled backups, which has to exist; empty: no scheduled backups"},
	{Env: "NODEST_BACKUP_INTERVAL", Default: "24h", Help: "time between scheduled backups, at least 1m", check: isInterval},
	{Env: "NODEST_BACKUP_KEEP", Default: "7", Help: "number of scheduled backups that are kept; older ones are deleted", check: isPositive},
	{Env: "NODEST_GRACE", Default: "20s", Help: "maximum time running replies may take to finish after a stop signal", check: isDuration},
	{Env: "NODEST_OFFLINE_DELAY", Default: "15ms", Help: "delay between words of the offline model", check: isDuration},
	{Env: "NODEST_LOG_LEVEL", Default: "info", Help: "log level: debug, info, warn or error", check: oneOf("debug", "info", "warn", "error")},
	{Env: "NODEST_LOG_FORMAT", Default: "text", Help: "log format: text or json", check: oneOf("text", "json")},
	{Env: "NODEST_CONFIG", Help: "YAML configuration file; it uses the same names, in lower case and without NODEST_"},
}

// Config is the effective configuration: flag before environment before file
// before default. Values have passed their check.
type Config struct {
	values map[string]string // by environment name
	from   map[string]string // where each value came from
}

// Get returns the value of a setting, by its name in the environment.
func (c *Config) Get(env string) string { return c.values[env] }

// From says where a value came from: flag, environment, default, or the path of the file.
func (c *Config) From(env string) string { return c.from[env] }

// Duration is Get of a duration.
func (c *Config) Duration(env string) time.Duration {
	d, _ := time.ParseDuration(c.Get(env)) // checked on loading
	return d
}

// Count is Get of a number.
func (c *Config) Count(env string) int {
	n, _ := strconv.Atoi(c.Get(env)) // checked on loading
	return n
}

// Amount is Get of an amount.
func (c *Config) Amount(env string) float64 {
	n, _ := strconv.ParseFloat(c.Get(env), 64) // checked on loading
	return n
}

// Load reads all sources; flags holds values by environment name.
func Load(getenv func(string) string, flags map[string]string) (*Config, error) {
	path := cmp.Or(flags["NODEST_CONFIG"], getenv("NODEST_CONFIG"))
	file, err := readConfigFile(path)
	if err != nil {
		return nil, err
	}
	c := &Config{values: map[string]string{}, from: map[string]string{}}
	for _, s := range Settings {
		value, from := s.Default, "default"
		for _, name := range s.names() {
			if v, ok := file[name]; ok {
				value, from = v, path
			}
		}
		if v := getenv(s.Env); v != "" {
			value, from = v, "environment"
		}
		if v, ok := flags[s.Env]; ok {
			value, from = v, "flag"
		}
		if s.check != nil && (value != "" || s.Default != "") {
			if err := s.check(value); err != nil {
				return nil, fmt.Errorf("%s (from %s): %w", s.Env, from, err)
			}
		}
		c.values[s.Env], c.from[s.Env] = value, from
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
	for _, s := range Settings {
		known = append(known, s.names()...)
	}
	out := make(map[string]string, len(doc))
	for name, v := range doc {
		if !slices.Contains(known, name) {
			slices.Sort(known)
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

// Shown is a value as it may be printed.
func (s Setting) Shown(value string) string {
	if s.Secret && value != "" {
		return "••••••••"
	}
	return value
}

// providerName refuses what no provider and no added server can be called. Whether there is such a server is known
// when it is asked: owners add servers while the program runs.
func providerName(v string) (string, error) {
	if v == "" || builtIn(v) || canBeAdded(v) {
		return v, nil
	}
	return "", fmt.Errorf("%q is invalid; must be one of %s, or the name of a server that an owner has added", v, strings.Join(ProviderNames, ", "))
}

func oneOf(words ...string) func(string) error {
	return func(v string) error {
		if slices.Contains(words, v) {
			return nil
		}
		return fmt.Errorf("%q is invalid; must be one of %s", v, strings.TrimPrefix(strings.Join(words, ", "), ", ")) // "" is the first
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

func isNATS(v string) error {
	for address := range strings.SplitSeq(v, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return errors.New("must be nats://host:port or tls://host:port; several are separated by commas")
		}
	}
	return nil
}

func isLong(v string) error {
	if len(v) < 16 {
		return errors.New("must have at least 16 characters, because it gives full access to the server")
	}
	return nil
}

func toolServers(list string) ([]mcptool.Server, error) { return mcptool.Parse(list, "") }

// Networks reads a list of addresses and networks.
func Networks(list string) (nets []netip.Prefix, err error) {
	for _, item := range Split(list) {
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

var isCount, isPositive = atLeast(0), atLeast(1)

// atLeast accepts whole numbers of kilobytes, megabytes or things, as far as a number of bytes can hold
// them.
func atLeast(least int) func(string) error { return isWithin(least, 1<<40) }

// isWithin accepts whole numbers between two others.
func isWithin(least, most int) func(string) error {
	return func(v string) error {
		switch n, err := strconv.Atoi(v); {
		case err != nil || n < least:
			return fmt.Errorf("%q is invalid; must be a whole number, %d or more", v, least)
		case n > most:
			return fmt.Errorf("%q is too large; must be at most %d", v, most)
		}
		return nil
	}
}

// isDays accepts a number of days, up to a hundred years.
func isDays(v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 36_500 {
		return fmt.Errorf("%q is invalid; must be a whole number of days, 1 to 36500", v)
	}
	return nil
}

func isAmount(v string) error {
	if n, err := strconv.ParseFloat(v, 64); err != nil || !(n >= 0 && n <= 1e9) {
		return fmt.Errorf("%q is invalid; must be an amount such as 2.50", v)
	}
	return nil
}

func isDuration(v string) error {
	if d, err := time.ParseDuration(v); err != nil || d < 0 {
		return fmt.Errorf("%q is invalid; must be a duration such as 20s", v)
	}
	return nil
}

func isInterval(v string) error {
	if d, err := time.ParseDuration(v); err != nil || d < time.Minute {
		return fmt.Errorf("%q is invalid; must be a duration of at least 1m, such as 24h", v)
	}
	return nil
}

// DataFolder is the data folder as an absolute path.
func (c *Config) DataFolder() string {
	dir := c.Get("NODEST_DATA")
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// OnlyHere reports whether only this machine can reach the server: it listens on a
// loopback address, or, in a container, its port is published on one.
func (c *Config) OnlyHere() bool {
	public, err := url.Parse(c.Get("NODEST_PUBLIC_URL"))
	return Loopback(c.Get("NODEST_ADDR")) || err == nil && Loopback(net.JoinHostPort(public.Hostname(), "0"))
}

// Loopback reports whether only this machine can reach addr.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Split returns the items of a list with commas.
func Split(list string) []string {
	var items []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// ChunkRules reads a list such as code=1500/200,csv=2000/0,default=800/100: the size of
// chunks and their overlap in characters by type of content. The rules of "" are those of
// all other types.
func ChunkRules(list string) (map[string]chunk.Rules, error) {
	rules := map[string]chunk.Rules{"": chunk.Default}
	for _, entry := range Split(list) {
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

// readable accepts what read can read.
func readable[T any](read func(string) (T, error)) func(string) error {
	return func(v string) error {
		_, err := read(v)
		return err
	}
}

// NewLog returns the log that is configured.
func NewLog(out io.Writer, cfg *Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Get("NODEST_LOG_LEVEL"))) // checked on loading
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Get("NODEST_LOG_FORMAT") == "json" {
		return slog.New(slog.NewJSONHandler(out, opts))
	}
	return slog.New(slog.NewTextHandler(out, opts))
}
