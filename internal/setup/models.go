package setup

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/lru"
	"nodest/internal/metrics"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/llm/gemini"
	"nodest/llm/offline"
	"nodest/llm/openai"
	"nodest/nodest"
	"nodest/server"
)

// ProviderNames is every built-in provider, in the order in which a default is looked for.
var ProviderNames = []string{"gemini", "openrouter", "openai", "offline"}

// Models finds the generator of a turn: of the server's configuration, or with a
// user's own key. It is nodest.Models.
type Models struct {
	cfg       *Config
	log       *slog.Logger
	def       string // the server's default provider
	server    map[string]llm.Provider
	jina      *openai.Client // nil = it has no key
	fallbacks []llm.Ref
	keys      func(ctx context.Context, userID string) (map[string]string, error)
	added     func(ctx context.Context) ([]*account.OpenServer, error) // nil = there are none

	metrics *metrics.Set // counts requests; nil = nobody counts them

	lists  *lists
	probed probed // tells if the server makes vectors

	mu  sync.Mutex
	own *lru.Cache[ownKey, llm.Provider] // with users' keys, so that a cooling key stays known
}

type ownKey struct {
	provider string
	key      [32]byte // digest; none = the server's
}

// keepOwn bounds the users' clients that are kept.
const keepOwn = 1000

// NewModels builds the providers whose key or address is configured, and the
// offline model. keys returns a user's own keys by provider.
func NewModels(cfg *Config, log *slog.Logger, keys func(context.Context, string) (map[string]string, error)) (*Models, error) {
	m := &Models{cfg: cfg, log: log, server: map[string]llm.Provider{}, keys: keys, lists: newLists(), own: lru.New[ownKey, llm.Provider](keepOwn)}
	m.def = cfg.Get("NODEST_PROVIDER")
	for _, name := range ProviderNames {
		secret, usable := m.configured(name)
		if !usable && name == m.def {
			return nil, fault.New(fault.NotConfigured, "NODEST_PROVIDER is %s, but %s is not set", name, needs[name])
		}
		if !usable {
			continue
		}
		m.def = cmp.Or(m.def, name)
		p, err := m.client(name, secret)
		if err != nil {
			return nil, err
		}
		m.server[name] = p
	}
	var err error
	if m.jina, err = newJina(cfg); err != nil {
		return nil, err
	}
	if err := m.checkEmbeddings(); err != nil {
		return nil, err
	}
	if m.fallbacks, err = llm.ParseRefs(cfg.Get("NODEST_FALLBACKS")); err != nil {
		return nil, err
	}
	for _, ref := range m.fallbacks {
		if m.server[ref.Provider] == nil && !canBeAdded(ref.Provider) {
			return nil, fault.New(fault.NotConfigured, "NODEST_FALLBACKS contains %s, which is not configured", ref.Provider)
		}
	}
	return m, nil
}

// needs says what each provider wants set.
var needs = map[string]string{
	"gemini": "GEMINI_API_KEY", "openrouter": "OPENROUTER_API_KEY", "openai": "OPENAI_API_KEY or OPENAI_BASE_URL",
	"jina": "JINA_API_KEY",
}

// keySettings are the settings with the server's keys.
var keySettings = map[string]string{
	"gemini": "GEMINI_API_KEY", "openrouter": "OPENROUTER_API_KEY", "openai": "OPENAI_API_KEY",
}

// configured returns the server's key of a provider and whether it can be used.
func (m *Models) configured(name string) (secret string, usable bool) {
	secret = m.cfg.Get(keySettings[name])
	keyless := name == "offline" || name == "openai" && m.cfg.Get("OPENAI_BASE_URL") != ""
	return secret, secret != "" || keyless
}

