package framework

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/llm"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestClockMacros(t *testing.T) {
	at := time.Date(2026, 11, 22, 23, 5, 0, 0, time.UTC)
	before := at.Add(-3 * time.Hour)
	const text = "{{Date}} | {{TIME}} | {{weekday}} | {{isodate}} {{isotime}} | {{idle_duration}}"
	for _, tt := range []struct {
		language Language
		zone     string
		want     string
	}{
		{English, "UTC", "November 22, 2026 | 11:05 PM | Sunday | 2026-11-22 23:05 | 3 hours"},
		{English, "America/Los_Angeles", "November 22, 2026 | 3:05 PM | Sunday | 2026-11-22 15:05 | 3 hours"},
		{English, "Asia/Tokyo", "November 23, 2026 | 8:05 AM | Monday | 2026-11-23 08:05 | 3 hours"},
		{Chinese, "UTC", "2026年11月22日 | 23:05 | 星期日 | 2026-11-22 23:05 | 3 小时"},
		{Chinese, "Asia/Shanghai", "2026年11月23日 | 07:05 | 星期一 | 2026-11-23 07:05 | 3 小时"},
		{"", "UTC", "November 22, 2026 | 11:05 PM | Sunday | 2026-11-22 23:05 | 3 hours"},
	} {
		m := macros{clock: clock{at.In(zone(t, tt.zone)), before, tt.language}}
		if got := m.expand(text); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.language, tt.zone, got, tt.want)
		}
	}
	none := macros{}
	if got := none.expand(text); got != text {
		t.Errorf("without a time: %q", got)
	}
}

func TestIdleDuration(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, tt := range []struct {
		idle             time.Duration
		english, chinese string
	}{
		{0, "a few seconds", "几秒"},
		{-time.Second, "a few seconds", "几秒"}, // clocks differ
		{44 * time.Second, "a few seconds", "几秒"},
		{45 * time.Second, "a minute", "1 分钟"},
		{89 * time.Second, "a minute", "1 分钟"},
		{90 * time.Second, "2 minutes", "2 分钟"},
		{44 * time.Minute, "44 minutes", "44 分钟"},
		{45 * time.Minute, "an hour", "1 小时"},
		{90 * time.Minute, "2 hours", "2 小时"},
		{21 * time.Hour, "21 hours", "21 小时"},
		{22 * time.Hour, "a day", "1 天"},
		{36 * time.Hour, "2 days", "2 天"},
		{25 * day, "25 days", "25 天"},
		{26 * day, "a month", "1 个月"},
		{60 * day, "2 months", "2 个月"},
		{345 * day, "a year", "1 年"},
		{3 * 365 * day, "3 years", "3 年"},
	} {
		for language, want := range map[Language]string{English: tt.english, Chinese: tt.chinese} {
			c := clock{at, at.Add(-tt.idle), language}
			if got := c.idle(); got != want {
				t.Errorf("%v: %q, want %q", tt.idle, got, want)
			}
		}
	}
	for language, want := range map[Language]string{English: "just now", Chinese: "刚刚"} {
		if got := (clock{now: at, language: language}).idle(); got != want {
			t.Errorf("without a message before: %q, want %q", got, want)
		}
	}
}

