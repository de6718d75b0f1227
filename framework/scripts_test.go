package framework

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/card"
)

func TestPatternsWorkAsInJavaScript(t *testing.T) {
	for _, c := range []struct{ pattern, flags, text, replacement, want string }{
		// replacement strings
		{"b", "g", "abcb", "$&$&", "abbcbb"},
		{"b", "g", "abc", "[$`|$']", "a[a|c]c"},
		{"(b)(c)?", "g", "ab", "<$1$2>", "a<b>"},
		{"(b)", "g", "ab", "$2 $10 $01 $0 $", "a$2 b0 b $0 $"},
		{"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)", "", "abcdefghij", "$10$1", "ja"},
		{"(?<x>a)(b)", "g", "ab", "$<x>$2$<y>", "ab"},
		{"(a)", "g", "a", "$<x>", "$<x>"},
		{"(?<x>a)", "g", "a", "$<x", "$<x"},
		{"a", "g", "aa", "$$1", "$1$1"},
		// flags
		{"a", "", "aa", "x", "xa"},
		{"A", "gi", "aA", "x", "xx"},
		{"a", "y", "ba", "x", "ba"},
		{"a", "gy", "aaba", "x", "xxba"},
		{"^a$", "gm", "a\nb\ra\u2028a", "x", "x\nb\rx\u2028x"},
		{"^a", "g", "a\na", "x", "x\na"},
		{"a$", "g", "a\n", "x", "a\n"},
		{".", "g", "a\n\r\u2028b", "x", "x\n\r\u2028x"},
		{".", "gs", "a\nb", "x", "xxx"},
		{".", "gu", "a😀", "x", "xx"},
		// classes
		{`\d`, "g", "1٣", "x", "x٣"},
		{`\w`, "g", "aé_", "x", "xéx"},
		{`\W`, "g", "aé_", "x", "ax_"},
		{`\s`, "g", "\ufeff\u3000\u0085a", "x", "xx\u0085a"},
		{`[^\s]`, "g", " a", "x", " x"},
		{`[\S]`, "g", " a\u3000", "x", " x\u3000"},
		{`[^\Sa]`, "g", "a b", "x", "axb"},
		{`[\s\S]`, "g", "a\n", "x", "xx"},
		{`[^]`, "g", "a\n", "x", "xx"},
		{`[]`, "g", "a", "x", "a"},
		{`[a[b]`, "g", "[ab", "x", "xxx"},
		{`[a-c&&[b]]`, "", "a]", "x", "x"},
		{`[\b]`, "g", "\b", "x", "x"},
		{`[\w-z]`, "g", "-", "x", "x"},
		{`[a-]`, "g", "-", "x", "x"},
		{`\bfoo\b`, "g", "foo 中foo中 foobar", "x", "x 中x中 foobar"},
		// escapes
		{`\x41\u0042\u{43}`, "u", "ABC", "x", "x"},
		{`a\u{2}`, "", "auu", "x", "x"},
		{`\ud83d\ude00`, "g", "😀", "x", "x"},
		{`\p{L}+`, "u", "日本1", "x", "x1"},
		{`\p{Script=Han}`, "gu", "日a", "x", "xa"},
		{`\p{L}`, "", "p{L}", "x", "x"},
		{`\cJ`, "g", "\n", "x", "x"},
		{`\0`, "g", "\x00", "x", "x"},
		{`\A\z\Z\e\a`, "", "AzZea", "x", "x"},
		{`\-\/\ `, "", "-/ ", "x", "x"},
		{`a{`, "", "a{", "x", "x"},
		{`a{,3}`, "", "a{,3}", "x", "x"},
		{`x{2}`, "", "xxx", "-", "-x"},
		{`]}`, "", "]}", "x", "x"},
		{`#a b`, "", "#a b", "x", "x"},
		// groups and assertions
		{`(a)|b`, "g", "ab", "[$1]", "[a][]"},
		{`(?:a)(b)`, "", "ab", "$1", "b"},
		{`(?<n>a)\k<n>`, "", "aa", "x", "x"},
		{`\k<n>`, "", "k<n>", "x", "x"},
		{`\1(a)`, "", "a", "x", "x"},
		{`(a)\1`, "", "aa1", "x", "x1"},
		{`(a)\12`, "", "aa2", "x", "aa2"}, // an octal escape: \12 is a line feed
		{`(?=a)*`, "", "a", "x", "xa"},
		{`(?<!a)b`, "g", "abb", "x", "abx"},
		{`(?<=a)b`, "g", "abb", "x", "axb"},
		{`a*?b`, "", "aab", "x", "x"},
		{`\n{3,}`, "g", "a\n\n\n\nb", "\n\n", "a\n\nb"},
		{``, "g", "ab", "-", "-a-b-"},
		{`a*`, "g", "baac", "-", "-b--c-"},
	} {
		p, err := compilePattern(c.pattern, c.flags, patient)
		if err != nil {
			t.Errorf("/%s/%s: %v", c.pattern, c.flags, err)
			continue
		}
		got, _, err := p.replace(c.text, c.replacement)
		if got != c.want || err != nil {
			t.Errorf("/%s/%s on %q with %q: %q, %v; want %q", c.pattern, c.flags, c.text, c.replacement, got, err, c.want)
		}
	}
}

