package framework

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/framework/macro"
	"nodest/internal/sharedtest"
)

func TestGoldenRegex(t *testing.T) {
	type input struct {
		Text, Placement string
		Scripts         json.RawMessage `json:"regex_scripts"`
		AllowScoped     bool            `json:"allow_scoped_regex"`
		IsMarkdown      bool            `json:"is_markdown"`
		IsPrompt        bool            `json:"is_prompt"`
		IsEdit          bool            `json:"is_edit"`
		Depth           *int
		User            string
		Variables       map[string]any
		Globals         map[string]any `json:"global_variables"`
		Persona         struct{ Description string }
		Character       struct {
			Name                               string
			Description, Personality, Scenario string
			Extensions                         struct {
				Scripts json.RawMessage `json:"regex_scripts"`
			}
		}
	}
	placements := map[string]int{
		"user_input": card.PlaceUserInput, "ai_output": card.PlaceAIOutput, "slash_command": card.PlaceSlashCommand,
		"world_info": card.PlaceWorldInfo, "reasoning": card.PlaceReasoning,
	}
	sharedtest.Replay(t, "sillytavern/regex.json", func(t *testing.T, v sharedtest.Vector[input, struct{ Text string }]) {
		in := v.Input
		scripts, err := card.ParseRegexScripts(in.Scripts)
		if err != nil {
			t.Fatal(err)
		}
		if in.AllowScoped {
			own, err := card.ParseRegexScripts(in.Character.Extensions.Scripts)
			if err != nil {
				t.Fatal(err)
			}
			scripts = append(scripts, own...)
		}
		o := Occasion{Placement: placements[in.Placement], IsMarkdown: in.IsMarkdown, IsPrompt: in.IsPrompt, IsEdit: in.IsEdit, NoDepth: in.Depth == nil}
		if in.Depth != nil {
			o.Depth = *in.Depth
		}
		env := &macro.Env{
			Names: macro.People{User: cmp.Or(in.User, "Bob"), Char: cmp.Or(in.Character.Name, "Alice")}, Now: time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC),
			Card: macro.Card{
				Description: in.Character.Description, Personality: in.Character.Personality, Scenario: in.Character.Scenario, Persona: in.Persona.Description,
			},
			Local: macro.NewVars(in.Variables), Global: macro.NewVars(in.Globals),
		}
		r := compileScripts(card.SillyTavern, scripts, patient).Run(nil).With(env)
		if got := r.Apply(in.Text, o); got != v.Output.Text || r.Warnings() != nil {
			t.Errorf("got %q, want %q, warnings %+v", got, v.Output.Text, r.Warnings())
		}
	})
}

func tavernRun(env *macro.Env, list ...card.RegexScript) *ScriptRun {
	return compileScripts(card.SillyTavern, replying(list...), patient).Run(NewCache(0)).With(env)
}

func TestTavernReplacements(t *testing.T) {
	for _, c := range []struct{ find, replace, text, want string }{
		{"a", "x", "aa", "xa"}, // without flags the first match only
		{"/a/", "x", "aa", "xa"},
		{"/a/g", "x", "aa", "xx"},
		{"/A/gi", "x", "aa", "xx"},
		{"/a/gg", "x", "/a/gg a", "x a"}, // flags that stand twice, or are unknown: a bare pattern
		{"/a/q", "x", "/a/q a", "x a"},
		{"/(a)(b)?/g", "[$1|$2|$3|$0|$10|$01]", "ab a", "[a|b||ab||a] [a|||a||a]"},
		{"/(?<n>a)/", "$<n>$<m>$<n", "a", "a$<n"},
		{"/a/", "$$ $& $` $' $ $x", "a", "$$ $& $` $' $ $x"},
		{"/a/", "{{match}}{{MATCH}}{{ match }}$99999999999999999999", "a", "aa{{ match }}"},
		{"/(?=a)/g", "-", "aba", "-ab-a"},
		{"/a/", "{{char}} {{reverse::{{match}}b}} {{nope}}", "a", "Alice ba {{nope}}"},
		{"/a/", "", "a", ""},
		{"/(/", "x", "(", "("},
	} {
		r := tavernRun(&macro.Env{Names: macro.People{Char: "Alice"}}, card.RegexScript{Find: c.find, Replace: c.replace})
		if got := r.Apply(c.text, Occasion{Placement: card.PlaceAIOutput}); got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.find, c.replace, got, c.want)
		}
	}
}

