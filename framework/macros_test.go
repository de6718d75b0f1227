package framework

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMacros(t *testing.T) {
	m := macros{Char: "Mara", User: "$1 $& Sam", LastUserMessage: "hi {{user}} {{char}}", LastCharMessage: "ho {{user}}"}
	for text, want := range map[string]string{
		"{{char}} and {{CHAR}}":         "Mara and Mara",
		"{{user}}":                      "$1 $& Sam", // a value, not a template
		"{{LASTMESSAGE}}":               "hi $1 $& Sam Mara",
		"{{lastUserMessage}}":           "hi $1 $& Sam Mara",
		"{{lastCharMessage}}":           "ho {{user}}", // comes after {{user}}
		"{{{char}}}":                    "{Mara}",
		"{{ char }} {{chars}} {{char":   "{{ char }} {{chars}} {{char",
		"{{roll::x}} {{roll::0}}":       "1 1",
		"{{roll::-5}} {{roll::d}}":      "1 1",
		"{{random::only}}":              "only",
		"{{random::}} {{roll::}}":       "{{random::}} {{roll::}}",
		"{{random:only}} {{random:}}":   "only {{random:}}",
		"{{random::a\\, b}}":            "a, b",
		"{{pick::only}} {{pick:only }}": "only only",
		"{{pick}} {{pick::}} {{}}":      "{{pick}} {{pick::}} {{}}",
		"{{pick::a::a}}{{time}}":        "a{{time}}",
		"no macros at all, {only} this": "no macros at all, {only} this",
	} {
		if got := m.expand(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestRandomMacrosDependOnlyOnSeedTextAndPosition(t *testing.T) {
	const text = "{{random}} {{random::a::b::c::d::e::f}} {{random::a::b::c::d::e::f}} {{roll::d1000000}} {{roll::1000000}}"
	one, other := macros{Seed: 7}, macros{Seed: 8}
	first := one.expand(text)
	if again := one.expand(text); again != first {
		t.Errorf("the same seed gave %q and %q", first, again)
	}
	if other.expand(text) == first {
		t.Error("another seed gave the same")
	}
	rolls := strings.Fields(first)[3:]
	if rolls[0] == rolls[1] {
		t.Errorf("two rolls of one text are alike: %v", rolls)
	}
	seen := map[string]bool{}
	for seed := range uint64(200) {
		m := macros{Seed: seed}
		seen[m.expand("{{random::a::b::c}}{{roll::2}}")] = true
	}
	if len(seen) != 6 {
		t.Errorf("of six outcomes there were %v", seen)
	}
}

func TestListsAreSplitAsSillyTavernDoes(t *testing.T) {
	for text, want := range map[string]string{
		"{{random::300,400}}": "300 400",
		"{{random:300, 400}}": "300 400",
		"{{Random:a::b,c}}":   "a b,c",
		"{{random::a\\,b,c}}": "a,b c",
		"{{pick::300,400}}":   "300 400",
		"{{pick:a::b}}":       "a b",
	} {
		seen := map[string]bool{}
		for seed := range uint64(50) {
			m := macros{Seed: seed, PickSeed: seed}
			seen[m.expand(text)] = true
		}
		if got := strings.Join(slices.Sorted(maps.Keys(seen)), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestPicksStayInAConversation(t *testing.T) {
	const text = "{{pick::a::b::c::d::e::f}}{{pick::a::b::c::d::e::f}}{{pick::a::b::c::d::e::f}}"
	one, again, other := macros{Seed: 1, PickSeed: 7}, macros{Seed: 2, PickSeed: 7}, macros{Seed: 1, PickSeed: 8}
	if one.expand(text) != again.expand(text) {
		t.Error("the next turn picked others")
	}
	if one.expand(text) == other.expand(text) {
		t.Error("another conversation picked the same")
	}
}

func TestUnknownMacros(t *testing.T) {
	got := unknownMacros("{{user}} {{Roll::2}} {{Time}} {{// x}} {{time_UTC+1}} {{ char }} {{{char}} x {{open {{nope::1}} {{roll}} {{random:a,b}} {{pick::a}} {{pick:}} {{roll:6}}")
	want := []string{"time_UTC+1", " char ", "nope::1", "roll", "pick:", "roll:6"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzMacros(f *testing.F) {
	f.Add("{{// {{user}} {{time}}}} {{// {{date}}", "{{idle_duration}}", "{{//", uint64(2))
	f.Add("{{user}}{{random::a::{{char}}}}{{roll::d6}}", "Sam {{lastcharmessage}}", "{{char}}", uint64(1))
	f.Fuzz(func(t *testing.T, text, user, last string, seed uint64) {
		if len(text)+len(user)+len(last) > 10_000 {
			return
		}
		m := macros{Char: "C", User: user, LastUserMessage: last, LastCharMessage: last, Seed: seed, clock: clock{now: time.Unix(0, 0)}}
		once := m.expand(text)
		if again := m.expand(text); again != once {
			t.Errorf("%q, then %q", once, again)
		}
		if !strings.Contains(text, "{{") && once != text {
			t.Error("a text without macros was changed")
		}
		unknownMacros(text)
	})
}

// Macros cannot expand a card of a few megabytes to gigabytes.
func TestMacrosDoNotGrowAPromptWithoutBound(t *testing.T) {
	m := macros{LastUserMessage: strings.Repeat("x", 100_000)}
	text, total := strings.Repeat("{{lastMessage}}", 30), 0
	for range 1000 {
		total += len(m.expand(text))
	}
	if most := maxGrown + maxExpanded + 1000*len(text); total > most {
		t.Errorf("the texts have %d bytes, want at most %d", total, most)
	}
	if got := m.expand("{{user}}"); got != "{{user}}" {
		t.Errorf("got %q", got)
	}
}
