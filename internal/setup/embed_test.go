package setup

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/openai"
	"nodest/server"
)

// modelsOf returns the models of a configuration; own holds a user's API keys.
func modelsOf(t *testing.T, own map[string]string, pairs ...string) (*Models, error) {
	t.Helper()
	cfg, err := Load(getenvOf(pairs...), nil)
	if err != nil {
		t.Fatal(err)
	}
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
		{"a key of Jina is for searching", []string{"JINA_API_KEY", "k"}, "offline-hash-512-1"},
		{"Jina is asked for", []string{"JINA_API_KEY", "k", "NODEST_EMBEDDINGS", "jina"}, "jina:jina-embeddings-v3@768"},
		{"Jina is asked for without a key", []string{"NODEST_EMBEDDINGS", "jina"}, ""},
		{"what is asked for is not set up", []string{"NODEST_EMBEDDINGS", "gemini"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := modelsOf(t, nil, tt.env...)
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), "NODEST_EMBEDDINGS") {
					t.Fatalf("got error %v, want one with %q", err, "NODEST_EMBEDDINGS")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			e, err := m.Embedder(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if got := e.ModelID(); got != tt.want {
				t.Fatalf("e.ModelID() is %q, want %q", got, tt.want)
			}
			list := []server.ProviderInfo{{Name: "gemini"}, {Name: "openrouter"}, {Name: "openai"}, {Name: "offline"}}
			if err := m.nameVectors(t.Context(), "user", list); err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				if p.Name == m.embeddings() {
					if p.EmbeddingModel != tt.want {
						t.Fatalf("p.EmbeddingModel is %q, want %q", p.EmbeddingModel, tt.want)
					}
				} else {
					if p.EmbeddingModel != "" {
						t.Fatalf("p.EmbeddingModel is %q, want none", p.EmbeddingModel)
					}
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
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewModels(cfg, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context, string) (map[string]string, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			e, err := m.Embedder(t.Context(), "ann")
			if err != nil {
				t.Fatal(err)
			}
			if got := e.ModelID(); got != "offline-hash-512-1" {
				t.Fatalf("e.ModelID() is %q, want %q", got, "offline-hash-512-1")
			}
		}
		probes := slices.DeleteFunc(fake.Requests(), func(r llmtest.Request) bool { return !strings.HasSuffix(r.Path, "/embeddings") })
		if len(probes) != 1 {
			t.Fatalf("the server is asked once: probes has %d, want %d: %+v", len(probes), 1, probes)
		}
		if got := strings.Count(log.String(), "has no embeddings"); got != 1 {
			t.Fatalf("got %d, want %d", got, 1)
		}
		_, e, why, err := m.Vectors(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.ModelID(); got != "offline-hash-512-1" {
			t.Fatalf("e.ModelID() is %q, want %q", got, "offline-hash-512-1")
		}
		if why == nil || !strings.Contains(fault.Public(why).Message, "no embeddings here") {
			t.Fatalf("got error %v, want one with %q", why, "no embeddings here")
		}

		asked, err := modelsOf(t, nil, append(env, "NODEST_EMBEDDINGS", "openai")...)
		if err != nil {
			t.Fatal(err)
		}
		e, err = asked.Embedder(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		if got := e.ModelID(); got != "openai:text-embedding-3-small@768" {
			t.Fatalf("e.ModelID() is %q, want %q", got, "openai:text-embedding-3-small@768")
		}
	}
}

// While a server is down it is not known whether it has embeddings, so it is probed
// again later.
func TestAServerThatIsDownIsProbedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := false
		m, err := modelsOf(t, nil, "OPENAI_BASE_URL", "http://server.invalid/v1", "OPENAI_API_KEY", "k")
		if err != nil {
			t.Fatal(err)
		}
		m.server["openai"], err = openai.New(llm.ParseKeys("k"), openai.Options{
			BaseURL: "http://server.invalid/v1", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if !up {
					return nil, syscall.ECONNREFUSED
				}
				return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		by := func() string { return m.vectorsBy(t.Context(), "") }
		if got := by(); got != "openai" {
			t.Fatalf("by() is %q, want %q", got, "openai")
		}
		up = true
		if got := by(); got != "openai" {
			t.Fatalf("it is left alone for a while: by() is %q, want %q", got, "openai")
		}
		time.Sleep(probeSoon)
		if got := by(); got != "offline" {
			t.Fatalf("by() is %q, want %q", got, "offline")
		}
		up = false
		time.Sleep(time.Hour)
		if got := by(); got != "offline" {
			t.Fatalf("it stays so: by() is %q, want %q", got, "offline")
		}
	})
}

// A caller whose context ends does not cancel the probe that another caller waits
// for; there is one probe for both.
func TestACancelledCallerDoesNotStopTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m, err := modelsOf(t, nil, "OPENAI_BASE_URL", "http://server.invalid/v1", "OPENAI_API_KEY", "k")
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if got := m.vectorsBy(hurried, "ann"); got != "openai" {
			t.Fatalf("its time is over: got %q, want %q", got, "openai")
		}
		if got := m.vectorsBy(t.Context(), "ann"); got != "offline" {
			t.Fatalf("got %q, want %q", got, "offline")
		}
		if asked != 1 {
			t.Fatalf("asked is %d, want %d", asked, 1)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModels(cfg, slog.New(slog.DiscardHandler), func(_ context.Context, user string) (map[string]string, error) {
		return map[string]map[string]string{"ann": {"openai": "sk-own"}}[user], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.vectorsBy(t.Context(), "bob"); got != "openai" {
		t.Fatalf("got %q, want %q", got, "openai")
	}
	if got := m.vectorsBy(t.Context(), "ann"); got != "offline" {
		t.Fatalf("got %q, want %q", got, "offline")
	}
	if got := m.vectorsBy(t.Context(), "bob"); got != "offline" {
		t.Fatalf("got %q, want %q", got, "offline")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Gemini has two SDKs: the list of providers names the one in use.
func TestGeminiReportsItsTransport(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	m, err := modelsOf(t, nil, "NODEST_GEMINI_BASE_URL", fake.URL, "GEMINI_API_KEY", "k")
	if err != nil {
		t.Fatal(err)
	}
	var info server.ProviderInfo
	m.describe(t.Context(), m.server["gemini"], &info)
	if info.Transport != "generative-ai-go" {
		t.Fatalf("info.Transport is %q, want %q", info.Transport, "generative-ai-go")
	}
	if info.Models[0].Transport != "generative-ai-go" {
		t.Fatalf("info.Models[0].Transport is %q, want %q", info.Models[0].Transport, "generative-ai-go")
	}
}

// TestAUsersKeyIsUsedForTheirEmbeddings: the server's key is used for everybody
// else, and embeddings made with either key can be compared.
func TestAUsersKeyIsUsedForTheirEmbeddings(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetDimension(8)
	m, err := modelsOf(t, map[string]string{"openai": "sk-own"},
		"OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server", "NODEST_EMBEDDING_MODEL", "small")
	if err != nil {
		t.Fatal(err)
	}
	var spaces, keys []string
	for _, user := range []string{"", "ann"} {
		e, err := m.Embedder(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Embed(t.Context(), llm.Query, []string{"hello"})
		if err != nil {
			t.Fatal(err)
		}
		spaces = append(spaces, e.ModelID())
	}
	for _, r := range fake.Requests() {
		keys = append(keys, r.Key)
	}
	if want := ([]string{"sk-server", "sk-server", "sk-own"}); !reflect.DeepEqual(keys, want) {
		t.Fatalf("the server is tried first: keys is %q, want %q", keys, want)
	}
	if spaces[1] != spaces[0] {
		t.Fatalf("spaces[1] is %q, want %q", spaces[1], spaces[0])
	}
}
