package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"nodest/internal/setup"
	"nodest/llm/llmtest"
)

// checksOf returns what doctor says of the models of a configuration.
func checksOf(t *testing.T, network bool, pairs ...string) []check {
	t.Helper()
	cfg, err := setup.Load(getenvOf(pairs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := setup.NewModels(cfg, slog.New(slog.DiscardHandler), func(context.Context, string) (map[string]string, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
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
		if c.fix != "" {
			t.Fatalf("%s: %s: c.fix is %q, want none", c.name, c.detail, c.fix)
		}
	}
	vectors := func(checks []check) check {
		return checks[slices.IndexFunc(checks, func(c check) bool { return c.name == "embeddings" })]
	}
	if got := vectors(checks).detail; !strings.Contains(got, "offline-hash-512-1, because the server has no embeddings") {
		t.Fatalf("vectors(checks).detail is %q, want it with %q", got, "offline-hash-512-1, because the server has no embeddings")
	}
	if got := vectors(checksOf(t, true, append(env, "NODEST_EMBEDDINGS", "openai")...)).fix; !strings.Contains(got, "no embeddings here") {
		t.Fatalf("got %q, want it with %q", got, "no embeddings here")
	}

	whole := llmtest.NewOpenAI(t)
	whole.SetDimension(8)
	env = []string{"OPENAI_BASE_URL", whole.URL, "OPENAI_API_KEY", "sk-server", "NODEST_EMBEDDING_MODEL", "small", "NODEST_EMBEDDINGS", "openai"}
	if got := vectors(checksOf(t, true, env...)).fix; got != "" {
		t.Fatalf("vectors(checksOf(t, true, env...)).fix is %q, want none", got)
	}
	whole.LoseVectors()
	if got := vectors(checksOf(t, true, env...)).fix; got == "" {
		t.Fatalf("vectors(checksOf(t, true, env...)).fix is %q, want more", got)
	}
}

func TestDoctorChecksTheModel(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("llama3.2:latest", "qwen3:8b", "qwen3:32b", "nomic-embed-text:latest")
	fix := func(pairs ...string) string {
		return checksOf(t, true, append([]string{"NODEST_EMBEDDINGS", "offline"}, pairs...)...)[0].fix
	}
	at := func(model string) string { return fix("OPENAI_BASE_URL", fake.URL, "NODEST_MODEL", model) }
	if got := at("llama3.2"); got != "" {
		t.Fatalf("got %q, want none", got)
	}
	if got := at("qwen3:8b"); got != "" {
		t.Fatalf("got %q, want none", got)
	}
	if got := at("qwen-3"); got != `model "qwen-3" is not among the models the server lists (4); did you mean qwen3:8b, qwen3:32b? Set NODEST_MODEL.` {
		t.Fatalf("got %q, want %q", got, `model "qwen-3" is not among the models the server lists (4); did you mean qwen3:8b, qwen3:32b? Set NODEST_MODEL.`)
	}
	if got := at("xyz"); got != `model "xyz" is not among the models the server lists (4). Set NODEST_MODEL.` {
		t.Fatalf("got %q, want %q", got, `model "xyz" is not among the models the server lists (4). Set NODEST_MODEL.`)
	}
	if got := fix("OPENAI_BASE_URL", fake.URL, "NODEST_MODEL", "llama3.2", "NODEST_FALLBACKS", "openai:qwen-2"); got != `model "qwen-2" is not among the models the server lists (4); did you mean qwen3:8b, qwen3:32b? Correct NODEST_FALLBACKS.` {
		t.Fatalf("got %q, want %q", got, `model "qwen-2" is not among the models the server lists (4); did you mean qwen3:8b, qwen3:32b? Correct NODEST_FALLBACKS.`)
	}
	fake.SetModels("models/gemini-3.7-flash")
	if got := at("gemini-3.7-flash"); got != "" {
		t.Fatalf("Google's interface lists names that it takes in short as well: got %q, want none", got)
	}
	if got := fix("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"); got != "OpenAI-compatible server at http://127.0.0.1:1/v1 does not respond: connection refused" {
		t.Fatalf("got %q, want %q", got, "OpenAI-compatible server at http://127.0.0.1:1/v1 does not respond: connection refused")
	}
}

// If the provider does not list its models, doctor says that it could not check the
// model.
func TestDoctorReportsAMissingModelList(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Status: 404, Message: "no such page"} })
	c := checksOf(t, true, "NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", fake.URL, "NODEST_MODEL", "m")[0]
	if c.fix != "" {
		t.Fatalf("c.fix is %q, want none", c.fix)
	}
	if c.detail != "model m (default); not checked, because the server has no list of models (OpenAI-compatible server rejected the request: no such page). "+
		"If it does not answer in a chat either, check the base URL" {
		t.Fatalf("c.detail is %q, want %q", c.detail, "model m (default); not checked, because the server has no list of models (OpenAI-compatible server rejected the request: no such page). "+
			"If it does not answer in a chat either, check the base URL")
	}
}

// Gemini has two SDKs: doctor names the one in use.
func TestDoctorNamesTheTransportOfGemini(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	checks := func(network bool) []check {
		return checksOf(t, network, "NODEST_GEMINI_BASE_URL", fake.URL, "GEMINI_API_KEY", "k")
	}
	if got := checks(false)[0].detail; got != "model of the provider's list (default)" {
		t.Fatalf("checks(false)[0].detail is %q, want %q", got, "model of the provider's list (default)")
	}
	if got := checks(true)[0].detail; got != "model gemini-flash-latest through generative-ai-go (default)" {
		t.Fatalf("checks(true)[0].detail is %q, want %q", got, "model gemini-flash-latest through generative-ai-go (default)")
	}
}

// The offline model is known without a network.
func TestDoctorNamesTheOfflineModel(t *testing.T) {
	t.Parallel()
	if got := checksOf(t, false)[0].detail; got != "model offline-demo (default)" {
		t.Fatalf("checksOf(t, false)[0].detail is %q, want %q", got, "model offline-demo (default)")
	}
}
