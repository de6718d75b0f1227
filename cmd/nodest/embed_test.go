package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/openai"
	"nodest/server"
)

// modelsOf returns the models of a configuration; own holds a user's API keys.
func modelsOf(t *testing.T, own map[string]string, pairs ...string) (*models, error) {
	t.Helper()
	cfg, err := loadConfig(getenvOf(pairs...), nil)
	require.NoError(t, err)
	return newModels(cfg, slog.New(slog.DiscardHandler), func(context.Context, string) (map[string]string, error) { return own, nil })
}

func TestChoiceOfTheEmbeddingProvider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  []string
		want string // model id; "" = an error
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

// If a server turns out to have no embeddings, offline embeddings are used and one
// warning is logged. It is an error only if the setting asks for that server.
func TestServersWithoutEmbeddings(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 405, 501} {
		fake := llmtest.NewOpenAI(t)
		fake.SetModels("deepseek-chat", "deepseek-reasoner")
		fake.Always(func(r llmtest.Request) llmtest.Reply {
			if strings.HasSuffix(r.Path, "/embeddings") {
				return llmtest.Reply{Status: status, Message: "no embeddings here"}
			}
			return llmtest.Say("Hello.")
		})
		env := []string{"OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server", "NODEST_MODEL", "deepseek-chat"}
		var log strings.Builder
		cfg, err := loadConfig(getenvOf(env...), nil)
		require.NoError(t, err)
		m, err := newModels(cfg, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context, string) (map[string]string, error) { return nil, nil })
		require.NoError(t, err)
		for range 3 {
			e, err := m.Embedder(t.Context(), "ann")
			require.NoError(t, err)
			require.Equal(t, "offline-hash-512-1", e.ModelID())
		}
		probes := slices.DeleteFunc(fake.Requests(), func(r llmtest.Request) bool { return !strings.HasSuffix(r.Path, "/embeddings") })
		require.Len(t, probes, 1, "the server is asked once")
		require.Equal(t, 1, strings.Count(log.String(), "has no embeddings"))
		for _, c := range m.checks(t.Context(), true) {
			require.Empty(t, c.fix, "%s: %s", c.name, c.detail)
		}
		c := m.checkVectors(t.Context(), true)
		require.Contains(t, c.detail, "offline-hash-512-1, because the server has no embeddings")

		asked, err := modelsOf(t, nil, append(env, "NODEST_EMBEDDINGS", "openai")...)
		require.NoError(t, err)
		e, err := asked.Embedder(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, "openai:text-embedding-3-small@768", e.ModelID())
		require.Contains(t, asked.checkVectors(t.Context(), true).fix, "no embeddings here")
	}
}

// While a server is down it is not known whether it has embeddings, so it is probed
// again later.
func TestAServerThatIsDownIsProbedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := false
		m, err := modelsOf(t, nil, "OPENAI_BASE_URL", "http://server.invalid/v1", "OPENAI_API_KEY", "k")
		require.NoError(t, err)
		m.server["openai"], err = openai.New(llm.ParseKeys("k"), openai.Options{
			BaseURL: "http://server.invalid/v1", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if !up {
					return nil, syscall.ECONNREFUSED
				}
				return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}),
		})
		require.NoError(t, err)
		by := func() string { return m.vectorsBy(t.Context(), "") }
		require.Equal(t, "openai", by())
		up = true
		require.Equal(t, "openai", by(), "it is left alone for a while")
		time.Sleep(probeSoon)
		require.Equal(t, "offline", by())
		up = false
		time.Sleep(time.Hour)
		require.Equal(t, "offline", by(), "it stays so")
	})
}