func TestComments(t *testing.T) {
	m := macros{User: "Sam", LastUserMessage: "so {{// typed}}"}
	for text, want := range map[string]string{
		"a{{// no {{user}}, {{// nor {{char}} }} }}b": "ab",
		"{{//}}x{{// }}":                   "x",
		"{{// open {{user}}":               "{{// open Sam",
		"{{// open {{// closed}} {{user}}": "{{// open  Sam",
		"}} {{user}} {{//x}}":              "}} Sam ",
		"{{lastMessage}}":                  "so {{// typed}}", // a value, not a template
		"{{/x}}":                           "{{/x}}",
	} {
		if got := m.expand(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	begun := time.Now()
	m.expand(strings.Repeat("{{//", 1<<20))
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("a text of open comments took %v", took)
	}
}

// The same input gives the same times: each message has its own time, and memories
// have dates in the user's time zone.
func TestBuildIncludesTheTime(t *testing.T) {
	now := time.Date(2026, 11, 22, 23, 5, 0, 0, time.UTC)
	input := func(zone *time.Location, language Language, memories ...string) Input {
		in := Input{
			History: []Message{{Role: "user", Text: "It is {{isotime}}.", At: now.Add(-2 * time.Hour)}},
			User:    Message{Role: "user", Text: "And now {{isotime}}, {{isodate}}."},
			Options: Options{Now: now.In(zone), Language: language},
		}
		for _, m := range memories {
			in.Findings.Memories = append(in.Findings.Memories, Memory{ID: m, Text: m})
		}
		return in
	}
	texts := func(in Input) string {
		p, err := Build(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, en := range p.Entries {
			total += en.Tokens
		}
		if total != p.Tokens {
			t.Errorf("the entries have %d tokens, the prompt %d", total, p.Tokens)
		}
		var all []string
		for _, m := range p.Messages {
			all = append(all, m.Text)
		}
		return strings.Join(all, "\n")
	}
	for _, tt := range []struct {
		in        Input
		want, not string
	}{
		{input(time.UTC, English), "It is 21:05.\nAnd now 23:05, 2026-11-22.", "Now:"},
		{input(zone(t, "Asia/Tokyo"), English), "It is 06:05.\nAnd now 08:05, 2026-11-23.", "Now:"},
		{input(time.UTC, English, "no date"), "1. no date", "Now:"},
		{input(time.UTC, English, "no date", "tea (2026-11-01)"), "1. no date\n2. tea (2026-11-01)\nNow: Sunday, 22 November 2026, 23:05\n</mem>", "现在"},
		{input(zone(t, "Asia/Tokyo"), Chinese, "茶 (2026-11-01)"), "1. 茶 (2026-11-01)\n现在：2026年11月23日 星期一 08:05\n</mem>", "Now:"},
		{input(time.UTC, English, "I said (2026-11-01) once"), "1. I said", "Now:"},
	} {
		got := texts(tt.in)
		if !strings.Contains(got, tt.want) || strings.Contains(got, tt.not) {
			t.Errorf("want %q and not %q in:\n%s", tt.want, tt.not, got)
		}
		if again := texts(tt.in); again != got {
			t.Errorf("the second request differs:\n%s\n%s", got, again)
		}
	}
	timeless := input(time.UTC, English, "tea (2026-11-01)")
	timeless.Options.Now = time.Time{}
	if got := texts(timeless); strings.Contains(got, "Now:") || !strings.Contains(got, "{{isotime}}") {
		t.Errorf("without a time: %s", got)
	}
}

// A profile and its entries stand before the chat, and macros in it are not expanded.
func TestProfileStandsBeforeTheChat(t *testing.T) {
	in := Input{
		Persona: Persona{Name: "Sam"},
		Profile: Profile{Heading: "About the user:", Facts: []Memory{{ID: "f1", Text: "User is {{user}}"}, {ID: "f2", Text: "User lives in Rome"}}},
		History: []Message{{Role: "assistant", Text: "Hello."}},
		User:    Message{Role: "user", Text: "Hi."},
	}
	p, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(p.Messages, func(m llm.Message) bool { return strings.HasPrefix(m.Text, "About the user:") })
	if at < 0 || p.Messages[at+1].Text != "Hello." || p.Messages[at].Role != llm.User {
		t.Fatalf("messages: %+v", p.Messages)
	}
	if want := "About the user:\n- User is {{user}}\n- User lives in Rome"; p.Messages[at].Text != want {
		t.Errorf("profile: %q, want %q", p.Messages[at].Text, want)
	}
	var ids []string
	for _, en := range p.Entries {
		if en.Source == SourceProfile {
			ids = append(ids, en.ID)
		}
	}
	if !slices.Equal(ids, []string{"", "f1", "f2"}) {
		t.Errorf("entries: %q", ids)
	}
	in.Profile.Facts = nil
	if p, err = Build(t.Context(), in); err != nil || slices.ContainsFunc(p.Messages, func(m llm.Message) bool { return strings.Contains(m.Text, "About") }) {
		t.Errorf("without facts: %+v, %v", p.Messages, err)
	}
}
