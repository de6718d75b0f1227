package jsregex

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// patient is a limit that no machine reaches.
const patient = time.Hour

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
		{"a*", "gy", "baac", "-", "-b--c-"},
		{"", "gy", "ab", "-", "-a-b-"},
		// without regard to case, as Node 20 has it
		{"θεος", "gi", "ΘΕΟΣ", "x", "x"},
		{"i", "gi", "İıI", "x", "İıx"},
		{"k", "gi", "\u212aK", "x", "\u212ax"},
		{"k", "giu", "\u212aK", "x", "xx"},
		{"s", "gi", "ſ", "x", "ſ"},
		{"ß", "gi", "ẞ", "x", "ẞ"},
		{"ß", "giu", "ẞ", "x", "x"},
		{"ǆ", "gi", "ǅǄ", "x", "xx"},
		{"θ", "gi", "ϑϴΘ", "x", "xϴx"},
		{"θ", "giu", "ϑϴΘ", "x", "xxx"},
		{"\u03a9", "gi", "\u03c9\u2126", "x", "x\u2126"},
		{"[a-z]", "gi", "İK\u212a", "x", "İx\u212a"},
		{"[^a-z]", "gi", "İK\u212a1", "x", "xKxx"},
		{"[Ā-İ]", "gi", "iıİāĀ", "x", "iıxxx"},
		{"[а-я]+", "gi", "Жизнь", "x", "x"},
		{`[\x41-\x43]`, "gi", "abcd", "x", "xxxd"},
		{`\u{10428}`, "giu", "𐐀", "x", "x"},
		{`\w`, "giu", "ſ", "x", "x"},
		{`[^\W]`, "giu", "ſ", "x", "x"},
		{`\bs`, "giu", "ſs", "x", "xs"},
		{`\p{Lu}`, "giu", "aA1", "x", "xx1"},
		{`(a)\1`, "gi", "aAa", "x", "xa"},
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
		p, err := Compile(c.pattern, c.flags, patient)
		if err != nil {
			t.Errorf("/%s/%s: %v", c.pattern, c.flags, err)
			continue
		}
		got, _, err := p.Replace(c.text, c.replacement)
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
		if _, err := Compile(pattern, flags, patient); err == nil {
			t.Errorf("/%s/%s was accepted", pattern, flags)
		}
	}
}

func TestNestedRepetitionIsDetected(t *testing.T) {
	for pattern, slow := range map[string]bool{
		"(a+)+": true, `(\w+\s?)*x`: true, "(?:a*|b)+": true, "((a+))*": true, "(.*)*": true,
		"(a+b)+": false, "a+b+": false, "(ab)+": false, `("[^"]*")*`: false, "(a+)?": false, "(?:a{2}b*)+": false,
	} {
		p, err := Compile(pattern, "", patient)
		if err != nil {
			t.Fatal(err)
		}
		if p.Nested() != slow {
			t.Errorf("%s: slow = %v", pattern, p.Nested())
		}
	}
}

