package summary_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/summary"
	"nodest/llm"
)

// chatLines is a chat of n messages with the same text; the character speaks first.
func chatLines(n int, text string) []summary.ChatLine {
	lines := make([]summary.ChatLine, n)
	for i := range lines {
		l := summary.ChatLine{MessageID: fmt.Sprintf("m%d", i), RevisionID: fmt.Sprintf("r%d", i), Seq: int64(i + 1), Role: llm.Assistant, Name: "Mara", Text: text}
		if i%2 == 1 {
			l.Role, l.Name = llm.User, "Ben"
		}
		lines[i] = l
	}
	lines[0].Greeting = true
	return lines
}

// summaryOf is a summary of lines[start:end+1].
func summaryOf(lines []summary.ChatLine, start, end int, text string) *summary.Summary {
	return &summary.Summary{
		ID: "s1", Text: text, Count: end - start + 1, Generation: 1, Method: summary.MethodModel,
		Range: summary.Range{
			Start: start, End: end, StartID: lines[start].MessageID, EndID: lines[end].MessageID,
			StartSeq: lines[start].Seq, EndSeq: lines[end].Seq,
		},
		Digest: summary.ExtendDigest("", lines[start:end+1]),
	}
}

func TestSummarySettings(t *testing.T) {
	tests := []struct {
		name, json string
		want       summary.Settings
		field      string // the refused field
	}{
		{name: "nothing set: on, 6000, 1000", json: `{}`, want: summary.Settings{Enabled: true, Threshold: 6000, Length: 1000}},
		{name: "the ends of the ranges", json: `{"enabled":false,"summaryThreshold":3000,"summaryLength":2000,"lastSummarizedAt":7,"other":1}`,
			want: summary.Settings{Threshold: 3000, Length: 2000, LastSummarizedAt: 7}},
		{name: "a threshold below its range", json: `{"summaryThreshold":2999}`, field: "summaryThreshold"},
		{name: "a threshold above it", json: `{"summaryThreshold":1000001}`, field: "summaryThreshold"},
		{name: "a length below its range", json: `{"summaryLength":499}`, field: "summaryLength"},
		{name: "a length above it", json: `{"summaryLength":2001}`, field: "summaryLength"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got summary.Settings
			if err := json.Unmarshal([]byte(tt.json), &got); err != nil {
				t.Fatal(err)
			}
			err := got.Validate()
			if tt.field == "" {
				if err != nil || got != tt.want {
					t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
				}
				return
			}
			if !fault.Is(err, fault.Invalid) || len(fault.Public(err).Fields) != 1 || fault.Public(err).Fields[0].Field != tt.field {
				t.Errorf("got %v, want a refusal of %s", err, tt.field)
			}
			if !strings.Contains(err.Error(), " to ") {
				t.Errorf("%v does not name the range", err)
			}
		})
	}
}

func TestSummaryDocumentHasTheFieldNamesOfTheOriginal(t *testing.T) {
	s := summaryOf(chatLines(50, "x"), 3, 41, "What happened.")
	s.At = time.UnixMilli(1741312345678).UTC()
	s.BaseID, s.Model, s.Stale = "s0", "m", true
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"start": 3.0, "end": 41.0}
	if doc["summary"] != s.Text || doc["isMemorySummary"] != true || doc["timestamp"] != 1741312345678.0 || !reflect.DeepEqual(doc["originalMessagesRange"], want) {
		t.Errorf("document = %s", data)
	}
	var back summary.Summary
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(&back, s) {
		t.Errorf("read back %+v, %v; want %+v", back, err, s)
	}
}

func TestDigestMatchesTheSummarisedTexts(t *testing.T) {
	lines := chatLines(20, "x")
	s := summaryOf(lines, 3, 10, "…")
	if !fits(s, lines[3:11]) {
		t.Error("does not fit what it was made of")
	}
	edited := slices.Clone(lines)
	edited[5].Text = "y"
	if fits(s, edited[3:11]) || fits(s, lines[3:10]) {
		t.Error("fits other texts")
	}
	copied := slices.Clone(lines)
	for i := range copied {
		copied[i].MessageID, copied[i].RevisionID = "copy of "+copied[i].MessageID, "copy of "+copied[i].RevisionID
	}
	if !fits(s, copied[3:11]) {
		t.Error("does not fit copies of them")
	}
	if folded := summary.ExtendDigest(s.Digest, lines[11:15]); folded != summary.ExtendDigest("", lines[3:15]) {
		t.Error("folding and reading all at once give different digests")
	}
}