// client builds one provider. The configured model belongs to the configured
// provider alone: no other one knows it.
func (m *Models) client(name, secret string) (llm.Provider, error) {
	model := ""
	if name == m.def && name != "offline" {
		model = m.cfg.Get("NODEST_MODEL")
	}
	keys := llm.ParseKeys(secret)
	switch name {
	case "gemini":
		return gemini.New(keys, gemini.Options{
			BaseURL: m.cfg.Get("NODEST_GEMINI_BASE_URL"), Model: model, Prefer: m.cfg.Get("NODEST_GEMINI_TRANSPORT"),
		})
	case "openrouter":
		return openai.New(keys, openai.Options{
			Name: openai.OpenRouter, BaseURL: m.cfg.Get("NODEST_OPENROUTER_BASE_URL"), Model: model,
			Routing: openai.Routing{
				Backups: Split(m.cfg.Get("NODEST_OPENROUTER_BACKUP_MODELS")), Sort: m.cfg.Get("NODEST_OPENROUTER_SORT"),
				Ignore: Split(m.cfg.Get("NODEST_OPENROUTER_IGNORE")), DataCollection: m.cfg.Get("NODEST_OPENROUTER_DATA_COLLECTION"),
			},
		})
	case "openai":
		return openai.New(keys, openai.Options{Name: openai.OpenAI, BaseURL: m.cfg.Get("OPENAI_BASE_URL"), Model: model})
	}
	return offline.New(offline.Options{Delay: m.cfg.Duration("NODEST_OFFLINE_DELAY")}), nil
}

// Resolve finds the model of a turn. A key of the request comes before the
// user's own one, and that before the server's.
func (m *Models) Resolve(ctx context.Context, userID, provider, model, apiKey string) (nodest.Model, error) {
	if provider != "" && !builtIn(provider) && !account.IsServerName(provider) {
		return nodest.Model{}, fault.InvalidField("options.provider", "value", "must be gemini, openrouter, openai, offline or a server that an owner has added, not %q", provider)
	}
	if apiKey != "" {
		return m.resolveOnce(ctx, provider, model, apiKey)
	}
	own, err := m.keys(ctx, userID)
	if err != nil {
		return nodest.Model{}, err
	}
	if provider == "" {
		provider = m.defaultOf(own)
	}
	p, by, err := m.provider(ctx, provider, own)
	if err != nil {
		return nodest.Model{}, err
	}
	if p == nil {
		return nodest.Model{}, notConfigured(provider)
	}
	found := m.model(ctx, p, by, model, m.fallbacks)
	switch {
	case own[provider] != "":
		found.Key = provider + "/" + userID
	case !found.Offline:
		found.Key = provider
	}
	return found, nil
}

// resolveOnce finds the model of a request that brings its key.
func (m *Models) resolveOnce(ctx context.Context, provider, model, apiKey string) (nodest.Model, error) {
	if provider == "" || provider == "offline" {
		provider = "gemini"
	}
	if !builtIn(provider) {
		p, by, err := m.provider(ctx, provider, map[string]string{provider: apiKey})
		if err == nil && p == nil {
			err = notConfigured(provider)
		}
		if err != nil {
			return nodest.Model{}, err
		}
		return m.model(ctx, p, by, model, nil), nil
	}
	p, err := m.client(provider, apiKey)
	if err != nil {
		return nodest.Model{}, err
	}
	return m.model(ctx, p, keyOf(provider, apiKey), model, nil), nil
}

func notConfigured(provider string) error {
	if !builtIn(provider) {
		return fault.New(fault.NotConfigured, "there is no provider %s on this server; choose another one, or ask an owner to add it", provider).With("what", provider)
	}
	return fault.New(fault.NotConfigured, "no API key for %s; set %s, or store your own key", provider, needs[provider]).With("what", provider)
}

// defaultOf is the server's default; where that is the offline model for want
// of a key, a provider that the user has a key for.
func (m *Models) defaultOf(own map[string]string) string {
	if m.def != "offline" || m.cfg.Get("NODEST_PROVIDER") == "offline" {
		return m.def
	}
	for _, name := range ProviderNames {
		if own[name] != "" {
			return name
		}
	}
	return m.def
}

