package setup

import (
	"testing"

	"nodest/llm/llmtest"
)

// The context of a model is what its provider's list tells, however the list calls it, and is asked for once.
func TestTheContextOfAModelIsThatOfTheList(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		told  int
		want  int
	}{{"m-1", 131_072, 131_072}, {"m-1", 0, 0}, {"another", 131_072, 0}} {
		fake := llmtest.NewOpenAI(t)
		fake.SetModels("m-1")
		fake.SetContext(tt.told)
		m, err := modelsOf(t, nil, "OPENAI_BASE_URL", fake.URL)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			model, err := m.Resolve(t.Context(), "ann", "openai", tt.model, "")
			if err != nil {
				t.Fatal(err)
			}
			if model.ContextTokens != tt.want {
				t.Errorf("%s, of which the list tells %d: %d tokens, want %d", tt.model, tt.told, model.ContextTokens, tt.want)
			}
		}
		if asked := len(fake.Requests()); asked != 1 {
			t.Errorf("the list was asked for %d times", asked)
		}
	}
}

// A provider that has no list now keeps the contexts that it has told before, and those that all its models have.
func TestTheContextOfAModelIsKnownWithoutTheList(t *testing.T) {
	t.Parallel()
	m, err := modelsOf(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	model, err := m.Resolve(t.Context(), "ann", "offline", "", "")
	if err != nil || model.ContextTokens != 32_768 {
		t.Errorf("the offline model: %d, %v", model.ContextTokens, err)
	}
}
