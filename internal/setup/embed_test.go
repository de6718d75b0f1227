package setup

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
func modelsOf(t *testing.T, own map[string]string, pairs ...string) (*Models, error) {
	t.Helper()
	cfg, err := Load(getenvOf(pairs...), nil)
	require.NoError(t, err)
	return NewModels(cfg, slog.New(slog.DiscardHandler), func(context.Context, string) (map[string]string, error) { return own, nil })
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
		cfg, err := Load(getenvOf(env...), nil)
		require.NoError(t, err)
		m, err := NewModels(cfg, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context, string) (map[string]string, error) { return nil, nil })
		require.NoError(t, err)
		for range 3 {
			e, err := m.Embedder(t.Context(), "ann")
			require.NoError(t, err)
			require.Equal(t, "offline-hash-512-1", e.ModelID())
		}
		probes := slices.DeleteFunc(fake.Requests(), func(r llmtest.Request) bool { return !strings.HasSuffix(r.Path, "/embeddings") })
		require.Len(t, probes, 1, "the server is asked once")
		require.Equal(t, 1, strings.Count(log.String(), "has no embeddings"))
		_, e, why, err := m.Vectors(t.Context(), true)
		require.NoError(t, err)
		require.Equal(t, "offline-hash-512-1", e.ModelID())
		require.ErrorContains(t, why, "no embeddings here")

		asked, err := modelsOf(t, nil, append(env, "NODEST_EMBEDDINGS", "openai")...)
		require.NoError(t, err)
		e, err = asked.Embedder(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, "openai:text-embedding-3-small@768", e.ModelID())
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
	cfg, err := Load(getenvOf("OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server"), nil)
	require.NoError(t, err)
	m, err := NewModels(cfg, slog.New(slog.DiscardHandler), func(_ context.Context, user string) (map[string]string, error) {
		return map[string]map[string]string{"ann": {"openai": "sk-own"}}[user], nil
	})
	require.NoError(t, err)
	require.Equal(t, "openai", m.vectorsBy(t.Context(), "bob"))
	require.Equal(t, "offline", m.vectorsBy(t.Context(), "ann"))
	require.Equal(t, "offline", m.vectorsBy(t.Context(), "bob"))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Gemini has two SDKs: the list of providers names the one in use.
func TestGeminiReportsItsTransport(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	m, err := modelsOf(t, nil, "NODEST_GEMINI_BASE_URL", fake.URL, "GEMINI_API_KEY", "k")
	require.NoError(t, err)
	var info server.ProviderInfo
	m.describe(t.Context(), m.server["gemini"], &info)
	require.Equal(t, "generative-ai-go", info.Transport)
	require.Equal(t, "generative-ai-go", info.Models[0].Transport)
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
}