// provider is a provider with the user's own key, else with the server's, and the name of that key; nil without
// either.
func (m *Models) provider(ctx context.Context, name string, own map[string]string) (llm.Provider, ownKey, error) {
	if !builtIn(name) {
		return m.addedProvider(ctx, name, own[name])
	}
	key := own[name]
	at := keyOf(name, key)
	if key == "" {
		return m.server[name], at, nil
	}
	p, err := m.kept(at, func() (llm.Provider, error) { return m.client(name, key) })
	return p, at, err
}

// kept returns the client with a key, which is made if there is none.
func (m *Models) kept(at ownKey, client func() (llm.Provider, error)) (llm.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p, ok := m.own.Get(at); ok {
		return p, nil
	}
	p, err := client()
	if err == nil {
		m.own.Put(at, p, 1)
	}
	return p, err
}

// model is the one of a provider, whose client p has the key by.
func (m *Models) model(ctx context.Context, p llm.Provider, by ownKey, model string, fallbacks []llm.Ref) nodest.Model {
	chosen := ""
	if model == "" {
		chosen = p.DefaultModel(ctx)
		model = chosen
	}
	links := []llm.Link{m.link(p, by, model, chosen)}
	for _, ref := range fallbacks {
		if ref.Provider != p.Name() || (ref.Model != "" && ref.Model != model) {
			links = append(links, m.fallback(ctx, ref)...)
		}
	}
	return nodest.Model{
		Generator: llm.Chain(m.log, links...), Provider: p.Name(), Name: model,
		ContextTokens: m.lists.context(ctx, p, by, model), Offline: p.Name() == "offline", StrictTurns: m.strictTurns(p, model), Begins: begins(p, model),
		Sees:  func(ctx context.Context) bool { return m.lists.sees(ctx, p, by, model) },
		Calls: func(ctx context.Context) bool { return m.lists.calls(ctx, p, by, model) },
	}
}

// fallback is the link of a fallback with the server's key; none for a server that no owner has added.
func (m *Models) fallback(ctx context.Context, ref llm.Ref) []llm.Link {
	p, by, err := m.provider(ctx, ref.Provider, nil)
	if err != nil || p == nil {
		m.log.WarnContext(ctx, "a fallback is left out", "provider", ref.Provider, "err", cmp.Or(err, notConfigured(ref.Provider)))
		return nil
	}
	return []llm.Link{m.link(p, by, ref.Model, "")}
}

// link is a provider with one of its models, which is chosen if it is the default and "" if it is
// that of the moment.
func (m *Models) link(p llm.Provider, by ownKey, model, chosen string) llm.Link {
	gen := llm.WithDefault(m.log, p, llm.Dependable(p.Name(), p, m.watch(p.Name())), chosen)
	if m.strictTurns(p, model) {
		gen = llm.WithStrictTurns(gen)
	}
	gen = llm.WithoutImages(gen, func(ctx context.Context) bool { return m.lists.sees(ctx, p, by, model) })
	return llm.Link{Provider: p.Name(), Model: model, Generator: gen}
}

// strictTurns reports whether prompts for a model are merged so that user and
// assistant speak in turn: as the provider's setting says, else wherever it is not
// known that the model takes them as they are.
func (m *Models) strictTurns(p llm.Provider, model string) bool {
	client, ok := p.(*openai.Client)
	if !ok {
		return false
	}
	switch m.cfg.Get("NODEST_" + strings.ToUpper(p.Name()) + "_STRICT_TURNS") {
	case "on":
		return true
	case "off":
		return false
	}
	return !client.TakesLooseTurns(model) // for the default it is known only when a request is made
}

// begins reports whether a preset may begin the replies of a model.
func begins(p llm.Provider, model string) bool {
	client, ok := p.(*openai.Client)
	return ok && client.TakesBeginnings(model)
}

// Default is the name of the server's default provider.
func (m *Models) Default() string { return m.def }

// Fallbacks are the models that are tried when the default fails.
func (m *Models) Fallbacks() []llm.Ref { return m.fallbacks }

