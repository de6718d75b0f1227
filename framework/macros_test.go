package framework

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/card"
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

// sillyTavernMacros are those of SillyTavern 1.19, as they are used.
const sillyTavernMacros = `{{user}} {{char}} {{group}} {{charIfNotGroup}} {{groupNotMuted}} {{notChar}} {{description}} {{personality}} {{scenario}} {{persona}}
{{mesExamples}} {{mesExamplesRaw}} {{charPrompt}} {{charInstruction}} {{charDepthPrompt}} {{creatorNotes}} {{charVersion}} {{version}} {{char_version}} {{greeting::1}}
{{original}} {{newline}} {{newline::2}} {{space::2}} {{noop}} {{trim}} {{reverse::x}} {{random}} {{random::a::b}} {{random:a,b}} {{pick::a::b}} {{pick:a,b}} {{roll::6}} {{roll::d6}}
{{roll:1d6}} {{roll:6}} {{roll}} {{time}} {{date}} {{weekday}} {{isotime}} {{isodate}} {{time_UTC+1}} {{datetimeformat::HH:mm}} {{timeDiff::a::b}} {{idle_duration}} {{lastMessage}}
{{lastMessageId}} {{lastUserMessage}} {{lastCharMessage}} {{lastSwipeId}} {{currentSwipeId}} {{allChatRange}} {{firstIncludedMessageId}} {{firstDisplayedMessageId}} {{input}} {{model}}
{{isMobile}} {{maxPrompt}} {{maxContext}} {{maxResponse}} {{lastGenerationType}} {{hasExtension::x}} {{setvar::n::v}} {{addvar::n::1}} {{incvar::n}} {{decvar::n}} {{getvar::n}}
{{setglobalvar::n::v}} {{getglobalvar::n}} {{.x}} {{$x}} {{if::a}} {{/if}} {{outlet::n}} {{banned::w}} {{systemPrompt}} {{chatStart}} {{exampleSeparator}} {{match}} {{Roll::2}}
{{USER}} {{pick::}} {{pick:}} {{user::x}} {{open {{{char}} {{random::{{user}}::b}} {{random:red,{{random:green,blue}},yellow}} {{pick::{{random:a,b}}::c}} {{random::{{pick:a,b}}::c}}
<USER> <BOT> <CHAR>`

// The import of a card warns about exactly those macros that a prompt does not replace.
func TestMacrosAreReplacedUnlessAnImportWarnsAboutThem(t *testing.T) {
	t.Parallel()
	m := macros{Char: "C", User: "U", LastUserMessage: "LU", LastCharMessage: "LC", Seed: 1, PickSeed: 2, clock: clock{now: time.Unix(0, 0)}}
	replaced, left := 0, 0
	for _, macro := range append(strings.Fields(sillyTavernMacros), "{{// a comment}}", "{{// {{nope}} }}", "{{ char }}") {
		whole := !strings.ContainsAny(m.expand(macro), "{}<>")
		if macro == "{{open" || macro == "{{{char}}" {
			whole = true // the first brackets are no macro
		}
		if warned := len(card.UnknownMacros(macro)) > 0; warned == whole {
			t.Errorf("%s becomes %q, warned: %v", macro, m.expand(macro), warned)
		}
		if whole {
			replaced++
		} else {
			left++
		}
	}
	t.Logf("%d macros are replaced, %d stay as they are", replaced, left)
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
		card.UnknownMacros(text)
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
