package summary_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/internal/summary"
)

// A chat that is read in parts, and thinned after each, gives the summary of all its messages.
func TestAThinnedChatHasTheSameSummary(t *testing.T) {
	const n = 900 // messages of about 900 characters, of which a third is read
	lines := chatLines(n, "")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range lines {
		lines[i].Text = fmt.Sprintf("%d. I will go to Lisbon. %s", i, strings.Repeat("我们😀 tea. ", random.IntN(200)))
	}
	active := func(start, end int, change func(*summary.Summary)) *summary.Summary {
		s := summaryOf(lines, start, end, strings.Repeat("They met. ", 90))
		change(s)
		return s
	}
	none := func(*summary.Summary) {}
	stale := func(s *summary.Summary) { s.Stale = true }
	tests := []struct {
		name     string
		active   *summary.Summary
		occasion summary.Occasion
		fold     bool
	}{
		{name: "the first summary"},
		{name: "one is continued", active: active(3, 40, none), fold: true},
		{name: "one that begins later", active: active(20, 40, func(s *summary.Summary) { s.Method = summary.MethodUser }), fold: true},
		{name: "one is continued from the end of the chat", active: active(3, 880, none), fold: true},
		{name: "one is rebuilt", active: active(3, 40, stale)},
		{name: "one that ends in what is read", active: active(3, 860, stale)},
		{name: "with the messages before it", active: active(20, 40, stale)},
		{name: "one that ends in the last three", active: active(3, n-2, stale), occasion: summary.OnDemand},
		{name: "at rest, when it stays what it was about", active: active(3, 700, stale), occasion: summary.AtRest},
		{name: "also where it begins later", active: active(30, 800, stale), occasion: summary.AtRest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := summary.State{Lines: lines, Active: tt.active, Settings: summary.DefaultSettings(), Occasion: tt.occasion}
			if tt.occasion == summary.AtRest {
				state.Settings.Threshold = 1 << 30 // nothing more is due
			}
			plan := summary.MakePlan(state)
			if plan.Skip != "" || plan.Rebuild == tt.fold {
				t.Fatalf("plan = %+v", plan)
			}
			aim := summary.Aim{Active: tt.active, Fold: tt.fold}
			if tt.active != nil && !tt.fold {
				aim.From, aim.To = plan.Range.StartID, plan.Range.EndID
			}
			state.Lines = thinned(t, aim, lines)
			if thin := summary.MakePlan(state); thin != plan {
				t.Fatalf("plan of the thinned chat %+v, want %+v", thin, plan)
			}
			want, wantAttempt := written(t, &plan, lines, tt.active)
			got, attempt := written(t, &plan, state.Lines, tt.active)
			if !reflect.DeepEqual(got, want) || attempt != wantAttempt {
				t.Errorf("summary %+v, %+v, want %+v, %+v", got, attempt, want, wantAttempt)
			}
		})
	}
}

// thinned reads lines in parts of 100 and returns what is kept of them.
func thinned(t *testing.T, aim summary.Aim, lines []summary.ChatLine) []summary.ChatLine {
	t.Helper()
	var kept []summary.ChatLine
	for part := range slices.Chunk(lines, 100) {
		kept = aim.Thin(append(kept, part...))
		size := 0
		for i := range kept {
			size += len([]rune(kept[i].Text))
		}
		if size > 260_000 {
			t.Fatalf("texts of %d characters are kept", size)
		}
	}
	if len(kept) == len(lines) || summary.Messages(kept) != len(lines) {
		t.Fatalf("%d lines for %d of %d messages", len(kept), summary.Messages(kept), len(lines))
	}
	return kept
}

func written(t *testing.T, plan *summary.Plan, lines []summary.ChatLine, active *summary.Summary) (*summary.Summary, summary.Attempt) {
	t.Helper()
	w, err := plan.Work(lines, active)
	if err != nil {
		t.Fatal(err)
	}
	draft, err := summary.Write(t.Context(), nil, w)
	if err != nil {
		t.Fatal(err)
	}
	made := plan.Summary(w, draft)
	return made, summary.AttemptOf(lines, made)
}