// planCase is a state of a chat and the plan expected for it.
type planCase struct {
	name     string
	messages int
	text     string
	active   *summary.Summary
	change   func(*summary.State)
	skip     summary.Skip
	from, to int  // the messages that are covered then
	rebuild  bool // made from the messages themselves
}

func TestPlanOfTheFirstSummary(t *testing.T) {
	runPlans(t, []planCase{
		{name: "an empty chat", skip: summary.SkipFew},
		{name: "nine messages, however long", messages: 9, text: strings.Repeat("a", 9000), skip: summary.SkipFew},
		{name: "nine messages, also when asked for", messages: 9, text: strings.Repeat("a", 9000), change: atOccasion(summary.OnDemand), skip: summary.SkipFew},
		{name: "exactly the threshold", messages: 10, text: strings.Repeat("a", 600), from: 3, to: 6, rebuild: true},
		{name: "just below it", messages: 10, text: strings.Repeat("a", 599), skip: summary.SkipShort},
		{name: "characters, not bytes", messages: 10, text: strings.Repeat("茶", 599), skip: summary.SkipShort},
		{name: "what is outside the basic plane counts twice", messages: 10, text: strings.Repeat("🍵", 300), from: 3, to: 6, rebuild: true},
		{name: "switched off", messages: 30, text: strings.Repeat("a", 900), change: disable, skip: summary.SkipDisabled},
		{name: "switched off, but asked for", messages: 30, text: "short", change: func(s *summary.State) { disable(s); s.Occasion = summary.OnDemand }, from: 3, to: 26, rebuild: true},
		{name: "long ends around a short middle", messages: 10, text: strings.Repeat("a", 100), change: func(s *summary.State) {
			s.Lines[0].Text, s.Lines[9].Text = strings.Repeat("a", 3000), strings.Repeat("a", 3000)
		}, skip: summary.SkipLittleGain},
	})
}

func disable(s *summary.State) { s.Settings.Enabled = false }

func atOccasion(o summary.Occasion) func(*summary.State) {
	return func(s *summary.State) { s.Occasion = o }
}

