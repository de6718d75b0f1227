package setup

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"nodest/llm/llmtest"
)

// Strict turns are on unless the model is known to accept messages as they are.
func TestStrictTurnsByProviderAndModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, provider, model string
		env                   []string
		strict                bool
	}{
		{"OpenAI", "openai", "gpt-4o", []string{"OPENAI_API_KEY", "k"}, false},
		{"Azure", "openai", "x", []string{"OPENAI_BASE_URL", "https://me.openai.azure.com/openai/v1"}, false},
		{"a host that only looks like OpenAI", "openai", "x", []string{"OPENAI_BASE_URL", "https://api.openai.com.evil.example/v1"}, true},
		{"DeepSeek", "openai", "deepseek-reasoner", []string{"OPENAI_BASE_URL", "https://api.deepseek.com/v1"}, true},
		{"a local server", "openai", "gemma3", []string{"OPENAI_BASE_URL", "http://127.0.0.1:11434/v1"}, true},
		{"switched off", "openai", "gemma3", []string{"OPENAI_BASE_URL", "http://127.0.0.1:1/v1", "NODEST_OPENAI_STRICT_TURNS", "off"}, false},
		{"switched on", "openai", "gpt-4o", []string{"OPENAI_API_KEY", "k", "NODEST_OPENAI_STRICT_TURNS", "on"}, true},
		{"a large model on OpenRouter", "openrouter", "anthropic/claude-sonnet-5", []string{"OPENROUTER_API_KEY", "k"}, false},
		{"OpenRouter's own choice, which may be any model", "openrouter", "openrouter/auto", []string{"OPENROUTER_API_KEY", "k"}, true},
		{"a large model on OpenRouter with a small backup model", "openrouter", "openai/gpt-4o", []string{"OPENROUTER_API_KEY", "k", "NODEST_OPENROUTER_BACKUP_MODELS", "x-ai/grok-4, google/gemma-3-27b-it"}, true},
		{"Gemma on OpenRouter", "openrouter", "google/gemma-3-27b-it", []string{"OPENROUTER_API_KEY", "k"}, true},
		{"open weights on OpenRouter", "openrouter", "openai/gpt-oss-120b", []string{"OPENROUTER_API_KEY", "k"}, true},
		{"a small model on OpenRouter, switched off", "openrouter", "x/y", []string{"OPENROUTER_API_KEY", "k", "NODEST_OPENROUTER_STRICT_TURNS", "off"}, false},
		{"Gemini", "gemini", "gemini-flash-latest", []string{"GEMINI_API_KEY", "k"}, false},
		{"the offline model", "offline", "", nil, false},
	} {
		m, err := modelsOf(t, nil, tt.env...)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		model, err := m.Resolve(t.Context(), "ann", tt.provider, tt.model, "")
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if model.StrictTurns != tt.strict {
			t.Fatalf("%s: model.StrictTurns is %v, want %v", tt.name, model.StrictTurns, tt.strict)
		}
	}
	_, err := Load(getenvOf("NODEST_OPENAI_STRICT_TURNS", "maybe"), nil)
	if err == nil || !strings.Contains(err.Error(), "NODEST_OPENAI_STRICT_TURNS") {
		t.Fatalf("got error %v, want one with %q", err, "NODEST_OPENAI_STRICT_TURNS")
	}
}

// Every request to OpenRouter contains the settings for its routing.
func TestOpenRouterSettingsAreSent(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	m, err := modelsOf(t, nil, "OPENROUTER_API_KEY", "k", "NODEST_OPENROUTER_BASE_URL", fake.URL,
		"NODEST_OPENROUTER_BACKUP_MODELS", "a/one, b/two", "NODEST_OPENROUTER_SORT", "price",
		"NODEST_OPENROUTER_IGNORE", "cheap", "NODEST_OPENROUTER_DATA_COLLECTION", "deny")
	if err != nil {
		t.Fatal(err)
	}
	model, err := m.Resolve(t.Context(), "ann", "openrouter", "a/zero", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := llmtest.Read(t, model.Generator.Stream(t.Context(), llmtest.Ask("hi"))).Err; err != nil {
		t.Fatal(err)
	}
	var sent map[string]json.RawMessage
	all := fake.Requests() // the first is for the list of models
	if err := json.Unmarshal(all[len(all)-1].Body, &sent); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"models":   []any{"a/one", "b/two"},
		"provider": map[string]any{"sort": "price", "ignore": []any{"cheap"}, "data_collection": "deny"},
	} {
		var got any
		if err := json.Unmarshal(sent[name], &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is %v, want %v", name, got, want)
		}
	}

	_, err = Load(getenvOf("NODEST_OPENROUTER_SORT", "beauty"), nil)
	if err == nil || !strings.Contains(err.Error(), "NODEST_OPENROUTER_SORT") {
		t.Fatalf("got error %v, want one with %q", err, "NODEST_OPENROUTER_SORT")
	}
}
