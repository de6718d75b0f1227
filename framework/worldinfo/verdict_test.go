package worldinfo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework/worldinfo"
)

// book parses entries of world info, written as JSON, by their uids.
func book(t testing.TB, entries string) []card.Entry {
	t.Helper()
	b, err := card.ParseWorldBook([]byte(`{"entries":`+entries+`}`), card.SillyTavern)
	if err != nil {
		t.Fatal(err)
	}
	return b.Entries
}

func said(texts ...string) []worldinfo.Message {
	var list []worldinfo.Message
	for i, text := range texts {
		list = append(list, worldinfo.Message{Name: []string{"Alice", "Bob"}[i%2], Text: text, User: i%2 == 1})
	}
	return list
}

func scan(t testing.TB, entries string, in worldinfo.Input) *worldinfo.Output {
	t.Helper()
	if in.Context == 0 {
		in.Context = 4000
	}
	if in.Settings == (worldinfo.Settings{}) {
		in.Settings = worldinfo.DefaultSettings()
	}
	in.Explain = true
	o, err := worldinfo.Compile(worldinfo.Source{Name: "w", Origin: worldinfo.OfCharacter, Entries: book(t, entries)}).Scan(t.Context(), &in)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// verdicts are what is said about entry 0.
var verdicts = map[string]struct {
	entries string
	in      worldinfo.Input
	want    string // verdict on entry 0
}{
	"a key in the second newest message": {
		`{"0":{"key":["x","Moon"],"content":"c"}}`, worldinfo.Input{Messages: said("the moon", "hello")},
		`{"id":"w.0","name":"0","fires":true,"why":"key","key":"Moon","in":"message","message":0,"pass":1,"tokens":1}`,
	},
	"a key in the card": {
		`{"0":{"key":["moon"],"content":"c","comment":"Moon","matchScenario":true}}`,
		worldinfo.Input{Messages: said("hello"), Texts: worldinfo.Texts{Scenario: "a moon"}},
		`{"id":"w.0","name":"Moon","fires":true,"why":"key","key":"moon","in":"card","pass":1,"tokens":1}`,
	},
	"a pattern in a message": {
		`{"0":{"key":["/mo+n/"],"content":"c"}}`, worldinfo.Input{Messages: said("the moon", "hello")},
		`{"id":"w.0","name":"0","fires":true,"why":"key","key":"/mo+n/","in":"message","message":0,"pass":1,"tokens":1}`,
	},
	"a key in the text of another entry": {
		`{"0":{"key":["moon"],"content":"c"},"1":{"constant":true,"content":"the moon"}}`, worldinfo.Input{Messages: said("hello")},
		`{"id":"w.0","name":"0","fires":true,"why":"key","key":"moon","in":"recursion","pass":2,"tokens":1}`,
	},
	"a recursion that does not count": {
		`{"0":{"key":["moon"],"content":"c","excludeRecursion":true},"1":{"constant":true,"content":"the moon"}}`, worldinfo.Input{Messages: said("hello")},
		`{"id":"w.0","name":"0","fires":false,"reason":"recursion","pass":2,"tokens":1}`,
	},
	"secondary keys": {
		`{"0":{"key":["moon"],"keysecondary":["sun","star"],"selectiveLogic":3,"content":"c"}}`, worldinfo.Input{Messages: said("moon and star")},
		`{"id":"w.0","name":"0","fires":false,"reason":"secondary","key":"moon","in":"message","message":0,"missing":["sun"],"found":["star"],"pass":1,"tokens":1}`,
	},
	"a number that was too high": {
		`{"0":{"key":["moon"],"probability":30,"content":"c"}}`, worldinfo.Input{Messages: said("moon")},
		`{"id":"w.0","name":"0","fires":false,"why":"key","reason":"probability","key":"moon","in":"message","message":0,"draw":{"drawn":50,"percent":30},"pass":1,"tokens":1}`,
	},
	"a group that another member won": {
		`{"0":{"constant":true,"group":"g","content":"c"},"1":{"constant":true,"group":"g","groupOverride":true,"content":"d"}}`, worldinfo.Input{Messages: said("moon")},
		`{"id":"w.0","name":"0","fires":false,"why":"constant","reason":"group","group":{"name":"g","how":"active","won":"w.1"},"pass":2,"tokens":1}`,
	},
	"a group that was drawn": {
		`{"0":{"constant":true,"group":"g","groupWeight":10,"preventRecursion":true,"content":"c"},"1":{"constant":true,"group":"g","content":"d","preventRecursion":true}}`, worldinfo.Input{Messages: said("moon")},
		`{"id":"w.0","name":"0","fires":false,"why":"constant","reason":"group","group":{"name":"g","how":"weight","won":"w.1","drew":55},"pass":1,"tokens":1}`,
	},
	"a delay": {
		`{"0":{"constant":true,"delay":9,"content":"c"}}`, worldinfo.Input{Messages: said("moon")},
		`{"id":"w.0","name":"0","fires":false,"reason":"delay","until":9,"pass":1,"tokens":1}`,
	},
	"a cooldown": {
		`{"0":{"constant":true,"cooldown":5,"content":"c"}}`,
		worldinfo.Input{Messages: said("moon", "x"), Timed: worldinfo.Timed{Cooldown: map[string]worldinfo.Effect{"w.0": {Start: 1, End: 6}}}},
		`{"id":"w.0","name":"0","fires":false,"reason":"cooldown","until":6,"pass":1,"tokens":1}`,
	},
	"a sticky time": {
		`{"0":{"key":["zzz"],"sticky":5,"content":"c"}}`,
		worldinfo.Input{Messages: said("moon", "x"), Timed: worldinfo.Timed{Sticky: map[string]worldinfo.Effect{"w.0": {Start: 1, End: 6}}}},
		`{"id":"w.0","name":"0","fires":true,"why":"sticky","until":6,"pass":1,"tokens":1}`,
	},
	"another kind of reply": {
		`{"0":{"constant":true,"triggers":["swipe"],"content":"c"}}`, worldinfo.Input{Messages: said("moon")},
		`{"id":"w.0","name":"0","fires":false,"reason":"trigger","pass":0,"tokens":1}`,
	},
	"another character": {
		`{"0":{"constant":true,"characterFilter":{"names":["bea"]},"content":"c"}}`, worldinfo.Input{Messages: said("moon")},
		`{"id":"w.0","name":"0","fires":false,"reason":"character","pass":0,"tokens":1}`,
	},
	"a budget that is full": {
		`{"0":{"constant":true,"order":1,"content":"0123456789"},"1":{"constant":true,"content":"0123456789"}}`,
		worldinfo.Input{Messages: said("moon"), Settings: worldinfo.Settings{BudgetPercent: 100}, Context: 6},
		`{"id":"w.0","name":"0","fires":false,"why":"constant","reason":"budget","pass":1,"tokens":3}`,
	},
	"a level that was not reached": {
		`{"0":{"key":["moon"],"delayUntilRecursion":2,"content":"c"},"1":{"key":["moon"],"delayUntilRecursion":1,"content":"c"}}`,
		worldinfo.Input{Messages: said("moon"), Settings: worldinfo.Settings{Depth: 2, BudgetPercent: 25, MaxRecursionSteps: 1}},
		`{"id":"w.0","name":"0","fires":false,"reason":"level","pass":1,"tokens":1}`,
	},
	"found by meaning": {
		`{"0":{"vectorized":true,"content":"c"}}`, worldinfo.Input{Messages: said("moon"), Forced: map[string]bool{"w.0": true}},
		`{"id":"w.0","name":"0","fires":true,"why":"forced","pass":1,"tokens":1}`,
	},
	"an outlet without a name": {
		`{"0":{"constant":true,"position":7,"content":"c"}}`, worldinfo.Input{Messages: said("moon")},
		`{"id":"w.0","name":"0","fires":false,"why":"constant","reason":"outlet","pass":1,"tokens":1}`,
	},
}

// For each entry, a verdict says why it is used or not.
func TestVerdictsSayWhy(t *testing.T) {
	for name, c := range verdicts {
		o := scan(t, c.entries, c.in)
		i := slices.IndexFunc(o.Verdicts, func(v worldinfo.Verdict) bool { return v.ID == "w.0" })
		if got := asJSON(o.Verdicts[i]); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

func TestTokensAreCountedNowAndIfAllFired(t *testing.T) {
	o := scan(t, `{"0":{"constant":true,"content":"01234567890123456789"},"1":{"key":["no"],"content":"0123456789"}}`, worldinfo.Input{Messages: said("moon")})
	if o.Tokens != 6 || o.AllTokens != 9 || o.Budget != 1000 {
		t.Errorf("%d tokens of %d, budget %d", o.Tokens, o.AllTokens, o.Budget)
	}
}

// Decorators beyond those of SillyTavern, by what becomes of an entry.
func TestDecorators(t *testing.T) {
	chat := said("hello moon", "sun", "what", "go on") // two messages are the assistant's
	for content, want := range map[string]string{
		"@@depth 3\nx":                             "depth 3 0: x",
		"@@depth 3\n@@role user\nx":                "depth 3 1: x",
		"@@role assistant\nx":                      "depth 4 2: x",
		"@@role wizard\nx":                         "before: x",
		"@@position after_desc\nx":                 "after: x",
		"@@position personality\nx":                "after: x",
		"@@scan_depth 4\nx":                        "before: x",
		"@@is_greeting 1\nx":                       "",
		"@@is_greeting 0\nx":                       "before: x",
		"@@activate_only_after 2\nx":               "before: x",
		"@@activate_only_after 3\nx":               "",
		"@@activate_only_every 2\nx":               "before: x",
		"@@activate_only_every 3\nx":               "",
		"@@additional_keys sun, star\nx":           "",
		"@@additional_keys go, star\nx":            "before: x",
		"@@exclude_keys go\nx":                     "",
		"@@exclude_keys star\nx":                   "before: x",
		"@@exclude_keys go\n@@activate\nx":         "before: x",
		"@@what 1\n@@@depth 2\nx":                  "depth 2 0: x",
		"@@depth 1\n@@@depth 2\nx":                 "depth 1 0: x",
		"@@depth x\n@@@depth 2\nx":                 "depth 2 0: x",
		"@@dont_activate\n@@activate\n@@depth 2\n": "",
	} {
		constant := !strings.Contains(content, "scan_depth")
		entry := fmt.Sprintf(`{"0":{"constant":%v,"key":["moon"],"content":%s}}`, constant, asJSON(content))
		o := scan(t, entry, worldinfo.Input{Messages: chat})
		var got []string
		for name, block := range map[string][]worldinfo.Placed{"before: ": o.Before, "after: ": o.After} {
			if len(block) > 0 {
				got = append(got, name+worldinfo.Text(block))
			}
		}
		for _, g := range o.Depth {
			got = append(got, fmt.Sprintf("depth %d %d: %s", g.Depth, g.Role, worldinfo.Text(g.Texts)))
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%q: %q, want %q", content, s, want)
		}
	}
}

// An edited entry loses its sticky time; one that SillyTavern has stored is taken over.
func TestEditedEntriesLoseTheirEffects(t *testing.T) {
	before := `{"0":{"key":["moon"],"sticky":5,"content":"c"}}`
	o := scan(t, before, worldinfo.Input{Messages: said("moon")})
	later := worldinfo.Input{Messages: said("moon", "x", "x", "x"), Timed: o.Timed}
	if got := scan(t, before, later).Activated; len(got) != 1 {
		t.Errorf("activated %q", got)
	}
	if got := scan(t, strings.Replace(before, `"c"`, `"d"`, 1), later); len(got.Activated) != 0 || len(got.Timed.Sticky) != 1 {
		t.Errorf("edited: activated %q, state %v", got.Activated, got.Timed)
	}
	foreign := worldinfo.Effect{Hash: 7.0, Start: 1, End: 6}
	later.Timed = worldinfo.Timed{Sticky: map[string]worldinfo.Effect{"w.0": foreign}}
	if got := scan(t, before, later).Activated; len(got) != 1 {
		t.Errorf("SillyTavern's: activated %q", got)
	}
}

func TestADryRunLeavesEffectsAlone(t *testing.T) {
	entries := `{"0":{"key":["moon"],"sticky":5,"content":"c"}}`
	if o := scan(t, entries, worldinfo.Input{Messages: said("moon"), DryRun: true}); len(o.Activated) != 1 || len(o.Timed.Sticky) != 0 {
		t.Errorf("activated %q, state %v", o.Activated, o.Timed)
	}
}

// 1,000 patterns that would take years never hold a scan longer than their time together.
func TestSlowPatternsDoNotHoldAScan(t *testing.T) {
	var entries []string
	for i := range 1000 {
		entries = append(entries, fmt.Sprintf(`"%d":{"key":["/%s/"],"content":"c"}`, i, []string{`(a+)+b%d`, `(a|aa)+$%d`, `^(\\w*)*\\1c%d`, `(?:a*)*d%d`}[i%4]))
		entries[i] = fmt.Sprintf(entries[i], i)
	}
	began := time.Now()
	o := scan(t, "{"+strings.Join(entries, ",")+"}", worldinfo.Input{Messages: said(strings.Repeat("a", 5000))})
	if took := time.Since(began); took > 5*time.Second || len(o.Slow) == 0 {
		t.Errorf("took %v, %d are slow", took, len(o.Slow))
	} else {
		t.Logf("1,000 slow patterns: %v, %d given up", took.Round(time.Millisecond), len(o.Slow))
	}
}

// A long chain of entries, each of which brings in the next, and a pattern over all texts.
func TestLongChainsTakeBoundedTime(t *testing.T) {
	var entries []string
	for i := range 5000 {
		entries = append(entries, fmt.Sprintf(`"%d":{"key":["link%d."],"content":"link%d.","matchWholeWords":false}`, i, i, i+1))
	}
	entries = append(entries, `"5000":{"key":["/^never[^]*$/"],"content":"c"}`, `"5001":{"key":["/.+(x+x+)+y$/s"],"content":"c"}`)
	chat := said("link0.", strings.Repeat("x ", 20_000))
	set := worldinfo.DefaultSettings()
	set.BudgetPercent = 100
	began := time.Now()
	o := scan(t, "{"+strings.Join(entries, ",")+"}", worldinfo.Input{Messages: chat, Settings: set, Context: 1_000_000})
	if took := time.Since(began); took > 20*time.Second || len(o.Activated) != 5000 {
		t.Errorf("took %v, %d activated", took, len(o.Activated))
	} else {
		t.Logf("a chain of 5,000 entries: %v", took.Round(time.Millisecond))
	}
}

func TestAScanEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	_, err := worldinfo.Compile().Scan(ctx, &worldinfo.Input{})
	if !errors.Is(err, gone) {
		t.Errorf("error = %v", err)
	}
}

// A book is shared by all chats, whose macros differ.
func TestABookIsSafeForConcurrentUse(t *testing.T) {
	b := worldinfo.Compile(worldinfo.Source{Name: "w", Origin: worldinfo.Global, Entries: book(t, `{"0":{"key":["{{user}} here"],"content":"c"},"1":{"key":["moon"],"content":"c"}}`)})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprint("user", i)
			in := worldinfo.Input{Messages: said(name + " here"), Settings: worldinfo.DefaultSettings(), Context: 1000}
			in.Expand = strings.NewReplacer("{{user}}", name).Replace
			for range 50 {
				in.Settings.CaseSensitive = !in.Settings.CaseSensitive
				o, err := b.Scan(t.Context(), &in)
				if err != nil || !slices.Equal(o.Activated, []string{"w.0"}) {
					t.Errorf("%s: %v, %v", name, o, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestLintNamesWhatDoesNotWork(t *testing.T) {
	for entry, want := range map[string]string{
		`"key":["moon"]`:               "",
		`"constant":true`:              "",
		`"key":[]`:                     "", // the import reports it
		`"key":[],"vectorized":true`:   "",
		`"key":["moon"],"scanDepth":0`: "unreachable scanDepth",
		`"key":["moon"],"content":"@@dont_activate\nx"`: "unreachable content",
		`"key":["moon"],"content":"@@what\nx"`:          "unknown_decorator content",
		`"key":["moon"],"content":" "`:                  "empty content",
		`"key":["  "]`:                                  "matches_everything key[0]",
		`"key":["/(/"]`:                                 "invalid_pattern key[0]",
		`"key":["/a/b/"]`:                               "invalid_pattern key[0]",
		`"key":["/a/x"]`:                                "invalid_pattern key[0]",
		`"key":["/(a+)+b/"]`:                            "slow_pattern key[0]",
		`"key":["/a|/"]`:                                "matches_everything key[0]",
		`"key":["moon"],"keysecondary":["moon"],"selectiveLogic":2`:   "unreachable keysecondary",
		`"key":["moon"],"keysecondary":["sun"],"selective":false`:     "unused_field keysecondary",
		`"key":["moon"],"selectiveLogic":2`:                           "unused_field selectiveLogic",
		`"key":["moon"],"position":7`:                                 "unreachable outletName",
		`"key":["moon"],"position":9`:                                 "unreachable position",
		`"key":["moon"],"probability":0`:                              "unreachable probability",
		`"key":["moon"],"probability":0,"useProbability":false`:       "unused_field probability",
		`"key":["moon"],"delayUntilRecursion":1`:                      "unreachable delayUntilRecursion",
		`"key":["moon"],"excludeRecursion":true`:                      "unused_field excludeRecursion",
		`"key":["moon"],"triggers":["never"]`:                         "unreachable triggers",
		`"key":["moon"],"groupOverride":true`:                         "unused_field group",
		`"key":["moon"],"outletName":"o"`:                             "unused_field outletName",
		`"key":["moon"],"role":2`:                                     "unused_field role",
		`"key":["moon"],"content":"` + strings.Repeat("x", 400) + `"`: "over_budget content",
	} {
		if !strings.Contains(entry, `"content"`) {
			entry += `,"content":"x"`
		}
		var got []string
		for _, w := range worldinfo.Lint(book(t, `{"0":{`+entry+`}}`), worldinfo.Settings{Depth: 2, BudgetPercent: 25}, 400) {
			got = append(got, w.Code+" "+strings.TrimPrefix(w.Path, "entries.0."))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %q, want %q", entry, s, want)
		}
	}
	whole := worldinfo.Lint(nil, worldinfo.Settings{BudgetPercent: 100}, 400)
	if len(whole) != 1 || whole[0].Code != "over_context" {
		t.Errorf("a budget of the whole context: %v", whole)
	}
}

// No book of a stranger breaks a scan.
func FuzzBooks(f *testing.F) {
	f.Add(`{"0":{"key":["a","/b+/i","{{user}}"],"content":"@@depth 3\nb","sticky":1}}`, "a b", int64(1))
	f.Add(`[{"keys":["x"],"content":"y","extensions":{"position":7,"outlet_name":"o"},"insertion_order":-1,"enabled":true}]`, "x", int64(2))
	f.Add(`{"0":{"constant":true,"group":"a,b","groupWeight":-1,"delayUntilRecursion":99999},"x":{"key":"a,b,/c,d/","scanDepth":1e9}}`, "Σ\x01", int64(3))
	f.Fuzz(func(t *testing.T, entries, text string, bits int64) {
		b, err := card.ParseWorldBook([]byte(`{"entries":`+entries+`}`), card.SillyTavern)
		if err != nil {
			return
		}
		on := func(i int) bool { return bits&(1<<i) != 0 }
		in := worldinfo.Input{Messages: said(text, entries), Context: 1000, Explain: true, Settings: worldinfo.Settings{
			Depth: 2, BudgetPercent: 50, Recursive: on(0), CaseSensitive: on(1), MatchWholeWords: on(2), UseGroupScoring: on(3), IncludeNames: on(4),
			MinActivations: int(bits>>5) & 3, Strategy: worldinfo.Strategy(bits>>8) & 3,
		}}
		o, err := worldinfo.Compile(worldinfo.Source{Name: "w", Origin: worldinfo.Global, Entries: b.Entries}).Scan(t.Context(), &in)
		if err != nil || len(o.Verdicts) != len(b.Entries) {
			t.Fatalf("%v, %d verdicts of %d entries", err, len(o.Verdicts), len(b.Entries))
		}
		if sorted := slices.Compact(slices.Sorted(slices.Values(o.Activated))); len(sorted) != len(o.Activated) {
			t.Errorf("activated %q", o.Activated)
		}
		worldinfo.Lint(b.Entries, in.Settings, in.Context)
	})
}