func TestPlanWithAnActiveSummary(t *testing.T) {
	long := strings.Repeat("a", 300)
	first := summaryOf(chatLines(40, long), 3, 16, strings.Repeat("s", 900)) // made from the first 20 messages
	with := func(change func(*summary.Summary)) *summary.Summary {
		s := *first
		change(&s)
		return &s
	}
	stale := with(func(s *summary.Summary) { s.Stale = true })
	extractive := with(func(s *summary.Summary) { s.Method = summary.MethodExtractive })
	third := with(func(s *summary.Summary) { s.Generation = 3 })
	mine := with(func(s *summary.Summary) { s.Method, s.Stale, s.Generation = summary.MethodUser, true, 3 })
	longest := summaryOf(chatLines(520, long), 3, 490, strings.Repeat("s", 900))
	of := func(method summary.Method, generation int) *summary.Summary {
		s := *longest
		s.Method, s.Generation = method, generation
		return &s
	}
	lines := chatLines(40, long)
	part := summaryOf(lines, 8, 14, strings.Repeat("s", 900)) // a range chosen by the user
	late, stalePart, minePart := *part, *part, *part
	late.Range.End, late.Range.EndID, late.Range.EndSeq, late.Count = 28, "m28", lines[28].Seq, 21
	stalePart.Stale, minePart.Method = true, summary.MethodUser
	cooling := func(newMessages int, length int) func(*summary.State) {
		return func(s *summary.State) {
			s.Last = &summary.Attempt{SummaryID: "s1", Seq: int64(len(s.Lines) - newMessages), Length: 6000}
			for i := len(s.Lines) - newMessages; i < len(s.Lines); i++ {
				s.Lines[i].Text = strings.Repeat("b", length)
			}
		}
	}
	runPlans(t, []planCase{
		{name: "covered messages do not count", messages: 29, text: long, active: first, skip: summary.SkipShort},
		{name: "past the threshold again: from the end of the last one", messages: 32, text: long, active: first, from: 17, to: 28},
		{name: "every fourth one from the messages", messages: 32, text: long, active: third, from: 3, to: 28, rebuild: true},
		{name: "also when later ones were thrown away", messages: 32, text: long, active: first, change: func(s *summary.State) { s.Latest = 7 }, from: 3, to: 28, rebuild: true},
		{name: "but not in a long chat", messages: 520, text: long, active: of(summary.MethodModel, 3), from: 491, to: 516},
		{name: "where sentences are folded too", messages: 520, text: long, active: of(summary.MethodExtractive, 1), from: 491, to: 516},
		{name: "until the chat rests", messages: 520, text: long, active: of(summary.MethodExtractive, 1), change: atOccasion(summary.AtRest), from: 3, to: 516, rebuild: true},
		{name: "a stale one stays until the threshold", messages: 29, text: long, active: stale, skip: summary.SkipShort},
		{name: "or until the chat rests", messages: 20, text: long, active: stale, change: atOccasion(summary.AtRest), from: 3, to: 16, rebuild: true},
		{name: "stale and past the threshold", messages: 32, text: long, active: stale, from: 3, to: 28, rebuild: true},
		{name: "sentences give way to a model when the chat rests", messages: 20, text: long, active: extractive, change: atOccasion(summary.AtRest), from: 3, to: 16, rebuild: true},
		{name: "but not without one", messages: 20, text: long, active: extractive, change: func(s *summary.State) { s.Occasion, s.NoModel = summary.AtRest, true }, skip: summary.SkipShort},
		{name: "sentences are folded without a model", messages: 32, text: long, active: extractive, change: func(s *summary.State) { s.NoModel = true }, from: 17, to: 28},
		{name: "at rest it stays what it was about", messages: 29, text: long, active: stale, change: atOccasion(summary.AtRest), from: 3, to: 16, rebuild: true},
		{name: "also where it does not begin after the first three", messages: 20, text: long, active: &stalePart, change: atOccasion(summary.AtRest), from: 8, to: 14, rebuild: true},
		{name: "and more is due only past the threshold", messages: 40, text: long, active: &stalePart, change: atOccasion(summary.AtRest), from: 3, to: 36, rebuild: true},
		{name: "asked for: everything, also before the one in force", messages: 20, text: long, active: part, change: atOccasion(summary.OnDemand), from: 3, to: 16, rebuild: true},
		{name: "also where nothing is new behind it", messages: 32, text: long, active: &late, change: atOccasion(summary.OnDemand), from: 3, to: 28, rebuild: true},
		{name: "past the threshold likewise", messages: 32, text: strings.Repeat("a", 600), active: &late, from: 3, to: 28, rebuild: true},
		{name: "but not for a few short messages", messages: 32, text: long, active: &late, change: func(s *summary.State) {
			for i := 3; i < 8; i++ {
				s.Lines[i].Text = "Yes."
			}
			s.Lines[0].Text = strings.Repeat("a", 6000)
		}, skip: summary.SkipLittleGain},
		{name: "the user's words stay where they are", messages: 40, text: long, active: &minePart, from: 15, to: 36},
		{name: "rest alone is no reason", messages: 20, text: long, active: first, change: atOccasion(summary.AtRest), skip: summary.SkipShort},
		{name: "the user's words are kept", messages: 32, text: long, active: mine, from: 17, to: 28},
		{name: "also when a new one is asked for without anything new", messages: 20, text: long, active: mine, change: atOccasion(summary.OnDemand), skip: summary.SkipUserText},
		{name: "asked for again: a fresh one", messages: 20, text: long, active: first, change: atOccasion(summary.OnDemand), from: 3, to: 16, rebuild: true},
		{name: "everything is covered", messages: 20, text: long, active: first, change: func(s *summary.State) { s.Lines[1].Text = strings.Repeat("a", 6000) }, skip: summary.SkipNothingNew},
		{name: "still too long right after the last one", messages: 35, text: strings.Repeat("a", 900), active: first, change: cooling(3, 100), skip: summary.SkipCooling},
		{name: "four messages later", messages: 35, text: strings.Repeat("a", 900), active: first, change: cooling(4, 100), from: 17, to: 31},
		{name: "or a quarter of the threshold later", messages: 35, text: strings.Repeat("a", 900), active: first, change: cooling(1, 1500), from: 17, to: 31},
		{name: "a summary of another branch", messages: 15, text: long, active: first, skip: summary.SkipOffBranch},
	})
}