func TestTrimStringsAreRemovedFromPieces(t *testing.T) {
	env := &macro.Env{Names: macro.People{Char: "Alice"}}
	r := tavernRun(env, card.RegexScript{Find: "/<(.+?)>/g", Replace: "* $1 $0 *", TrimStrings: []string{"{{char}}: ", "", "<", ">", "*"}})
	if got := r.Apply("* <Alice: *a*> <b>", Occasion{Placement: card.PlaceAIOutput}); got != "* * a a * * b b *" {
		t.Errorf("%q", got)
	}
}

func TestMacrosInPatterns(t *testing.T) {
	env := &macro.Env{Names: macro.People{Char: "A.C", User: "("}}
	run := func(substitute int, find, text string) string {
		r := tavernRun(env, card.RegexScript{Name: "s", Find: find, Replace: "X", Substitute: substitute})
		got := r.Apply(text, Occasion{Placement: card.PlaceAIOutput})
		for _, w := range r.Warnings() {
			got += " " + w.Code
		}
		return got
	}
	for _, c := range []struct {
		substitute       int
		find, text, want string
	}{
		{0, "{{char}}", "{{char}} ABC", "X ABC"},
		{1, "/{{char}}/g", "A.C ABC", "X X"},
		{2, "/{{char}}/g", "A.C ABC", "X ABC"},
		{2, `/{{char}}\s\{\d{2}\}/`, "A.C {12}", "X"},
		{1, "{{user}}", "(", "( invalid_pattern"},
		{2, "{{user}}", "(", "X"},
		{1, "/(?<char>{{char}})/", "ABC", "X"},
	} {
		if got := run(c.substitute, c.find, c.text); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.substitute, c.find, got, c.want)
		}
	}
	// The values may change from run to run.
	s := compileScripts(card.SillyTavern, replying(card.RegexScript{Find: "/{{char}}/g", Replace: "X", Substitute: 2}), patient)
	cache := NewCache(0)
	for _, name := range []string{"A", "B", "A"} {
		r := s.Run(cache).With(&macro.Env{Names: macro.People{Char: name}})
		if got, want := r.Apply("A B", Occasion{Placement: card.PlaceAIOutput}), strings.Replace("A B", name, "X", 1); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := s.Run(cache).Apply("A {{char}}", Occasion{Placement: card.PlaceAIOutput}); got != "A X" {
		t.Errorf("without macros: %q", got)
	}
}

