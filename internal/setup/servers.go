package setup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/openai"
	"nodest/server"
)

// UseServers makes the servers that owners have added providers, too. added is asked whenever one may be meant, so
// that a change by another process counts at once; turns of built-in providers do not ask it, unless a fallback may be
// one.
func (m *Models) UseServers(added func(context.Context) ([]*account.OpenServer, error)) {
	m.added = added
}

func builtIn(name string) bool { return slices.Contains(ProviderNames, name) }

// canBeAdded reports whether owners can add a server of that name.
func canBeAdded(name string) bool {
	return account.IsServerName(name) && !builtIn(name) && name != "jina"
}

// servers are those that owners have added.
func (m *Models) servers(ctx context.Context) ([]*account.OpenServer, error) {
	if m.added == nil {
		return nil, nil
	}
	all, err := m.added(ctx)
	// A program that is newer than the row may have a provider of that name.
	return slices.DeleteFunc(slices.Clone(all), func(s *account.OpenServer) bool { return builtIn(s.Name) }), err
}

// addedProvider is a server that an owner has added, with the user's own key if there is one; nil if there is no such
// server.
func (m *Models) addedProvider(ctx context.Context, name, own string) (llm.Provider, ownKey, error) {
	all, err := m.servers(ctx)
	if err != nil {
		return nil, ownKey{}, err
	}
	i := slices.IndexFunc(all, func(s *account.OpenServer) bool { return s.Name == name })
	if i < 0 {
		return nil, ownKey{}, nil
	}
	return m.reach(all[i], own)
}

// reach returns the client of a server, which is another one after each change of the server.
func (m *Models) reach(s *account.OpenServer, own string) (llm.Provider, ownKey, error) {
	key, model := cmp.Or(own, s.Key), s.Model
	if s.Name == m.def {
		model = cmp.Or(m.cfg.Get("NODEST_MODEL"), model)
	}
	is, err := json.Marshal([]string{s.BaseURL, model, key})
	if err != nil {
		return nil, ownKey{}, err
	}
	at := ownKey{s.Name, sha256.Sum256(is)}
	p, err := m.kept(at, func() (llm.Provider, error) {
		return openai.New(llm.ParseKeys(key), openai.Options{Name: s.Name, BaseURL: s.BaseURL, Private: true, Model: model})
	})
	return p, at, err
}

// HasProvider says whether there is a provider of that name.
func (m *Models) HasProvider(ctx context.Context, name string) (bool, error) {
	if builtIn(name) {
		return true, nil
	}
	all, err := m.servers(ctx)
	return slices.ContainsFunc(all, func(s *account.OpenServer) bool { return s.Name == name }), err
}

// TakesKey says whether users may store a key of their own for a provider.
func (m *Models) TakesKey(ctx context.Context, provider string) (bool, error) {
	if builtIn(provider) || provider == "jina" {
		return needs[provider] != "", nil
	}
	return m.HasProvider(ctx, provider)
}

// TestServer asks a server for its models. That it fails is a result, too.
func (m *Models) TestServer(ctx context.Context, baseURL, key string) (*server.ServerCheck, error) {
	client, err := openai.New(llm.ParseKeys(key), openai.Options{Name: "server", BaseURL: baseURL})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	limited, cancel := context.WithTimeout(ctx, askProviders)
	defer cancel()
	began := time.Now()
	models, err := client.Models(limited)
	check := &server.ServerCheck{Models: []string{}, Took: time.Since(began)}
	if err != nil {
		if ctx.Err() != nil {
			return nil, err // the caller is gone
		}
		check.Error = fault.Public(err)
		return check, nil
	}
	for _, model := range models {
		if model.Generates {
			check.Models = append(check.Models, model.ID)
		}
	}
	return check, nil
}

// addresses are the settings with the addresses of built-in providers, and what holds without them.
var addresses = map[string]struct{ setting, standard string }{
	"gemini":     {"NODEST_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"},
	"openrouter": {"NODEST_OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1"},
	"openai":     {"OPENAI_BASE_URL", "https://api.openai.com/v1"},
}

// address is the address of a built-in provider that is in force, without what may be secret in it.
func (m *Models) address(name string) string {
	u, err := url.Parse(cmp.Or(m.cfg.Get(addresses[name].setting), addresses[name].standard))
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return u.String()
}