func runPlans(t *testing.T, tests []planCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := summary.State{Active: tt.active, Settings: summary.DefaultSettings()}
			if tt.messages > 0 {
				state.Lines = chatLines(tt.messages, tt.text)
			}
			if tt.change != nil {
				tt.change(&state)
			}
			if tt.active != nil && tt.active.Range.End < len(state.Lines) {
				own := *tt.active
				own.Digest = summary.ExtendDigest("", state.Lines[own.Range.Start:own.Range.End+1])
				tt.active, state.Active = &own, &own
			}
			plan := summary.MakePlan(state)
			if plan.Skip != tt.skip {
				t.Fatalf("skip = %q, want %q", plan.Skip, tt.skip)
			}
			if tt.skip != "" {
				return
			}
			checkPlan(t, &plan, state, tt)
			if tt.active == nil {
				return
			}
			// Without the covered messages, except the last, the plan is the same.
			state.Lines = slices.Concat(state.Lines[:tt.active.Range.Start], state.Lines[tt.active.Range.End:])
			if near := summary.MakePlan(state); near.Range != plan.Range || near.Count != plan.Count || near.Effective != plan.Effective {
				t.Errorf("without the covered messages %+v, want %+v", near, plan)
			}
		})
	}
}

func checkPlan(t *testing.T, plan *summary.Plan, state summary.State, tt planCase) {
	t.Helper()
	last, start := state.Lines[tt.to], tt.from
	if !tt.rebuild { // it starts where the active one starts
		start = tt.active.Range.Start
	}
	if plan.Rebuild != tt.rebuild || plan.Range.Start != start || plan.Range.StartID != state.Lines[start].MessageID ||
		plan.Range.End != tt.to || plan.Range.EndID != last.MessageID || plan.Range.EndSeq != last.Seq || plan.Count != tt.to-start+1 {
		t.Errorf("plan = %+v, want messages %d to %d, rebuild %v", plan, tt.from, tt.to, tt.rebuild)
	}
	w, err := plan.Work(state.Lines, tt.active)
	if err != nil {
		t.Fatal(err)
	}
	if w.Length != state.Settings.Length || len(w.Lines) != tt.to-tt.from+1 || w.Lines[0].MessageID != state.Lines[tt.from].MessageID {
		t.Errorf("work is %d lines from %s on, want %d from m%d on", len(w.Lines), w.Lines[0].MessageID, tt.to-tt.from+1, tt.from)
	}
	made := plan.Summary(w, summary.Draft{Text: "…", Method: summary.MethodModel})
	if !fits(made, state.Lines[start:tt.to+1]) {
		t.Error("the summary does not fit the messages that it stands for")
	}
	if made.Generation != plan.Generation || tt.active != nil && (made.Generation <= tt.active.Generation || made.BaseID != tt.active.ID) {
		t.Errorf("generation %d of %q", made.Generation, made.BaseID)
	}
}