// A result that depends on macros is not taken from the cache.
func TestMacrosInReplacementsAreCurrent(t *testing.T) {
	s := compileScripts(card.SillyTavern, replying(card.RegexScript{Find: "/hp/", Replace: "{{.hp++}}"}, card.RegexScript{Find: "/x/", Replace: "y"}), patient)
	cache, env := NewCache(0), &macro.Env{Local: &macro.Vars{}}
	for i := range 3 {
		if got, want := s.Run(cache).With(env).Apply("hp x", Occasion{Placement: card.PlaceAIOutput}), fmt.Sprintf("%d y", i+1); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Each form of a message has its scripts: what is stored, what is displayed, what is sent.
func TestFormsOfAMessage(t *testing.T) {
	for _, dialect := range []card.Dialect{card.NodeST, card.SillyTavern} {
		s := compileScripts(dialect, replying(
			card.RegexScript{Find: "/a/g", Replace: "S"}, card.RegexScript{Find: "/b/g", Replace: "D", MarkdownOnly: true},
			card.RegexScript{Find: "/c/g", Replace: "P", PromptOnly: true}, card.RegexScript{Find: "/d/g", Replace: "B", MarkdownOnly: true, PromptOnly: true},
			card.RegexScript{Find: "/e/g", Replace: "E", RunOnEdit: true},
		), patient)
		r := s.Run(nil)
		stored, _ := s.ApplyReply("abcde", nil)
		got := strings.Join([]string{
			stored, r.Display("assistant", "abcde", 0), r.Request("assistant", "abcde", 0), r.Display("user", "abcde", 0), r.Display("system", "abcde", 0),
			r.Apply("abcde", Occasion{Placement: card.PlaceAIOutput, IsEdit: true}),
		}, " ")
		if want := "SbcdE aDcBe abPBe abcde abcde abcdE"; got != want {
			t.Errorf("%s: %s, want %s", dialect, got, want)
		}
	}
}

// slowPatterns makes patterns that a backtracking engine needs very long for, each with a text.
func slowPatterns(n int) (patterns, texts []string) {
	rng := rand.New(rand.NewPCG(1, 2))
	one := func(list ...string) string { return list[rng.IntN(len(list))] }
	var part func(depth int) string
	part = func(depth int) string {
		if depth == 0 {
			return one("a", "[ab]", "\\w", ".", "a?", "[^c]", "a|a", "a|ab")
		}
		inner := part(depth - 1)
		switch rng.IntN(7) {
		case 0:
			return "(" + inner + ")" + one("+", "*", "{1,}", "+?", "*?")
		case 1:
			return "(?:" + inner + "|" + part(depth-1) + ")" + one("+", "*", "{2,50}")
		case 2:
			return "((?:" + inner + ")" + one("+", "*") + ")" + one("+", "*") + "\\" + one("1", "2")
		case 3:
			return "(?=((?:" + inner + ")+)+)" + one("", "(?!c)") + "(?:" + inner + ")+"
		case 4:
			return "(?<!(?:(?:" + inner + ")+)+c)(?:" + inner + ")+"
		case 5:
			return "(" + inner + "){0," + one("9", "99", "999") + "}"
		}
		return "(?:" + inner + ")" + one("+", "*") + "(?:" + part(depth-1) + ")" + one("+", "*")
	}
	for range n {
		patterns = append(patterns, "/"+one("", "^")+"(?:"+part(1+rng.IntN(3))+")+"+one("$", "c$", "[^ab]$", "\\1d")+"/"+one("g", "", "gi", "gs", "gm"))
		texts = append(texts, strings.Repeat(one("a", "ab", "aab", "a a"), 20+rng.IntN(4000))+one("!", "c!", " ", "\n龙"))
	}
	return patterns, texts
}

// A thousand patterns that were made to be slow never hold a run longer than the limit: each of
// a hundred alone (with NODEST_LONG=1 of all), and all in one prompt.
func TestSlowPatternsKeepTheLimit(t *testing.T) {
	t.Parallel()
	const limit, slack = 20 * time.Millisecond, 2 * time.Second // a machine may be busy
	alone := 100
	if os.Getenv("NODEST_LONG") == "1" {
		alone = 1000
	}
	patterns, texts := slowPatterns(1000)
	var worst, total time.Duration
	slow, nested := 0, 0
	list := make([]card.RegexScript, len(patterns))
	for i, find := range patterns {
		list[i] = card.RegexScript{Name: find, Find: find, Replace: "[$1]", Placement: []int{card.PlaceAIOutput}}
		if i >= alone {
			continue
		}
		s := compileScripts(card.SillyTavern, list[i:i+1], limit)
		if len(s.list) == 0 {
			t.Fatalf("%s: %+v", find, s.warnings)
		}
		if s.list[0].pattern.Nested() {
			nested++
		}
		r := s.Run(nil)
		started := time.Now()
		r.Apply(texts[i], Occasion{Placement: card.PlaceAIOutput})
		took := time.Since(started)
		total += took
		worst = max(worst, took)
		if r.Warnings() != nil {
			slow++
		}
		if took > 2*limit+slack {
			t.Errorf("%s took %v", find, took)
		}
	}
	t.Logf("%d patterns with a limit of %v for each of two tries: %d ran out of it, %d are known as nested; worst %v, total %v", alone, limit, slow, nested, worst, total)

	s := CompileScripts(card.SillyTavern, list)
	started := time.Now()
	s.Run(nil).Apply(strings.Repeat("ab", 2000)+"!", Occasion{Placement: card.PlaceAIOutput})
	took := time.Since(started)
	if took > promptLimits*scriptLimit+slack {
		t.Errorf("all in one prompt took %v", took)
	}
	t.Logf("all %d in one prompt, whose limit is %v: %v", len(list), promptLimits*scriptLimit, took)
}

// impatientRun is a run of one script with little time.
func impatientRun(env *macro.Env, sc card.RegexScript) *ScriptRun {
	return compileScripts(card.SillyTavern, replying(sc), 20*time.Millisecond).Run(nil).With(env)
}

func TestReplacementsHaveTheTimeOfTheirScript(t *testing.T) {
	env := &macro.Env{Local: &macro.Vars{}}
	trims := make([]string, maxTrims)
	for i := range trims {
		trims[i] = strings.Repeat("a", 40+i)
	}
	text := strings.Repeat("a", 100_000) + "!"
	r := impatientRun(env, card.RegexScript{
		Name: "hostile", Find: "/(a+)(?<x>!)/", Replace: "{{incvar::runs}}" + strings.Repeat("$1$2$<x>", maxReferences/4), TrimStrings: trims,
	})
	started := time.Now()
	for range 3 {
		if got := r.Apply(text, Occasion{Placement: card.PlaceAIOutput}); got != text {
			break // a fast machine
		}
	}
	if d := time.Since(started); d > 2*time.Second {
		t.Errorf("it took %v", d)
	}
	if runs, _ := env.Local.Get("runs"); runs != "" && runs != "1" {
		t.Errorf("the replacement was made %s times", runs)
	}
}

// A replacement that is tried again goes on behind what was made.
func TestReplacementsAreMadeOnce(t *testing.T) {
	env := &macro.Env{Local: &macro.Vars{}}
	r := tavernRun(env, card.RegexScript{Find: "/a/g", Replace: "{{incvar::n}}"})
	run := &replacing{ScriptRun: r, sc: r.scripts.list[0]}
	for range 2 {
		if got, n, err := run.replace("a a a"); got != "1 2 3" || n != 3 || err != nil {
			t.Errorf("%q, %d, %v", got, n, err)
		}
	}
	if len(env.Local.All()) != 1 || env.Local.All()["n"] != 3.0 {
		t.Errorf("%v", env.Local.All())
	}
	late := &replacing{ScriptRun: compileScripts(card.SillyTavern, replying(card.RegexScript{Find: "/a/", Replace: "$0$0"}), 0).Run(nil), sc: r.scripts.list[0]}
	if got, _, err := late.replace("a"); got != "a" || !errors.Is(err, jsregex.ErrTime) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestScriptsOfManyPartsAreRefused(t *testing.T) {
	for name, sc := range map[string]card.RegexScript{
		"references":   {Find: "a", Replace: strings.Repeat("$0", 2*maxReferences+1)},
		"trim strings": {Find: "a", TrimStrings: make([]string, maxTrims+1)},
	} {
		r := tavernRun(&macro.Env{}, sc)
		if got := r.Apply("a", Occasion{Placement: card.PlaceAIOutput}); got != "a" || len(r.Warnings()) != 1 || r.Warnings()[0].Code != skipInvalid {
			t.Errorf("%s: %q, %+v", name, got, r.Warnings())
		}
	}
}

// A pattern that is another one for each text is off with its script, and costs the time of all scripts.
func TestPatternsWithMacrosShareTheTimeOfTheirScript(t *testing.T) {
	n := 0
	env := &macro.Env{Rand: func() float64 { n++; return float64(n%1000) / 1000 }}
	sc := card.RegexScript{Find: "/(a+)+{{roll::1d1000}}$/", Substitute: card.SubstituteRaw, Replace: "x"}
	r := impatientRun(env, sc)
	text := strings.Repeat("a", 60)
	for range 5 {
		r.Apply(text, Occasion{Placement: card.PlaceAIOutput})
	}
	if s := r.scripts.list[0]; !s.pattern.Off() || len(r.Warnings()) != 1 || n > 2 {
		t.Errorf("off %v after %d patterns, %+v", s.pattern.Off(), n, r.Warnings())
	}
	r = impatientRun(env, sc)
	r.time = jsregex.NewAllowance(0)
	if n = 0; r.Apply(text, Occasion{Placement: card.PlaceAIOutput}) != text || n != 0 {
		t.Errorf("%d patterns were compiled without time", n)
	}
}

// A text that is stored has no depth: scripts for some depths change it, as in SillyTavern. A hidden message has none
// for its readers either.
func TestStoredTextsHaveNoDepth(t *testing.T) {
	deep := 3
	list := []card.RegexScript{
		{Find: "a", Replace: "b", Placement: []int{card.PlaceAIOutput}, MinDepth: &deep},
		{Find: "x", Replace: "y", Placement: []int{card.PlaceAIOutput}, MinDepth: &deep, MarkdownOnly: true},
	}
	for dialect, want := range map[card.Dialect]string{card.SillyTavern: "bx", card.NodeST: "ax"} {
		if got, _ := CompileScripts(dialect, list).ApplyReply("ax", nil); got != want {
			t.Errorf("%s: %q, want %q", dialect, got, want)
		}
	}
	run := CompileScripts(card.SillyTavern, list).Run(nil)
	for depth, want := range map[int]string{0: "ax", 3: "ay", NoDepth: "ay"} {
		if got := run.Display("assistant", "ax", depth); got != want {
			t.Errorf("depth %d: %q, want %q", depth, got, want)
		}
	}
}
