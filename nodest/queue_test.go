package nodest

import (
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
)

// parseGenerations makes generations, oldest first, from words such as "a:run
// b:wait": conversation and state. Their ids are their positions, from 1.
func parseGenerations(words string) []*chat.Generation {
	var list []*chat.Generation
	for i, w := range strings.Fields(words) {
		conv, state, _ := strings.Cut(w, ":")
		g := &chat.Generation{ID: string(rune('1' + i)), ConversationID: conv, Status: chat.GenStreaming}
		if state == "wait" {
			g.Status = chat.GenQueued
		}
		list = append(list, g)
	}
	return list
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		running  string
		whenBusy string
		queued   bool
		cancel   string // ids
		code     fault.Code
		busyWith string
	}{
		{name: "nothing runs", running: ""},
		{name: "another conversation runs", running: "b:run"},
		{name: "the reply limit is reached", running: "b:run c:run", queued: true},
		{name: "the queue is full", running: "b:run c:run d:wait e:wait f:wait g:wait", code: fault.TooManyGenerations},
		{name: "the queue is full, but the reply limit is not reached", running: "b:run c:wait d:wait e:wait f:wait"},
		{name: "busy", running: "b:run a:run", code: fault.Busy, busyWith: "2"},
		{name: "busy with a queued one", running: "a:wait", code: fault.Busy, busyWith: "1"},
		{name: "busy before full", running: "a:run c:run d:wait e:wait f:wait g:wait", code: fault.Busy, busyWith: "1"},
		{name: "queue behind", running: "a:run", whenBusy: busyQueue, queued: true},
		{name: "queue needs no queue", running: "b:run", whenBusy: busyQueue},
		{name: "queue behind a full queue", running: "a:run a:wait a:wait a:wait a:wait", whenBusy: busyQueue, code: fault.TooManyGenerations},
		{name: "cancel", running: "b:run a:run", whenBusy: busyCancel, queued: true, cancel: "2"},
		{name: "cancel also what waits", running: "a:run b:run a:wait", whenBusy: busyCancel, queued: true, cancel: "13"},
		{name: "what is cancelled does not fill the queue", running: "a:run a:wait a:wait a:wait a:wait", whenBusy: busyCancel, queued: true, cancel: "12345"},
		{name: "cancel nothing", running: "b:run", whenBusy: busyCancel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := admit(parseGenerations(tt.running), "a", tt.whenBusy, 2, 4)
			if tt.code != "" {
				if !fault.Is(err, tt.code) {
					t.Fatalf("error = %v, want %s", err, tt.code)
				}
				if got := fault.Public(err).Details["generationId"]; tt.busyWith != "" && got != tt.busyWith {
					t.Errorf("busy with %v, want %s", got, tt.busyWith)
				}
				return
			}
			if err != nil || a.queued != tt.queued || strings.Join(a.cancel, "") != tt.cancel {
				t.Errorf("admit = %+v, %v; want queued %t, cancel %q", a, err, tt.queued, tt.cancel)
			}
		})
	}
}

func TestMayStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		running string
		starts  string // ids of those that may start, two at once
	}{
		{"a:wait", "1"},
		{"a:wait b:wait c:wait", "12"},
		{"a:run b:wait c:wait", "2"},
		{"a:run b:run c:wait", ""},
		{"a:run a:wait b:wait", "3"},
		{"a:wait a:wait b:wait", "13"},
		{"a:wait b:run", "1"}, // no other generation of its conversation is running
		{"b:run a:wait a:wait c:wait", "2"},
	}
	for _, tt := range tests {
		list := parseGenerations(tt.running)
		var starts []string
		for _, g := range list {
			if g.Status == chat.GenQueued && mayStart(list, g.ID, 2) {
				starts = append(starts, g.ID)
			}
		}
		if got := strings.Join(starts, ""); got != tt.starts {
			t.Errorf("of %s start %q, want %q", tt.running, got, tt.starts)
		}
	}
	if mayStart(parseGenerations("a:wait"), "unknown", 2) {
		t.Error("an unknown generation may start")
	}
}

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
