package setup

import (
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/server"
)

// The list of providers has the models that a user's own key can use, or the provider's
// reason.
func TestProvidersListTheirModels(t *testing.T) {
	t.Parallel()
	open, gemini := llmtest.NewOpenAI(t), llmtest.NewGemini(t)
	open.SetModels("m-1", "text-embedding-1")
	open.ForKey("sk-a-bad-key", llmtest.Reply{Status: 401, Message: "Incorrect API key provided: sk-a-bad-key"})
	env := []string{"NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", open.URL, "OPENAI_API_KEY", "sk-server", "NODEST_GEMINI_BASE_URL", gemini.URL}
	own := map[string]string{}
	m, err := modelsOf(t, own, env...)
	require.NoError(t, err)
	at := func(name string) server.ProviderInfo {
		t.Helper()
		list, err := m.Providers(t.Context(), "ann")
		require.NoError(t, err)
		for _, p := range list {
			if p.Name == name {
				return p
			}
		}
		t.Fatalf("no provider %s", name)
		panic("not reached")
	}
	p := at("openai")
	require.Equal(t, []server.ProviderModel{{ID: "m-1"}}, p.Models, "models for chats")
	require.True(t, *p.Healthy)
	require.Nil(t, p.Error)
	require.Nil(t, at("gemini").Healthy, "not configured")
	require.Equal(t, "offline-demo", at("offline").Models[0].ID)
	require.Len(t, open.Requests(), 1, "the list is kept")

	own["openai"] = "sk-a-bad-key" // the user stores a key: the list of that key is another one
	p = at("openai")
	require.False(t, *p.Healthy)
	require.Equal(t, fault.UpstreamAuth, p.Error.Code)
	require.NotContains(t, p.Error.Detail, "sk-a-bad-key")
	require.Empty(t, p.Models)
	own["openai"], own["gemini"] = "sk-good", "k"
	require.Len(t, at("openai").Models, 1)
	require.Len(t, at("gemini").Models, 3)
	for _, r := range open.Requests()[1:] {
		require.NotEqual(t, "sk-server", r.Key)
	}

	without := llmtest.NewOpenAI(t)
	without.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Status: 404} })
	m, err = modelsOf(t, nil, "NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", without.URL)
	require.NoError(t, err)
	p = at("openai")
	require.Nil(t, p.Healthy, "a server without a list may work")
	require.Equal(t, 404, p.Error.Details["providerStatus"])
}

// A key of a user is asked for, without the server's fallbacks.
func TestAResolvedModelCanBeAskedAlone(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.ForKey("sk-own", llmtest.Fail(401))
	m, err := modelsOf(t, map[string]string{"openai": "sk-own"},
		"NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server", "NODEST_FALLBACKS", "offline")
	require.NoError(t, err)
	model, err := m.Resolve(t.Context(), "ann", "openai", "m", "")
	require.NoError(t, err)
	req := llmtest.Ask("hi")
	req.Alone = true
	require.True(t, fault.Is(llmtest.Read(t, model.Generator.Stream(t.Context(), req)).Err, fault.UpstreamAuth))
	req.Alone = false
	require.NoError(t, llmtest.Read(t, model.Generator.Stream(t.Context(), req)).Err)
}

// The circle sends requests with one key one after another, and images only to models that
// understand them.
func TestAModelTellsItsKeyAndWhetherItSees(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("listed")
	own := map[string]string{}
	m, err := modelsOf(t, own, "NODEST_EMBEDDINGS", "offline",
		"OPENAI_BASE_URL", fake.URL, "OPENROUTER_API_KEY", "sk-router", "NODEST_OPENROUTER_BASE_URL", fake.URL)
	require.NoError(t, err)
	check := func(provider, model, key string, sees bool) {
		t.Helper()
		found, err := m.Resolve(t.Context(), "ann", provider, model, "")
		require.NoError(t, err)
		require.Equal(t, key, found.Key)
		require.Equal(t, sees, found.Sees(t.Context()), "%s %s", provider, model)
	}
	check("openai", "gpt-4o", "openai", true)
	check("openai", "llama3", "openai", false)
	check("openrouter", "listed", "openrouter", false)
	check("openrouter", "openai/gpt-4o", "openrouter", true) // not in the list
	check("offline", "", "", false)
	own["openai"] = "sk-own"
	check("openai", "gpt-4o", "openai/ann", true)

	blind, err := m.Resolve(t.Context(), "ann", "openai", "llama3", "")
	require.NoError(t, err)
	req := llmtest.Ask("look")
	req.Messages[0].Images = []llm.Image{{ContentType: "image/png", Data: []byte("cat")}}
	require.NoError(t, llmtest.Read(t, blind.Generator.Stream(t.Context(), req)).Err)
	all := fake.Requests()
	require.Empty(t, all[len(all)-1].Messages[0].Images)
}
