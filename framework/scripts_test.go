package framework

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
)

// replying returns scripts that apply to model output.
func replying(list ...card.RegexScript) []card.RegexScript {
	for i := range list {
		if list[i].Placement == nil {
			list[i].Placement = []int{card.PlaceAIOutput}
		}
	}
	return list
}

// hostile returns a script that never ends, with a short limit, and a good one, with a
// limit that no machine reaches.
func hostile(promptOnly bool) *Scripts {
	s := compileScripts(card.NodeST, replying(
		card.RegexScript{Name: "hostile", Find: "(a+)+$", Replace: "x", PromptOnly: promptOnly},
		card.RegexScript{Name: "good", Find: "!", Replace: "?", PromptOnly: promptOnly},
	), patient)
	impatient, err := jsregex.Compile("(a+)+$", "g", 20*time.Millisecond)
	if err != nil {
		panic(err)
	}
	s.list[0].pattern = impatient
	return s
}

func TestHostileScriptIsOffUntilItIsEdited(t *testing.T) {
	s := hostile(false)
	text := strings.Repeat("a", 60) + "!"
	for i := range 3 {
		got, warnings := s.ApplyReply(text, nil)
		if got != strings.Repeat("a", 60)+"?" {
			t.Errorf("got %q", got)
		}
		if len(warnings) != 1 || warnings[0].Code != "slow_pattern" || warnings[0].Path != "regexScripts.hostile" {
			t.Errorf("time %d: warnings = %+v", i, warnings)
		}
	}
	edited := compileScripts(card.NodeST, replying(card.RegexScript{Name: "hostile", Find: "a+$", Replace: "x"}), patient)
	if got, warnings := edited.ApplyReply("aaa", nil); got != "x" || warnings != nil {
		t.Errorf("edited: %q, warnings %+v", got, warnings)
	}
}

// The total cost of hostile scripts does not grow with their number.
func TestThousandsOfHostileScriptsAreBounded(t *testing.T) {
	list := make([]card.RegexScript, 2000)
	for i := range list {
		list[i] = card.RegexScript{Name: "hostile", Find: "(a+)+$", Replace: "x"}
	}
	s := compileScripts(card.NodeST, replying(list...), time.Millisecond)
	text := strings.Repeat("a", 60) + "!"
	got, warnings := s.ApplyReply(text, nil)
	if got != text || len(warnings) != len(list) {
		t.Errorf("%d warnings, text %q", len(warnings), got)
	}
	tried := 0
	for _, sc := range s.list {
		if sc.pattern.Off() {
			tried++
		}
	}
	if tried > promptLimits+1 { // on a busy machine none may be
		t.Errorf("%d scripts were tried", tried)
	}
}

// When the scripts' time for a prompt is used up, the remaining messages stay
// unchanged; the next prompt starts anew.
func TestTheScriptsOfAPromptShareTheirTime(t *testing.T) {
	s := compileScripts(card.NodeST, replying(card.RegexScript{Name: "good", Find: "!", Replace: "?", PromptOnly: true}), patient)
	r := s.Run(NewCache(0))
	if got := r.Request("assistant", "one!", 0); got != "one?" {
		t.Errorf("got %q", got)
	}
	r.time = jsregex.NewAllowance(0)
	for range 2 {
		if got := r.Request("assistant", "two!", 0); got != "two!" {
			t.Errorf("got %q after the time was spent", got)
		}
	}
	if got := r.Request("assistant", "one!", 0); got != "one?" {
		t.Errorf("a result that is known costs nothing, got %q", got)
	}
	if w := r.Warnings(); len(w) != 1 || w[0].Code != "slow_pattern" || w[0].Path != "regexScripts.good" {
		t.Errorf("warnings = %+v", w)
	}
	next := s.Run(r.cache)
	if got := next.Request("assistant", "two!", 0); got != "two?" || next.Warnings() != nil {
		t.Errorf("the next prompt: %q, %+v", got, next.Warnings())
	}
}

