package main

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/server"
)

// modelsOf are the models of a configuration; own are a user's keys.
func modelsOf(t *testing.T, own map[string]string, pairs ...string) (*models, error) {
	t.Helper()
	cfg, err := loadConfig(from(pairs...), nil)
	require.NoError(t, err)
	return newModels(cfg, slog.New(slog.DiscardHandler), func(context.Context, string) (map[string]string, error) { return own, nil })
}

func TestWhoMakesVectors(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want string // model; "" = refused
	}{
		{"nothing is set", nil, "offline-hash-512-1"},
		{"a key of Gemini", []string{"GEMINI_API_KEY", "k", "OPENAI_API_KEY", "k"}, "gemini:gemini-embedding-001@768"},
		{"a key of OpenAI", []string{"OPENAI_API_KEY", "k"}, "openai:text-embedding-3-small@768"},
		{"a server without a key is for chat", []string{"OPENAI_BASE_URL", "http://127.0.0.1:1/v1"}, "offline-hash-512-1"},
		{"a server without a key is asked for", []string{
			"OPENAI_BASE_URL", "http://127.0.0.1:1/v1", "NODEST_EMBEDDINGS", "openai", "NODEST_EMBEDDING_MODEL", "nomic-embed-text",
		}, "openai:nomic-embed-text"},
		{"offline is asked for", []string{"GEMINI_API_KEY", "k", "NODEST_EMBEDDINGS", "offline"}, "offline-hash-512-1"},
		{"what is asked for is not set up", []string{"NODEST_EMBEDDINGS", "gemini"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := modelsOf(t, nil, tt.env...)
			if tt.want == "" {
				require.ErrorContains(t, err, "NODEST_EMBEDDINGS")
				return
			}
			require.NoError(t, err)
			e, err := m.Embedder(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, tt.want, e.ModelID())
			list := []server.ProviderInfo{{Name: "gemini"}, {Name: "openrouter"}, {Name: "openai"}, {Name: "offline"}}
			require.NoError(t, m.nameVectors(t.Context(), "user", list))
			for _, p := range list {
				if p.Name == m.embeddings() {
					require.Equal(t, tt.want, p.EmbeddingModel)
				} else {
					require.Empty(t, p.EmbeddingModel)
				}
			}
		})
	}
}

// TestAUsersKeyPaysForTheirVectors: the server's key is for everybody else, and
// vectors of both are of one space.
func TestAUsersKeyPaysForTheirVectors(t *testing.T) {
	fake := llmtest.NewOpenAI(t)
	fake.SetDimension(8)
	m, err := modelsOf(t, map[string]string{"openai": "sk-own"},
		"OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server", "NODEST_EMBEDDING_MODEL", "small")
	require.NoError(t, err)
	var spaces, keys []string
	for _, user := range []string{"", "ann"} {
		e, err := m.Embedder(t.Context(), user)
		require.NoError(t, err)
		_, err = e.Embed(t.Context(), llm.Query, []string{"hello"})
		require.NoError(t, err)
		spaces = append(spaces, e.ModelID())
	}
	for _, r := range fake.Requests() {
		keys = append(keys, r.Key)
	}
	require.Equal(t, []string{"sk-server", "sk-own"}, keys)
	require.Equal(t, spaces[0], spaces[1])
	require.Empty(t, m.checkVectors(t.Context(), true).fix)
	fake.LoseVectors()
	require.NotEmpty(t, m.checkVectors(t.Context(), true).fix)
}