// Many quick matches together stay within the limit.
func TestManyMatchesStayWithinTheLimit(t *testing.T) {
	p, err := Compile("a", "g", time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 100)
	if got, _, err := p.Replace(text, "b"); !errors.Is(err, ErrTime) || got != text {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSplitPattern(t *testing.T) {
	for find, want := range map[string][2]string{
		"a": {"a", ""}, "/a/": {"a", ""}, "/a/gi": {"a", "gi"}, "/a/b/g": {"a/b", "g"}, `/a\/b/g`: {`a\/b`, "g"},
		"/": {"/", ""}, "/a": {"/a", ""}, "/a/G": {"/a/G", ""}, "/a/1": {"/a/1", ""}, "//": {"", ""},
	} {
		if source, flags := Split(find); source != want[0] || flags != want[1] {
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
		p, err := Compile(pattern, flags, 20*time.Millisecond)
		if err != nil {
			return
		}
		if out, _, err := p.Replace(text, replacement); err != nil && out != text {
			t.Errorf("a failed script changed the text")
		}
	})
}

func compile(t *testing.T, source, flags string, limit time.Duration) *Pattern {
	t.Helper()
	p, err := Compile(source, flags, limit)
	if err != nil {
		t.Fatalf("/%s/%s: %v", source, flags, err)
	}
	return p
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		source, flags, text string
		want                bool
	}{
		{"b", "", "abc", true}, {"B", "i", "abc", true}, {"b", "y", "abc", false}, {"a", "y", "abc", true},
		{"", "", "", true}, {"龙", "", "他的龙", true}, {"^b", "m", "a\nb", true}, {"x", "g", "abc", false},
	} {
		if got, err := compile(t, c.source, c.flags, patient).Matches([]rune(c.text)); got != c.want || err != nil {
			t.Errorf("/%s/%s in %q: %v, %v", c.source, c.flags, c.text, got, err)
		}
	}
	if _, err := compile(t, "(a+)+$", "", 10*time.Millisecond).Matches([]rune(strings.Repeat("a", 60) + "!")); !errors.Is(err, ErrTime) {
		t.Errorf("a slow pattern: %v", err)
	}
}

func TestReplaceFuncSeesTheGroups(t *testing.T) {
	p := compile(t, `(?<first>\w)(\w)?`, "g", patient)
	got, n, err := p.ReplaceFunc("ab c", func(m Match) string {
		whole, _ := m.Group(0)
		first, _ := m.Named("first")
		second, known := m.Group(2)
		_, third := m.Group(3)
		_, nobody := m.Named("nobody")
		if !known || third || nobody {
			t.Errorf("groups: %v %v %v", known, third, nobody)
		}
		return "[" + whole + "|" + second + first + "]"
	})
	if got != "[ab|ba] [c|c]" || n != 2 || err != nil {
		t.Errorf("%q, %d, %v", got, n, err)
	}
}

func TestKey(t *testing.T) {
	for key, want := range map[string]string{
		"/dragon/": "dragon ", "/dragon/i": "dragon i", "/a/gimsuy": "a gimsuy", "dragon": "-", "/dragon": "-", "//": "-", "/": "-",
		"/a/b/": "-", `/a\/b\/c/`: `a/b\/c `, "/a/x": "-", "//a/": "-", "/a/I": "-",
	} {
		got := "-"
		if source, flags, ok := Key(key); ok {
			got = source + " " + flags
		}
		if got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func TestAnAllowanceIsShared(t *testing.T) {
	p := compile(t, "a", "", patient)
	a := NewAllowance(2 * patient)
	runs := 0
	run := func(errs ...error) error {
		return a.Try(p, func() error {
			err := errs[0]
			errs = errs[1:]
			runs++
			return err
		})
	}
	if err := run(nil); err != nil || runs != 1 {
		t.Errorf("a good run: %v, %d runs", err, runs)
	}
	if err := run(ErrTime, nil); err != nil || runs != 3 || p.Off() {
		t.Errorf("a busy moment: %v, %d runs, off %v", err, runs, p.Off())
	}
	if err := run(ErrSize); !errors.Is(err, ErrSize) || runs != 4 || p.Off() {
		t.Errorf("a long result: %v, %d runs, off %v", err, runs, p.Off())
	}
	for range 3 {
		if err := run(ErrTime, ErrTime); !errors.Is(err, ErrTime) || runs != 6 || !p.Off() {
			t.Errorf("a slow pattern: %v, %d runs, off %v", err, runs, p.Off())
		}
	}
	p = compile(t, "a", "", patient)
	if a = NewAllowance(patient - 1); !errors.Is(run(nil), ErrSpent) || runs != 6 {
		t.Errorf("%d runs with less time than one may take", runs)
	}
	if a = NewAllowance(patient); !errors.Is(run(ErrTime), ErrSpent) || runs != 7 || p.Off() {
		t.Errorf("%d runs with time for one, off %v", runs, p.Off())
	}
}
