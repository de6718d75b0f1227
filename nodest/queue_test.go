package nodest

import (
	"slices"
	"testing"

	"nodest/character"
	"nodest/internal/fault"
)

func TestOptionsOver(t *testing.T) {
	t.Parallel()
	warm, cold, many := 1.5, 0.1, 500
	base := character.TurnOptions{Provider: "gemini", Model: "g-1", Temperature: &cold, MaxTokens: &many, Stop: []string{"x"}}
	tests := []struct {
		name            string
		top             character.TurnOptions
		provider, model string
		temperature     float64
	}{
		{"nothing of its own", character.TurnOptions{}, "gemini", "g-1", 0.1},
		{"a value of its own", character.TurnOptions{Temperature: &warm}, "gemini", "g-1", 1.5},
		{"a model of the same provider", character.TurnOptions{Model: "g-2"}, "gemini", "g-2", 0.1},
		{"another provider has another model", character.TurnOptions{Provider: "openrouter"}, "openrouter", "", 0.1},
		{"the same provider by name", character.TurnOptions{Provider: "gemini"}, "gemini", "g-1", 0.1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.top.Over(base)
			if got.Provider != tt.provider || got.Model != tt.model || *got.Temperature != tt.temperature || *got.MaxTokens != 500 {
				t.Errorf("over = %+v", got)
			}
			if !slices.Equal(got.Stop, base.Stop) {
				t.Errorf("stop = %v", got.Stop)
			}
		})
	}
}

func TestValidateReportsEveryField(t *testing.T) {
	t.Parallel()
	hot, none := 2.5, 0
	err := character.TurnOptions{Temperature: &hot, MaxTokens: &none, Model: "a\x00", Stop: []string{""}}.Validate("options")
	var fields []string
	for _, f := range fault.Public(err).Fields {
		fields = append(fields, f.Field)
	}
	want := []string{"options.temperature", "options.maxTokens", "options.model", "options.stop[0]"}
	if !slices.Equal(fields, want) {
		t.Errorf("fields = %v, want %v", fields, want)
	}
	if err := (character.TurnOptions{}).Validate(""); err != nil {
		t.Errorf("nothing set: %v", err)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	n := func(i int) *int { return &i }
	tests := []struct {
		name             string
		model            int
		context, length  *int
		wantC, wantSpare int
	}{
		{"nothing known", 0, nil, nil, 32_768, 4_096},
		{"of the model", 8_000, nil, nil, 8_000, 2_000},
		{"less by choice", 8_000, n(1_000), nil, 1_000, 250},
		{"no more than the model has", 8_000, n(1_000_000), nil, 8_000, 2_000},
		{"a longer reply", 8_000, nil, n(3_000), 8_000, 3_000},
		{"a reply that would leave no prompt", 8_000, nil, n(320_000), 8_000, 4_000},
	}
	for _, tt := range tests {
		c, spare := budget(character.TurnOptions{ContextTokens: tt.context, MaxTokens: tt.length}, Model{ContextTokens: tt.model})
		if c != tt.wantC || spare != tt.wantSpare {
			t.Errorf("%s: %d, %d; want %d, %d", tt.name, c, spare, tt.wantC, tt.wantSpare)
		}
	}
}
