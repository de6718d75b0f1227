package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/internal/setup"
	"nodest/llm/llmtest"
)

// checksOf returns what doctor says of the models of a configuration.
func checksOf(t *testing.T, network bool, pairs ...string) []check {
	t.Helper()
	cfg, err := setup.Load(getenvOf(pairs...), nil)
	require.NoError(t, err)
	m, err := setup.NewModels(cfg, slog.New(slog.DiscardHandler), func(context.Context, string) (map[string]string, error) { return nil, nil })
	require.NoError(t, err)
	return modelChecks(t.Context(), cfg, m, network)
}

// A server without embeddings is no fault, unless the settings ask for them; one that has lost its
// vectors is.
func TestDoctorChecksTheEmbeddings(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("deepseek-chat")
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		if strings.HasSuffix(r.Path, "/embeddings") {
			return llmtest.Reply{Status: 404, Message: "no embeddings here"}
		}
		return llmtest.Say("Hello.")
	})
	env := []string{"OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server", "NODEST_MODEL", "deepseek-chat"}
	checks := checksOf(t, true, env...)
	for _, c := range checks {
		require.Empty(t, c.fix, "%s: %s", c.name, c.detail)
	}
	vectors := func(checks []check) check {
		return checks[slices.IndexFunc(checks, func(c check) bool { return c.name == "embeddings" })]
	}
	require.Contains(t, vectors(checks).detail, "offline-hash-512-1, because the server has no embeddings")
	require.Contains(t, vectors(checksOf(t, true, append(env, "NODEST_EMBEDDINGS", "openai")...)).fix, "no embeddings here")

	whole := llmtest.NewOpenAI(t)
	whole.SetDimension(8)
	env = []string{"OPENAI_BASE_URL", whole.URL, "OPENAI_API_KEY", "sk-server", "NODEST_EMBEDDING_MODEL", "small", "NODEST_EMBEDDINGS", "openai"}
	require.Empty(t, vectors(checksOf(t, true, env...)).fix)
	whole.LoseVectors()
	require.NotEmpty(t, vectors(checksOf(t, true, env...)).fix)
}

func TestDoctorChecksTheModel(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("llama3.2:latest", "qwen3:8b", "qwen3:32b", "nomic-embed-text:latest")
	fix := func(pairs ...string) string {
		return checksOf(t, true, append([]string{"NODEST_EMBEDDINGS", "offline"}, pairs...)...)[0].fix
	}
	at := func(model string) string { return fix("OPENAI_BASE_URL", fake.URL, "NODEST_MODEL", model) }
	require.Empty(t, at("llama3.2"))
	require.Empty(t, at("qwen3:8b"))
	require.Equal(t, `model "qwen-3" is not among the models the server lists (4); did you mean qwen3:8b, qwen3:32b? Set NODEST_MODEL.`, at("qwen-3"))
	require.Equal(t, `model "xyz" is not among the models the server lists (4). Set NODEST_MODEL.`, at("xyz"))
	require.Equal(t, `model "qwen-2" is not among the models the server lists (4); did you mean qwen3:8b, qwen3:32b? Correct NODEST_FALLBACKS.`,
		fix("OPENAI_BASE_URL", fake.URL, "NODEST_MODEL", "llama3.2", "NODEST_FALLBACKS", "openai:qwen-2"))
	fake.SetModels("models/gemini-3.7-flash")
	require.Empty(t, at("gemini-3.7-flash"), "Google's interface lists names that it takes in short as well")
	require.Equal(t, "OpenAI-compatible server at http://127.0.0.1:1/v1 does not respond: connection refused", fix("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"))
}

// If the provider does not list its models, doctor says that it could not check the
// model.
func TestDoctorReportsAMissingModelList(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Status: 404, Message: "no such page"} })
	c := checksOf(t, true, "NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", fake.URL, "NODEST_MODEL", "m")[0]
	require.Empty(t, c.fix)
	require.Equal(t, "model m (default); not checked, because the server has no list of models (OpenAI-compatible server rejected the request: no such page). "+
		"If it does not answer in a chat either, check the base URL", c.detail)
}

// Gemini has two SDKs: doctor names the one in use.
func TestDoctorNamesTheTransportOfGemini(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	checks := func(network bool) []check {
		return checksOf(t, network, "NODEST_GEMINI_BASE_URL", fake.URL, "GEMINI_API_KEY", "k")
	}
	require.Equal(t, "model of the provider's list (default)", checks(false)[0].detail)
	require.Equal(t, "model gemini-flash-latest through generative-ai-go (default)", checks(true)[0].detail)
}

// The offline model is known without a network.
func TestDoctorNamesTheOfflineModel(t *testing.T) {
	t.Parallel()
	require.Equal(t, "model offline-demo (default)", checksOf(t, false)[0].detail)
}