func TestReplacementCannotGrowWithoutBound(t *testing.T) {
	s := compileScripts(card.NodeST, replying(
		card.RegexScript{Name: "square", Find: "a", Replace: "$`$'"},
		card.RegexScript{Name: "long", Find: "^", Replace: strings.Repeat("$'", 5000)},
		card.RegexScript{Name: "good", Find: "!", Replace: "?"},
	), patient)
	text := strings.Repeat("a", 20_000) + "!"
	got, warnings := s.ApplyReply(text, nil)
	if got != strings.Repeat("a", 20_000)+"?" || len(warnings) != 2 {
		t.Errorf("a text of %d bytes, warnings %+v", len(got), warnings)
	}
}

// References that stand for nothing are counted too.
func TestReferencesToNothingAreBounded(t *testing.T) {
	text := strings.Repeat("a", 32_000)
	for name, c := range map[string]struct {
		find, replace, want string
	}{
		"groups that took no part": {"a(?<x>b)?", strings.Repeat("$<x>$1", 100_000), ""}, // 6,400 million references
		"names without an end":     {"^(?<x>a)", strings.Repeat("$<", 600_000), strings.Repeat("$<", 600_000) + text[1:]},
	} {
		s := compileScripts(card.NodeST, replying(card.RegexScript{Name: "hostile", Find: c.find, Replace: c.replace}), patient)
		got, warnings := s.ApplyReply(text, nil)
		if c.want == "" && (got != text || len(warnings) != 1) || c.want != "" && got != c.want {
			t.Errorf("%s: a text of %d bytes, warnings %+v", name, len(got), warnings)
		}
	}
}

func TestThePatternsOfASetAreBounded(t *testing.T) {
	list := make([]card.RegexScript, 40)
	for i := range list {
		list[i] = card.RegexScript{ID: "long", Find: strings.Repeat("a", jsregex.MaxPattern)}
	}
	s := CompileScripts(card.NodeST, replying(list...))
	if len(s.list) != maxPatterns/jsregex.MaxPattern || len(s.warnings) != 40-len(s.list) {
		t.Errorf("%d scripts are in use, %d warnings", len(s.list), len(s.warnings))
	}
	if got := s.Size(); got < maxPatterns*patternGrowth {
		t.Errorf("size %d", got)
	}
}

// A hostile script for requests, which runs over every message, uses its time limit
// only once per request.
func TestHostileScriptIsTriedOncePerRequest(t *testing.T) {
	in := Input{User: Message{Text: "hi"}, Scripts: hostile(true).Run(nil)}
	for range 200 {
		in.History = append(in.History, Message{Role: "assistant", Text: strings.Repeat("a", 60) + "!"})
	}
	p := build(t, in)
	if len(p.Warnings) != 1 || p.Warnings[0].Path != "regexScripts.hostile" {
		t.Errorf("warnings = %+v", p.Warnings)
	}
	if n := strings.Count(texts(p), "a?"); n != 200 {
		t.Errorf("the good script changed %d messages of 200", n)
	}
}