func TestPatternsThatJavaScriptRefuses(t *testing.T) {
	for pattern, flags := range map[string]string{
		"(": "", ")": "", "[a": "", `\`: "", "a**": "", "*": "", "(?i)a": "", "(?>a)": "", "(?#c)": "", "a++": "", "?": "",
		"[z-a]": "", "(?<n>a)(?<n>b)": "", "(?<1>a)": "", "(?<=a)+": "", "a|*": "",
		"a{2,1}": "", "{": "u", `\a`: "u", `\p{Nope}`: "u", "]": "u", `\1`: "u", `(?<n>a)\k<m>`: "", "a": "gg", "b": "x",
		"\xff": "",
	} {
		if _, err := compilePattern(pattern, flags, patient); err == nil {
			t.Errorf("/%s/%s was accepted", pattern, flags)
		}
	}
}

func TestNestedRepetitionIsDetected(t *testing.T) {
	for pattern, slow := range map[string]bool{
		"(a+)+": true, `(\w+\s?)*x`: true, "(?:a*|b)+": true, "((a+))*": true, "(.*)*": true,
		"(a+b)+": false, "a+b+": false, "(ab)+": false, `("[^"]*")*`: false, "(a+)?": false, "(?:a{2}b*)+": false,
	} {
		p, err := compilePattern(pattern, "", patient)
		if err != nil {
			t.Fatal(err)
		}
		if p.nested != slow {
			t.Errorf("%s: slow = %v", pattern, p.nested)
		}
	}
}

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
	s := compileScripts(replying(
		card.RegexScript{Name: "hostile", Find: "(a+)+$", Replace: "x", PromptOnly: promptOnly},
		card.RegexScript{Name: "good", Find: "!", Replace: "?", PromptOnly: promptOnly},
	), patient)
	s.list[0].pattern.re.MatchTimeout = 20 * time.Millisecond
	return s
}

func TestHostileScriptIsOffUntilItIsEdited(t *testing.T) {
	s := hostile(false)
	text := strings.Repeat("a", 60) + "!"
	for i := range 3 {
		got, warnings := s.ApplyReply(text)
		if got != strings.Repeat("a", 60)+"?" {
			t.Errorf("got %q", got)
		}
		if len(warnings) != 1 || warnings[0].Code != "slow_pattern" || warnings[0].Path != "regexScripts.hostile" {
			t.Errorf("time %d: warnings = %+v", i, warnings)
		}
		s.list[0].pattern.re.MatchTimeout = time.Hour // this test would not end if it ran again
	}
	edited := compileScripts(replying(card.RegexScript{Name: "hostile", Find: "a+$", Replace: "x"}), patient)
	if got, warnings := edited.ApplyReply("aaa"); got != "x" || warnings != nil {
		t.Errorf("edited: %q, warnings %+v", got, warnings)
	}
}

// The total cost of hostile scripts does not grow with their number.
func TestThousandsOfHostileScriptsAreBounded(t *testing.T) {
	list := make([]card.RegexScript, 2000)
	for i := range list {
		list[i] = card.RegexScript{Name: "hostile", Find: "(a+)+$", Replace: "x"}
	}
	s := compileScripts(replying(list...), time.Millisecond)
	text := strings.Repeat("a", 60) + "!"
	got, warnings := s.ApplyReply(text)
	if got != text || len(warnings) != len(list) {
		t.Errorf("%d warnings, text %q", len(warnings), got)
	}
	tried := 0
	for _, sc := range s.list {
		if sc.off.Load() {
			tried++
		}
	}
	if tried == 0 || tried > promptLimits+1 {
		t.Errorf("%d scripts were tried", tried)
	}
}

// When the scripts' time for a prompt is used up, the remaining messages stay
// unchanged; the next prompt starts anew.
func TestTheScriptsOfAPromptShareTheirTime(t *testing.T) {
	s := compileScripts(replying(card.RegexScript{Name: "good", Find: "!", Replace: "?", PromptOnly: true}), patient)
	r := s.Run(NewCache(0))
	if got := r.request("assistant", "one!", 0); got != "one?" {
		t.Errorf("got %q", got)
	}
	r.used = promptLimits * patient
	for range 2 {
		if got := r.request("assistant", "two!", 0); got != "two!" {
			t.Errorf("got %q after the time was spent", got)
		}
	}
	if got := r.request("assistant", "one!", 0); got != "one?" {
		t.Errorf("a result that is known costs nothing, got %q", got)
	}
	if w := r.all(); len(w) != 1 || w[0].Code != "slow_pattern" || w[0].Path != "regexScripts.good" {
		t.Errorf("warnings = %+v", w)
	}
	next := s.Run(r.cache)
	if got := next.request("assistant", "two!", 0); got != "two?" || next.all() != nil {
		t.Errorf("the next prompt: %q, %+v", got, next.all())
	}
}

