package server

import (
	"context"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/server/api"
)

// Providers knows the model providers of this server; the program's entry provides it.
type Providers interface {
	// Providers lists them as they are for the user. It asks those whose list of models
	// is older than some minutes, for a few seconds at most.
	Providers(ctx context.Context, userID string) ([]ProviderInfo, error)
	// HasProvider says whether there is a provider of that name.
	HasProvider(ctx context.Context, name string) (bool, error)
	// TakesKey says whether users may store a key of their own for it.
	TakesKey(ctx context.Context, provider string) (bool, error)
	// TestServer asks an OpenAI-compatible server for its models, for a few seconds at most.
	TestServer(ctx context.Context, baseURL, key string) (*ServerCheck, error)
}

// ProviderInfo is one provider as a user sees it.
type ProviderInfo struct {
	Name         string          `json:"name"`
	Default      bool            `json:"default"`    // answers when nothing else is chosen
	Configured   bool            `json:"configured"` // by the server or by a key of the user
	OwnKey       bool            `json:"ownKey"`     // the user stored a key
	Healthy      *bool           `json:"healthy"`    // listed its models; null = not asked, or it has no list
	DefaultModel string          `json:"defaultModel"`
	Transport    string          `json:"transport,omitempty"` // client that serves the default model
	Models       []ProviderModel `json:"models"`
	Error        *op.Failure     `json:"error,omitempty"` // why there are no models

	Added   bool   `json:"added,omitempty"`   // by an owner; else it is built in
	BaseURL string `json:"baseUrl,omitempty"` // for owners; "" = it has none

	EmbeddingModel string `json:"embeddingModel,omitempty"` // that makes the vectors of memories, if this provider does
}

// ProviderModel is one model that a provider offers.
type ProviderModel struct {
	ID            string `json:"id"`
	Name          string `json:"name,omitempty"`
	ContextTokens int    `json:"contextTokens,omitempty"`
	Transport     string `json:"transport,omitempty"`

	// Prices of a million tokens, in US dollars.
	PromptPrice     *float64 `json:"promptPrice,omitempty"`
	CompletionPrice *float64 `json:"completionPrice,omitempty"`
}

func (s *Server) providers(c echo.Context, who *account.Identity) (any, error) {
	see := func(p ProviderInfo) any {
		if !who.Owner() {
			p.BaseURL = "" // may name a host of the network that only owners know
		}
		return p
	}
	return api.List(see)(s.Providers.Providers(c.Request().Context(), who.User.ID))
}

type providerKeyData struct {
	Key string `json:"key"`
}

func (s *Server) setProviderKey(c echo.Context, who *account.Identity, in providerKeyData) (any, error) {
	name := c.Param("name")
	takes, err := s.Providers.TakesKey(c.Request().Context(), name)
	if err != nil {
		return nil, err
	}
	if !takes {
		return nil, fault.New(fault.NotFound, "no provider %q accepts a key", name)
	}
	if err := s.Accounts.SetProviderKey(c.Request().Context(), who.User.ID, name, in.Key); err != nil {
		return nil, err
	}
	s.tellProvider(c, who, name, false)
	// The key is stored, so this does not fail the request either.
	if err := s.Knowledge.Resume(detached(c.Request().Context()), who.User.ID); err != nil {
		s.opts.Log.Warn("documents that waited for a provider key not resumed", "requestId", idOf(c), "err", err)
	}
	return nil, nil
}

func (s *Server) deleteProviderKey(c echo.Context, who *account.Identity) (any, error) {
	if err := s.Accounts.DeleteProviderKey(c.Request().Context(), who.User.ID, c.Param("name")); err != nil {
		return nil, err
	}
	s.tellProvider(c, who, c.Param("name"), true)
	return nil, nil
}

// tellProvider notifies the user's devices of a changed key. The key is already stored,
// so a failure here does not fail the request.
func (s *Server) tellProvider(c echo.Context, who *account.Identity, name string, deleted bool) {
	if err := s.Characters.AnnounceProvider(detached(c.Request().Context()), s.call(c, who), name, deleted); err != nil {
		s.opts.Log.Warn("event for a changed provider key not stored", "requestId", idOf(c), "err", err)
	}
}

type providerTestData struct {
	Model string `json:"model,omitempty"`
}

// wireModelCheck is how a provider answered a test.
type wireModelCheck struct {
	OK    bool        `json:"ok"`
	Model string      `json:"model"`
	Ms    int64       `json:"ms"`
	Reply string      `json:"reply,omitempty"`
	Error *op.Failure `json:"error,omitempty"`
}

// testProvider sends a provider one small request with the user's key. That it fails is a
// result, too.
func (s *Server) testProvider(c echo.Context, who *account.Identity, in providerTestData) (any, error) {
	if s.draining.Load() {
		return nil, fault.New(fault.ShuttingDown, "the server is shutting down")
	}
	name := c.Param("name")
	known, err := s.Providers.HasProvider(c.Request().Context(), name)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fault.New(fault.NotFound, "no provider %q", name)
	}
	check, err := s.Engine.CheckModel(c.Request().Context(), who.User.ID, name, in.Model)
	if err != nil {
		return nil, err
	}
	return wireModelCheck{check.Error == nil, check.Model, check.Took.Milliseconds(), check.Reply, op.FailureOf(check.Error)}, nil
}