func TestScriptsApplyOnlyWhereConfigured(t *testing.T) {
	depth := func(n int) *int { return &n }
	user, reply := []int{card.PlaceUserInput}, []int{card.PlaceAIOutput}
	s := compileScripts(card.NodeST, []card.RegexScript{
		{Find: "a", Replace: "U", Placement: user},
		{Find: "a", Replace: "R", Placement: reply},
		{Find: "b", Replace: "D", Placement: reply, MarkdownOnly: true, MaxDepth: depth(1)},
		{Find: "c", Replace: "P", Placement: reply, PromptOnly: true, MinDepth: depth(2)},
		{Find: "d", Replace: "!", Placement: reply, Disabled: true},
		{Find: "d", Replace: "!"},
		{Find: "", Replace: "!", Placement: reply},
	}, patient)
	check := func(name, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	r := s.Run(nil)
	check("user", r.User("abcdef"), "Ubcdef")
	got, _ := s.ApplyReply("abcdef", nil)
	check("reply", got, "Rbcdef")
	check("request", r.Request("assistant", "abcdef", 2), "abPdef")
	check("request, not deep enough", r.Request("assistant", "abcdef", 1), "abcdef")
	check("request, a user's message", r.Request("user", "abcdef", 2), "abcdef")
	var none *Scripts
	if got, _ = none.ApplyReply("a", nil); got != "a" || none.Run(nil).User("a") != "a" || none.Run(nil).Warnings() != nil {
		t.Error("no scripts must change nothing")
	}
}

// The test of scripts says of each what it did, or why it did not run.
func TestScriptsAreTested(t *testing.T) {
	two := 2
	reply := []int{card.PlaceAIOutput}
	list := []card.RegexScript{
		{ID: "1", Name: "vowels", Find: "/[ae]/g", Replace: "*", Placement: reply},
		{Name: "stars", Find: `\*`, Replace: "+", Placement: reply},
		{Name: "no match", Find: "z", Placement: reply},
		{Name: "first only", Find: "/l/i", Replace: "L", Placement: reply},
		{Name: "off", Find: "l", Placement: reply, Disabled: true},
		{Name: "blank", Placement: reply},
		{Name: "nowhere", Find: "l"},
		{Name: "input", Find: "l", Placement: []int{card.PlaceUserInput}},
		{Name: "display", Find: "L", Replace: "D", Placement: reply, MarkdownOnly: true},
		{Name: "request", Find: "L", Replace: "P", Placement: reply, PromptOnly: true},
		{Name: "deep", Find: "o", Placement: reply, MinDepth: &two},
		{Name: "broken", Find: "(", Placement: reply},
	}
	summary := func(o Occasion, text string) string {
		got, results := testScripts(compiler{limit: patient}, list, text, o, nil)
		for _, r := range results {
			switch {
			case r.Ran != (r.Reason == ""):
				t.Errorf("%+v", r)
			case r.Ran:
				got += fmt.Sprintf(" | %s %d", r.Name, r.Replacements)
			default:
				got += " | " + r.Reason
			}
		}
		return got
	}
	for _, c := range []struct {
		o    Occasion
		want string
	}{
		{Occasion{Placement: card.PlaceAIOutput}, "h+Llo | vowels 1 | stars 1 | no match 0 | first only 1 | disabled | empty | placement | placement | purpose | purpose | depth | invalid_pattern"},
		{Occasion{Placement: card.PlaceAIOutput, Depth: 2}, "h+Ll | vowels 1 | stars 1 | no match 0 | first only 1 | disabled | empty | placement | placement | purpose | purpose | deep 1 | invalid_pattern"},
		{Occasion{Placement: card.PlaceAIOutput, IsMarkdown: true}, "hello | purpose | purpose | purpose | purpose | disabled | empty | placement | placement | display 0 | purpose | purpose | invalid_pattern"},
		{Occasion{Placement: card.PlaceUserInput}, "heo | placement | placement | placement | placement | disabled | empty | placement | input 2 | placement | placement | placement | invalid_pattern"},
	} {
		if got := summary(c.o, "hello"); got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.o, got, c.want)
		}
	}
	slow := []card.RegexScript{{Name: "slow", Find: "(a+)+$", Placement: reply}, {Name: "next", Find: "!", Replace: "?", Placement: reply}}
	text, results := TestScripts(card.NodeST, slow, strings.Repeat("a", 60)+"!", Occasion{Placement: card.PlaceAIOutput}, nil)
	if !strings.HasSuffix(text, "a?") || results[0].Reason != "slow_pattern" || results[0].Detail == "" || results[1].Replacements != 1 {
		t.Errorf("%s %+v", text, results)
	}
}

func TestInvalidScriptIsNamedAndLeftOut(t *testing.T) {
	s := compileScripts(card.NodeST, replying(
		card.RegexScript{Name: "broken", Find: "(", Replace: "x"},
		card.RegexScript{Name: "fine", Find: "a", Replace: "b"},
	), patient)
	if w := s.Run(nil).Warnings(); len(w) != 1 || w[0].Code != "invalid_pattern" || w[0].Path != "regexScripts.broken" {
		t.Errorf("warnings = %+v", w)
	}
	if got, _ := s.ApplyReply("a(", nil); got != "b(" {
		t.Errorf("got %q", got)
	}
}