// Prepare has the default provider choose its model, so that the first message need not wait for it.
func (m *Models) Prepare(ctx context.Context) {
	if p, _, err := m.provider(ctx, m.def, nil); err == nil && p != nil {
		p.DefaultModel(ctx)
	}
}

// Absent are the servers that the settings name and that no owner has added.
func (m *Models) Absent(ctx context.Context) (names []string, err error) {
	for _, name := range append([]string{m.def}, providersOf(m.fallbacks)...) {
		has, err := m.HasProvider(ctx, name)
		if err != nil {
			return nil, err
		}
		if !has && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func providersOf(refs []llm.Ref) (names []string) {
	for _, ref := range refs {
		names = append(names, ref.Provider)
	}
	return names
}

// Client is the server's client of a provider; nil if it is not configured.
func (m *Models) Client(name string) llm.Provider { return m.server[name] }

// Transport names the client that serves the plain turns of a model, of a provider that has several;
// else it is "".
func Transport(p llm.Provider, model string) string {
	if t, ok := p.(interface{ Transport(model string) string }); ok {
		return t.Transport(model)
	}
	return ""
}

// askProviders is how long a list of providers may take.
const askProviders = 4 * time.Second

// Providers lists the providers as they are for a user, each asked for its
// models at the same time.
func (m *Models) Providers(ctx context.Context, userID string) ([]server.ProviderInfo, error) {
	own, err := m.keys(ctx, userID)
	if err != nil {
		return nil, err
	}
	added, err := m.servers(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askProviders)
	defer cancel()
	list := make([]server.ProviderInfo, len(ProviderNames)+len(added))
	standard := m.defaultOf(own)
	var wg sync.WaitGroup
	for i := range list {
		var p llm.Provider
		var err error
		if i < len(ProviderNames) {
			name := ProviderNames[i]
			list[i] = server.ProviderInfo{Name: name, BaseURL: m.address(name)}
			p, _, err = m.provider(ctx, name, own)
		} else {
			s := added[i-len(ProviderNames)]
			list[i] = server.ProviderInfo{Name: s.Name, BaseURL: s.BaseURL, Added: true}
			p, _, err = m.reach(s, own[s.Name])
		}
		if err != nil {
			return nil, err
		}
		list[i].Default, list[i].OwnKey, list[i].Models = list[i].Name == standard, own[list[i].Name] != "", []server.ProviderModel{}
		if p != nil {
			wg.Go(func() { m.describe(ctx, p, &list[i]) })
		}
	}
	wg.Wait()
	return list, m.nameVectors(ctx, userID, list)
}

// nameVectors notes whose model makes the vectors of memories; nobody's, while a slow
// server has not told whether it makes any.
func (m *Models) nameVectors(ctx context.Context, userID string, list []server.ProviderInfo) error {
	e, err := m.Embedder(ctx, userID)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it is not known yet
	}
	if err != nil {
		return err
	}
	by := m.vectorsBy(ctx, userID)
	for i := range list {
		if list[i].Name == by {
			list[i].EmbeddingModel = e.ModelID()
		}
	}
	return nil
}

func (m *Models) describe(ctx context.Context, p llm.Provider, info *server.ProviderInfo) {
	info.Configured, info.DefaultModel = true, p.DefaultModel(ctx)
	info.Transport = Transport(p, info.DefaultModel)
	offered, err := p.Models(ctx)
	if !Unlisted(err) {
		info.Healthy = new(err == nil)
	}
	info.Error = op.FailureOf(fault.Public(err))
	for _, model := range offered {
		if model.Generates {
			info.Models = append(info.Models, server.ProviderModel{
				ID: model.ID, Name: model.Name, ContextTokens: cmp.Or(model.ContextTokens, sameContext[p.Name()]), Transport: model.Transport,
				PromptPrice: model.PromptPrice, CompletionPrice: model.CompletionPrice,
			})
		}
	}
}

// Unlisted reports whether a server may work although it has no list of models.
func Unlisted(err error) bool { return llm.ProviderStatus(err) == http.StatusNotFound }