func TestPlanIsRefusedForAnotherBranch(t *testing.T) {
	lines := chatLines(40, strings.Repeat("a", 300))
	first := summaryOf(lines, 3, 16, strings.Repeat("s", 900))
	state := summary.State{Lines: lines, Active: first, Settings: summary.DefaultSettings()}
	plan := summary.MakePlan(state)
	other := *first
	other.ID = "s2"
	for name, run := range map[string]func() error{
		"the last message is gone": func() error { _, err := plan.Work(lines[:30], first); return err },
		"another summary":          func() error { _, err := plan.Work(lines, &other); return err },
		"none in force any more":   func() error { _, err := plan.Work(lines, nil); return err },
		"a rebuild without all its messages": func() error {
			state.Active = &summary.Summary{}
			*state.Active = *first
			state.Active.Stale = true
			plan := summary.MakePlan(state)
			_, err := plan.Work(slices.Concat(lines[:10], lines[12:]), state.Active)
			return err
		},
	} {
		if err := run(); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
}

func TestView(t *testing.T) {
	lines := chatLines(20, "text")
	s := summaryOf(lines, 3, 16, "What happened.")
	whole := summary.View(lines, s)
	if got := messageIDs(whole); got != "r0 r1 r2 SUM r17 r18 r19" {
		t.Errorf("view = %s", got)
	}
	want := "--- CONVERSATION SUMMARY (AI-GENERATED, NOT VISIBLE TO USER) ---\nWhat happened.\n--- END OF SUMMARY ---"
	if whole[3].Text != want || whole[3].Role != framework.RoleSummary || !whole[0].Greeting {
		t.Errorf("summary message = %+v", whole[3])
	}
	tests := []struct {
		name string
		path []summary.ChatLine
		s    *summary.Summary
		want string
	}{
		{"read from its last message on", slices.Concat(lines[:3], lines[16:]), s, "r0 r1 r2 SUM r17 r18 r19"},
		{"without a summary", lines[:4], nil, "r0 r1 r2 r3"},
		{"on a branch that left before its end", lines[:5], s, "r0 r1 r2 r3 r4"},
		{"the last three stay when the branch became shorter", lines[:18], s, "r0 r1 r2 SUM r15 r16 r17"},
		{"one of the first three was deleted", slices.Concat(lines[:1], lines[2:]), s, "r0 r2 SUM r17 r18 r19"},
		{"nothing but its end is left", lines[14:17], summaryOf(lines, 14, 16, "…"), "r14 r15 r16"},
	}
	for _, tt := range tests {
		if got := messageIDs(summary.View(tt.path, tt.s)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if got, want := summary.EffectiveLength(lines, s), 6*len("text")+len("What happened."); got != want {
		t.Errorf("effective length = %d, want %d", got, want)
	}
}

func messageIDs(view []framework.Message) string {
	var all []string
	for _, m := range view {
		if m.Role == framework.RoleSummary {
			m.ID = "SUM"
		}
		all = append(all, m.ID)
	}
	return strings.Join(all, " ")
}

func TestMarkersAreStripped(t *testing.T) {
	for in, want := range map[string]string{
		"--- CONVERSATION SUMMARY (AI-GENERATED, NOT VISIBLE TO USER) ---\nThey met.\n--- END OF SUMMARY ---": "They met.",
		"— Conversation Summary —\nno dashes enough":                                                          "— Conversation Summary —\nno dashes enough",
		"--- conversation summary ---\nThey met.\n---END OF SUMMARY---\n\nHello.":                             "They met.\n\nHello.",
		"--- --- END OF SUMMARY ---CONVERSATION SUMMARY ---":                                                  "",
		"a --- b --- c": "a --- b --- c",
		"Hello. ":       "Hello.",
	} {
		if got := summary.StripMarkers(in); got != want {
			t.Errorf("StripMarkers(%q) = %q, want %q", in, got, want)
		}
	}
}

// A chat of 200 messages is summarised with few calls. The bound holds for messages
// of usual length: the messages that are not covered must be short compared with the
// threshold.
func TestNumberOfCallsForTwoHundredMessages(t *testing.T) {
	tests := []struct{ length, summary int }{{60, 1000}, {100, 1000}, {100, 500}, {150, 500}}
	for _, tt := range tests {
		length := tt.length
		t.Run(fmt.Sprintf("messages of %d, summaries of %d", tt.length, tt.summary), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(length)))
			settings := summary.DefaultSettings()
			var lines []summary.ChatLine
			var active *summary.Summary
			var last *summary.Attempt
			growth, calls, made := 0, 0, 0
			model := llm.AskerFunc(func(context.Context, llm.Prompt) (string, error) {
				calls++
				return strings.Repeat("They went on and talked. ", tt.summary/25), nil
			})
			for i, l := range chatLines(200, "") {
				l.Text = fmt.Sprintf("%d %s", i, strings.Repeat("x", length-4+random.IntN(5)))
				lines, growth = append(lines, l), growth+len(l.Text)
				plan := summary.MakePlan(summary.State{Lines: lines, Active: active, Settings: settings, Last: last})
				if plan.Skip != "" {
					continue
				}
				w, err := plan.Work(lines, active)
				if err != nil {
					t.Fatal(err)
				}
				draft, err := summary.Write(t.Context(), model, w)
				if err != nil || draft.Method != summary.MethodModel {
					t.Fatal(draft, err)
				}
				active = plan.Summary(w, draft)
				active.ID = fmt.Sprint("s", i)
				attempt := summary.AttemptOf(lines, active)
				last, made = &attempt, made+1
				if attempt.Length >= settings.Threshold {
					t.Errorf("message %d: still %d long", i, attempt.Length)
				}
			}
			most := (growth+settings.Threshold-1)/settings.Threshold + 1
			if made == 0 || calls > most {
				t.Errorf("%d calls for %d summaries of %d characters, want at most %d", calls, made, growth, most)
			}
			t.Logf("%d characters, %d summaries, %d calls of at most %d", growth, made, calls, most)
		})
	}
}

// fits reports whether a summary was made of the texts of these lines.
func fits(s *summary.Summary, covered []summary.ChatLine) bool {
	return len(covered) == s.Count && summary.ExtendDigest("", covered) == s.Digest
}