// Many quick matches together stay within the limit.
func TestManyMatchesStayWithinTheLimit(t *testing.T) {
	p, err := compilePattern("a", "g", time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 100)
	if got, _, err := p.replace(text, "b"); !errors.Is(err, errPatternTime) || got != text {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReplacementCannotGrowWithoutBound(t *testing.T) {
	s := compileScripts(replying(
		card.RegexScript{Name: "square", Find: "a", Replace: "$`$'"},
		card.RegexScript{Name: "long", Find: "^", Replace: strings.Repeat("$'", 5000)},
		card.RegexScript{Name: "good", Find: "!", Replace: "?"},
	), patient)
	text := strings.Repeat("a", 20_000) + "!"
	got, warnings := s.ApplyReply(text)
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
		s := compileScripts(replying(card.RegexScript{Name: "hostile", Find: c.find, Replace: c.replace}), patient)
		got, warnings := s.ApplyReply(text)
		if c.want == "" && (got != text || len(warnings) != 1) || c.want != "" && got != c.want {
			t.Errorf("%s: a text of %d bytes, warnings %+v", name, len(got), warnings)
		}
	}
}

func TestThePatternsOfASetAreBounded(t *testing.T) {
	list := make([]card.RegexScript, 40)
	for i := range list {
		list[i] = card.RegexScript{ID: "long", Find: strings.Repeat("a", maxPattern)}
	}
	s := CompileScripts(replying(list...))
	if len(s.list) != maxPatterns/maxPattern || len(s.warnings) != 40-len(s.list) {
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
	s := compileScripts([]card.RegexScript{
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
	got, _ := s.ApplyReply("abcdef")
	check("reply", got, "Rbcdef")
	check("request", r.request("assistant", "abcdef", 2), "abPdef")
	check("request, not deep enough", r.request("assistant", "abcdef", 1), "abcdef")
	check("request, a user's message", r.request("user", "abcdef", 2), "abcdef")
	var none *Scripts
	if got, _ = none.ApplyReply("a"); got != "a" || none.Run(nil).User("a") != "a" || none.Run(nil).all() != nil {
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
		got, results := testScripts(list, text, o, patient)
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
	text, results := TestScripts(slow, strings.Repeat("a", 60)+"!", Occasion{Placement: card.PlaceAIOutput})
	if !strings.HasSuffix(text, "a?") || results[0].Reason != "slow_pattern" || results[0].Detail == "" || results[1].Replacements != 1 {
		t.Errorf("%s %+v", text, results)
	}
}

func TestInvalidScriptIsNamedAndLeftOut(t *testing.T) {
	s := compileScripts(replying(
		card.RegexScript{Name: "broken", Find: "(", Replace: "x"},
		card.RegexScript{Name: "fine", Find: "a", Replace: "b"},
	), patient)
	if w := s.Run(nil).all(); len(w) != 1 || w[0].Code != "invalid_pattern" || w[0].Path != "regexScripts.broken" {
		t.Errorf("warnings = %+v", w)
	}
	if got, _ := s.ApplyReply("a("); got != "b(" {
		t.Errorf("got %q", got)
	}
}

func TestSplitPattern(t *testing.T) {
	for find, want := range map[string][2]string{
		"a": {"a", ""}, "/a/": {"a", ""}, "/a/gi": {"a", "gi"}, "/a/b/g": {"a/b", "g"}, `/a\/b/g`: {`a\/b`, "g"},
		"/": {"/", ""}, "/a": {"/a", ""}, "/a/G": {"/a/G", ""}, "/a/1": {"/a/1", ""}, "//": {"", ""},
	} {
		if source, flags := splitPattern(find); source != want[0] || flags != want[1] {
			t.Errorf("%s: %q %q", find, source, flags)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"(a+)+$", `[\S-z]`, `(?<n>a)\k<n>\u{1F600}`, `\p{Script=Han}{2,}?`, "(?<=[^]])|", `a{1,99999}\1`, "[^\\D\\x0-\\cA]"} {
		f.Add(seed, "gimsuy", "text 文字\n", "$1$<n>$&$$")
	}
	f.Fuzz(func(t *testing.T, pattern, flags, text, replacement string) {
		if len(text) > 200 || len(pattern) > 200 {
			return
		}
		p, err := compilePattern(pattern, flags, 20*time.Millisecond)
		if err != nil {
			return
		}
		if out, _, err := p.replace(text, replacement); err != nil && out != text {
			t.Errorf("a failed script changed the text")
		}
	})
}
