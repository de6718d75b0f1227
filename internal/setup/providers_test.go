package setup

import (
	"reflect"
	"strings"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) server.ProviderInfo {
		t.Helper()
		list, err := m.Providers(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			if p.Name == name {
				return p
			}
		}
		t.Fatalf("no provider %s", name)
		panic("not reached")
	}
	p := at("openai")
	if want := ([]server.ProviderModel{{ID: "m-1"}}); !reflect.DeepEqual(p.Models, want) {
		t.Fatalf("models for chats: p.Models is %+v, want %+v", p.Models, want)
	}
	if !(*p.Healthy) {
		t.Fatal("*p.Healthy is false, want true")
	}
	if p.Error != nil {
		t.Fatalf("p.Error is %+v, want nil", p.Error)
	}
	if got := at("gemini").Healthy; got != nil {
		t.Fatalf("not configured: got %+v, want nil", got)
	}
	if got := at("offline").Models[0].ID; got != "offline-demo" {
		t.Fatalf("got %q, want %q", got, "offline-demo")
	}
	if got := open.Requests(); len(got) != 1 {
		t.Fatalf("the list is kept: open.Requests() has %d, want %d: %+v", len(got), 1, got)
	}

	own["openai"] = "sk-a-bad-key" // the user stores a key: the list of that key is another one
	p = at("openai")
	if *p.Healthy {
		t.Fatal("*p.Healthy is true, want false")
	}
	if p.Error.Code != fault.UpstreamAuth {
		t.Fatalf("p.Error.Code is %q, want %q", p.Error.Code, fault.UpstreamAuth)
	}
	if strings.Contains(p.Error.Detail, "sk-a-bad-key") {
		t.Fatalf("p.Error.Detail is %q, want it without %q", p.Error.Detail, "sk-a-bad-key")
	}
	if len(p.Models) != 0 {
		t.Fatalf("p.Models is %+v, want none", p.Models)
	}
	own["openai"], own["gemini"] = "sk-good", "k"
	if got := at("openai").Models; len(got) != 1 {
		t.Fatalf("got %d, want %d: %+v", len(got), 1, got)
	}
	if got := at("gemini").Models; len(got) != 3 {
		t.Fatalf("got %d, want %d: %+v", len(got), 3, got)
	}
	for _, r := range open.Requests()[1:] {
		if r.Key == "sk-server" {
			t.Fatalf("got %q, want another", r.Key)
		}
	}

	without := llmtest.NewOpenAI(t)
	without.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Status: 404} })
	m, err = modelsOf(t, nil, "NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", without.URL)
	if err != nil {
		t.Fatal(err)
	}
	p = at("openai")
	if p.Healthy != nil {
		t.Fatalf("a server without a list may work: p.Healthy is %+v, want nil", p.Healthy)
	}
	if !reflect.DeepEqual(p.Error.Details["providerStatus"], 404) {
		t.Fatalf("got %+v, want %d", p.Error.Details["providerStatus"], 404)
	}
}

// A key of a user is asked for, without the server's fallbacks.
func TestAResolvedModelCanBeAskedAlone(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.ForKey("sk-own", llmtest.Fail(401))
	m, err := modelsOf(t, map[string]string{"openai": "sk-own"},
		"NODEST_EMBEDDINGS", "offline", "OPENAI_BASE_URL", fake.URL, "OPENAI_API_KEY", "sk-server", "NODEST_FALLBACKS", "offline")
	if err != nil {
		t.Fatal(err)
	}
	model, err := m.Resolve(t.Context(), "ann", "openai", "m", "")
	if err != nil {
		t.Fatal(err)
	}
	req := llmtest.Ask("hi")
	req.Alone = true
	if !fault.Is(llmtest.Read(t, model.Generator.Stream(t.Context(), req)).Err, fault.UpstreamAuth) {
		t.Fatal("fault.Is(llmtest.Read(t, model.Generator.Stream(t.Context(), req)).Err, fault.UpstreamAuth) is false, want true")
	}
	req.Alone = false
	if err := llmtest.Read(t, model.Generator.Stream(t.Context(), req)).Err; err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	check := func(provider, model, key string, sees bool) {
		t.Helper()
		found, err := m.Resolve(t.Context(), "ann", provider, model, "")
		if err != nil {
			t.Fatal(err)
		}
		if found.Key != key {
			t.Fatalf("found.Key is %q, want %q", found.Key, key)
		}
		if got := found.Sees(t.Context()); got != sees {
			t.Fatalf("%s %s: found.Sees(t.Context()) is %v, want %v", provider, model, got, sees)
		}
	}
	check("openai", "gpt-4o", "openai", true)
	check("openai", "llama3", "openai", false)
	check("openrouter", "listed", "openrouter", false)
	check("openrouter", "openai/gpt-4o", "openrouter", true) // not in the list
	check("offline", "", "", false)
	own["openai"] = "sk-own"
	check("openai", "gpt-4o", "openai/ann", true)

	blind, err := m.Resolve(t.Context(), "ann", "openai", "llama3", "")
	if err != nil {
		t.Fatal(err)
	}
	req := llmtest.Ask("look")
	req.Messages[0].Images = []llm.Image{{ContentType: "image/png", Data: []byte("cat")}}
	if err := llmtest.Read(t, blind.Generator.Stream(t.Context(), req)).Err; err != nil {
		t.Fatal(err)
	}
	all := fake.Requests()
	if got := all[len(all)-1].Messages[0].Images; len(got) != 0 {
		t.Fatalf("all[len(all)-1].Messages[0].Images is %+v, want none", got)
	}
}