// A caller whose context ends does not cancel the probe that another caller waits
// for; there is one probe for both.
func TestACancelledCallerDoesNotStopTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m, err := modelsOf(t, nil, "OPENAI_BASE_URL", "http://server.invalid/v1", "OPENAI_API_KEY", "k")
		require.NoError(t, err)
		m.server["openai"], err = openai.New(llm.ParseKeys("k"), openai.Options{
			BaseURL: "http://server.invalid/v1", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/embeddings") {
					asked++
				}
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
				return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}),
		})
		require.NoError(t, err)
		hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.Equal(t, "openai", m.vectorsBy(hurried, "ann"), "its time is over")
		require.Equal(t, "offline", m.vectorsBy(t.Context(), "ann"))
		require.Equal(t, 1, asked)
	})
}

// If the provider rejects the server's own key, it is not known whether it has
// embeddings; a request with a user's key finds out for all.
func TestAUsersKeyDetectsMissingEmbeddings(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		if r.Key != "sk-own" {
			return llmtest.Reply{Status: 401, Message: "no such key"}
		}
		return llmtest.Reply{Status: 404, Message: "no embeddings here"}
	})
	cfg, err := loadConfig(getenvOf("OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server"), nil)
	require.NoError(t, err)
	m, err := newModels(cfg, slog.New(slog.DiscardHandler), func(_ context.Context, user string) (map[string]string, error) {
		return map[string]map[string]string{"ann": {"openai": "sk-own"}}[user], nil
	})
	require.NoError(t, err)
	require.Equal(t, "openai", m.vectorsBy(t.Context(), "bob"))
	require.Equal(t, "offline", m.vectorsBy(t.Context(), "ann"))
	require.Equal(t, "offline", m.vectorsBy(t.Context(), "bob"))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestDoctorChecksTheModel(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("llama3.2:latest", "qwen3:8b", "qwen3:32b", "nomic-embed-text:latest")
	fix := func(pairs ...string) string {
		m, err := modelsOf(t, nil, append([]string{"NODEST_EMBEDDINGS", "offline"}, pairs...)...)
		require.NoError(t, err)
		return m.checks(t.Context(), true)[0].fix
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
	m, err := modelsOf(t, nil, "NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", fake.URL, "NODEST_MODEL", "m")
	require.NoError(t, err)
	c := m.checks(t.Context(), true)[0]
	require.Empty(t, c.fix)
	require.Equal(t, "model m (default); not checked, because the server has no list of models (OpenAI-compatible server rejected the request: no such page). "+
		"If it does not answer in a chat either, check the base URL", c.detail)
}

// Gemini has two SDKs: doctor and the list of providers name the one in use.
func TestGeminiReportsItsTransport(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	m, err := modelsOf(t, nil, "NODEST_GEMINI_BASE_URL", fake.URL, "GEMINI_API_KEY", "k")
	require.NoError(t, err)
	require.Equal(t, "model of the provider's list (default)", m.checks(t.Context(), false)[0].detail)
	require.Equal(t, "model gemini-flash-latest through generative-ai-go (default)", m.checks(t.Context(), true)[0].detail)
	var info server.ProviderInfo
	m.describe(t.Context(), m.server["gemini"], &info)
	require.Equal(t, "generative-ai-go", info.Transport)
	require.Equal(t, "generative-ai-go", info.Models[0].Transport)
}

// The offline model is known without a network.
func TestDoctorNamesTheOfflineModel(t *testing.T) {
	t.Parallel()
	m, err := modelsOf(t, nil)
	require.NoError(t, err)
	require.Equal(t, "model offline-demo (default)", m.checks(t.Context(), false)[0].detail)
}

// TestAUsersKeyIsUsedForTheirEmbeddings: the server's key is used for everybody
// else, and embeddings made with either key can be compared.
func TestAUsersKeyIsUsedForTheirEmbeddings(t *testing.T) {
	t.Parallel()
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
	require.Equal(t, []string{"sk-server", "sk-server", "sk-own"}, keys, "the server is tried first")
	require.Equal(t, spaces[0], spaces[1])
	require.Empty(t, m.checkVectors(t.Context(), true).fix)
	fake.LoseVectors()
	require.NotEmpty(t, m.checkVectors(t.Context(), true).fix)
}
