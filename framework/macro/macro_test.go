package macro

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// draws returns the numbers one after the other, and again.
func draws(numbers ...float64) func() float64 {
	i := -1
	return func() float64 {
		i++
		return numbers[i%len(numbers)]
	}
}

func example() *Env {
	return &Env{
		Names: People{User: "Bob", Char: "Alice"},
		Card: Card{
			Description: "A maid of {{user}}.", Personality: "{{description}} Kind. {{personality}}", Greetings: []string{"Hi {{user}}", "Hello"}, Version: "{{user}}",
		},
		Model: Model{Name: "m", MaxContext: 8000, MaxReply: 300, Generation: "swipe"},
		Chat: Chat{Before: 10, Included: 12, Messages: []Message{
			{Text: "first"}, {User: true, Text: "asked {{char}}", At: time.Date(2025, 3, 14, 9, 0, 0, 0, time.UTC)}, {User: true, Hidden: true, Text: "hidden"}, {Text: "answer", Swipes: 3, Swipe: 1},
		}},
		Now: time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC), Rand: draws(0.4),
		Local: NewVars(map[string]any{"hp": 5.0, "name": "{{char}}", "zero": "0"}), Global: NewVars(map[string]any{"world": "Eldoria"}),
		Outlets: map[string]string{"lore": "old {{user}} tales"}, Extra: map[string]string{"lastchatmessage": "the {{user}} last"}, Input: "typed",
	}
}

func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		// syntax
		"{{ char }}{{  user}}{{user  }}{{CHAR}}":        "AliceBobBobAlice",
		"{{\nchar\n}}":                                  "Alice",
		"{{unknown}} {{unknown::{{user}}}}":             "{{unknown}} {{unknown::Bob}}",
		"{{char::x}} {{reverse}} {{setvar::x}}":         "{{char::x}} {{reverse}} {{setvar::x}}",
		"{{char":                                        "{{char",
		"{{a {{char}} {{b":                              "{{a Alice {{b",
		"{{}} {{ }} {{{{char}}}} }} {{":                 "{{}} {{ }} {{Alice}} }} {{",
		"{{#char}} {{!char}} {{?~char}} {{/char}}":      "Alice Alice Alice {{/char}}",
		"{{charx}} {{char.x}} {{char-x}} {{1}}":         "{{charx}} {{char.x}} {{char-x}} {{1}}",
		"{{reverse abc}}{{reverse : abc }}":             "cbacba",
		"{{reverse::  a b  }}|{{reverse::{{space}}a}}":  "b a|a ",
		`\{{char}} {{reverse::\{a\}}} a\b\\{`:           `{{char}} }a{ a\b\{`,
		"<USER>/<Bot>/<char>/<x>/{{reverse::<user>}}":   "Bob/Alice/Alice/<x>/boB",
		"{{nope::<user>}} {{nope {{if 1}}a::b{{/if}}}}": "{{nope::Bob}} {{nope a::b}}",
		"{{lastchatmessage}} {{lastChatMessage}}":       "the {{user}} last the {{user}} last",
		// blocks
		"{{if 1}}x{{if 0}}y{{else}}z{{/if}}w{{/if}}":                  "xzw",
		"{{if}}1{{/if}} {{if a}} {{else}}":                            "{{if}}1{{/if}} {{if a}} {{else}}",
		"{{if 0}}a{{else}}b{{else}}c{{/if}}":                          "b{{else}}c",
		"{{/if}}{{if 1}}a{{/if}}{{/if}}":                              "{{/if}}a{{/if}}",
		"{{if 1}}a{{reverse}}b{{/if}}c{{/reverse}}":                   "a{{reverse}}bc{{/reverse}}",
		"{{setvar::v}}a{{reverse}}bc{{/reverse}}{{/setvar}}[{{.v}}]":  "[acb]",
		"{{if 1}}\n    # H\n      b\n\n    c\n{{/if}}":                "# H\n  b\n\nc",
		"{{#if 1}}\n  a\n{{/if}}":                                     "\n  a\n",
		"{{if 1}}\n  {{// note}}\n  a {{noop}}\n{{/if}}!":             "a!",
		"[{{if 1}}\n{{newline}}a{{newline}}\n{{/if}}]":                "[\na\n]",
		"{{if 1}}\n  {{if 1}}\n    a\n    b\n  {{/if}}\n  c\n{{/if}}": "a\nb\nc",
		"{{random::a}}b{{/random}}":                                   "a",
		"{{reverse::{{if 1}}a::b{{/if}}}}":                            "b::a",
		"a\n{{if 1}}{{trim}}{{/if}}\nb":                               "ab",
		"a\r\n\r\n{{trim}}\r\n b \n{{trim}}{{trim}}\n":                "a b ",
		// conditions
		"{{if description}}y{{/if}}{{if !scenario}}y{{/if}}{{if scenario}}n{{/if}}":       "yy",
		"{{if FALSE}}n{{/if}}{{if  Off }}n{{/if}}{{if 00}}y{{/if}}{{if nothing}}y{{/if}}": "yy",
		"{{if {{getvar::zero}}}}n{{/if}}{{if !{{getvar::zero}}}}y{{/if}}":                 "y",
		"{{if {{.name}}}}y{{/if}}": "y",
		"{{if .hp}}y{{/if}}{{if !.hp}}n{{/if}}{{if $world}}y{{/if}}{{if .none}}n{{/if}}": "yy",
		"{{if .hp > 3}}y{{/if}}{{if .hp == {{reverse::5}}}}y{{/if}}{{if .hp<5}}n{{/if}}": "yy",
		"{{if::1::a{{else}}b}}{{if::0::a{{else}}b}}":                                     "ab",
		"{{if 0}}{{setvar::s::bad}}{{/if}}[{{.s}}]":                                      "[]",
		// comments
		"a{{// c {{setvar::c::1}} }}b{{hasvar::c}}":   "abfalse",
		"a{{//}}x{{char}}{{///}}b{{ // }}y{{ /// }}c": "abc",
		"{{//}}{{/// deco ///}}":                      "",
		// results are not expanded again
		"{{.name}} {{getvar::name}} {{lastUserMessage}} {{version}} {{outlet::lore}}": "{{char}} {{char}} asked {{char}} {{user}} old {{user}} tales",
		"{{reverse::{{reverse::{{.name}}}}}}":                                         "{{char}}",
		"{{setvar::w::{{.name}}}}{{.w}}":                                              "{{char}}",
		// the card
		"{{description}}|{{charDescription}}|{{personality}}|{{scenario}}":             "A maid of Bob.|A maid of Bob.|A maid of Bob. Kind. |",
		"{{greeting::0}}|{{greeting}}|{{greeting::1}}|{{greeting::7}}|{{greeting::x}}": "Hi Bob|Hi Bob|Hello||{{greeting::x}}",
		"{{original}}": "{{original}}",
		// the chat
		"{{lastMessage}}|{{lastMessageId}}|{{lastCharMessage}}|{{lastSwipeId}}|{{currentSwipeId}}|{{allChatRange}}|{{firstIncludedMessageId}}": "answer|13|answer|3|2|0-13|12",
		"{{model}} {{maxPrompt}} {{maxContext}} {{maxResponse}} {{lastGenerationType}} {{input}}":                                              "m 7700 8000 300 swipe typed",
		"{{isMobile}}{{hasExtension::x}}{{banned \"a\"}}{{instructUserPrefix}}{{systemPrompt}}":                                                "falsefalse",
		"{{group}} {{charIfNotGroup}} {{groupNotMuted}} {{notChar}}":                                                                           "Alice Alice Alice Bob",
		// text
		"a{{newline}}b{{space}}c{{noop}}d{{newline::2}}e{{space::3}}f{{space::-1}}": "a\nb cd\n\ne   f",
		"{{newline::x}}": "{{newline::x}}",
		// chance: 0.4 is drawn
		"{{random::a::b::c}} {{random:a,b,c}} {{random a, b ,c}} {{random::a,b}}":            "b b b a",
		`{{random:x,a\,b,c}} {{random:red,{{random:green,blue}},yellow}}`:                    "a,b green",
		"{{roll::2d6+1}} {{roll d10}} {{roll:20}} {{roll 1d6-1}} {{roll d%}}":                "7 5 9 2 41",
		"[{{roll::0d6}}{{roll::1d0}}{{roll::99999d6}}{{roll::1d6+}}{{roll::d}}{{roll::-3}}]": "[]",
		// time
		"{{time}} {{date}} {{weekday}} {{isotime}} {{isodate}} {{idle_duration}}":         "9:26 AM March 14, 2025 Friday 09:26 2025-03-14 27 minutes",
		"{{time_UTC+5}} {{time::UTC+90}} {{TIME_utc-2}} {{time::x}} {{time_UTC}}":         "2:26 PM 10:56 AM 7:26 AM {{time::x}} {{time_UTC}}",
		"{{datetimeformat DD.MM.YYYY HH:mm:ss}} {{datetimeformat::[at] h A, Do MMMM YY}}": "14.03.2025 09:26:53 at 9 AM, 14th March 25",
		"{{timeDiff::2023-01-01::2023-03-01}} {{timeDiff::x::y}}":                         "2 months ago {{timeDiff::x::y}}",
		// variables
		"{{setvar::a::3}}{{incvar::a}}{{decvar::a}}{{incvar::a}}[{{getvar::a}}]":                             "434[4]",
		"{{setglobalvar:: g :: v }}{{addglobalvar::g::w}}{{getglobalvar::g}}{{$g}}":                          "vwvw",
		"{{hasvar::hp}}{{varexists::hp}}{{hasglobalvar::hp}}{{deletevar::hp}}{{hasvar::hp}}":                 "truetruefalsefalse",
		`{{setvarkey::o::b::x}}{{setvarkey::o::a::1}}{{getvar::o}}{{getvarkey::o::b}}{{getvarkey::o::none}}`: `{"b":"x","a":"1"}x`,
		`{{setvarkey::l::1::x}}{{getvar::l}}{{getvarkey::l::1}}{{setvarkey::hp::k::x}}{{getvar::hp}}`:        `[null,"x"]x5`,
		"{{.hp}}{{.hp++}}{{.hp--}}{{.hp += 2}}{{.hp -= 1}}{{.hp}}":                                           "5656",
		"{{.a ?? b {{user}}}} {{.hp ?? {{.x = 1}}}}{{hasvar::x}} {{.zero || c}} {{.zero ?? c}}":              "b Bob 5false c 0",
		"{{.n ??= 4}}{{.n}}{{.zero ||= 9}}{{.zero}}":                                                         "4499",
		"{{.hp == 5.0}} {{.hp != 5}} {{.hp >= 5}} {{.hp > x}} {{.name == \\{\\{char\\}\\}}}":                 "true false true false true",
		"{{.hp-max = 7}}{{.hp-max}} {{ . hp }} {{.}} {{.1}} {{$1}} {{.hp x}} {{.好感 = 6}}{{.好感}}":             "7 5 {{.}} {{.1}} {{$1}} {{.hp x}} 6",
		"{{setvar::f::0.1}}{{addvar::f::0.2}}{{.f}} {{addvar::t::x}}{{addvar::t::1}}{{.t}}":                  "0.30000000000000004 x1",
	} {
		if got := example().Expand(text); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", text, got, want)
		}
	}
}

func TestPickIsStable(t *testing.T) {
	choices := map[string]int{}
	text := Parse("{{pick::a::b::c}}{{pick::a::b::c}}")
	for seed := range uint64(300) {
		e := &Env{Seed: seed, Rand: draws(0.1, 0.9)}
		got := text.Expand(e)
		if again := e.Expand("{{pick::a::b::c}}{{pick::a::b::c}}"); again != got {
			t.Fatalf("seed %d: %s, then %s", seed, got, again)
		}
		choices[got]++
	}
	if len(choices) != 9 {
		t.Errorf("choices: %v", choices)
	}
	for choice, n := range choices {
		if n < 10 {
			t.Errorf("%s was picked %d times of 300", choice, n)
		}
	}
}

func TestFieldsAreChargedWithTheirSources(t *testing.T) {
	e := &Env{Card: Card{
		Description: "{{// " + strings.Repeat("x", 900_000) + "}}", Personality: strings.Repeat("{{description}}", 50_000),
	}}
	if got := e.Expand("{{description}}{{personality}}"); got != "{{personality}}" || !e.Limited() {
		t.Errorf("%d bytes, limited %v", len(got), e.Limited())
	}
	if e.spent.bytes > maxBytes+2<<20 {
		t.Errorf("texts of %d bytes were read", e.spent.bytes)
	}
}

func TestFieldsAreParsedOnce(t *testing.T) {
	e := example()
	if got := e.Expand("{{description}}") + e.Expand("{{description}}"); got != "A maid of Bob.A maid of Bob." {
		t.Errorf("%q", got)
	}
	kept := e.spent.fields["description"]
	e.Expand("{{description}}")
	if kept == nil || e.spent.fields["description"] != kept {
		t.Error("the description was parsed again")
	}
	e.Card.Description = "New, {{user}}."
	if got := e.Expand("{{description}}"); got != "New, Bob." {
		t.Errorf("%q", got)
	}
}

func TestMacrosStayWhenTheirTimeIsOver(t *testing.T) {
	done := make(chan struct{})
	close(done)
	e := &Env{Names: People{User: "Bob"}, Done: done}
	if got := e.Expand(strings.Repeat("{{user}}", 1000)); !strings.HasSuffix(got, "{{user}}") || !e.Limited() {
		t.Errorf("%q", got)
	}
}

func TestPatternsKeepTheirBackslashes(t *testing.T) {
	e := &Env{Names: People{User: "B.b", Char: "A"}}
	quote := func(s string) string { return strings.ReplaceAll(s, ".", `\.`) }
	for source, want := range map[string]string{
		`a.c`: `a.c`, `/{{user}}\s\{\{x\}\}{2}/g`: `/B\.b\s\{\{x\}\}{2}/g`, `(?<user>{{char}})`: `(?<user>A)`,
		`{{reverse::{{user}}}}`: `b\.B`, `{{if 1}}{{user}}.{{/if}}`: `B\.b.`, `\{{user}}`: `\{{user}}`,
	} {
		if got := e.ExpandPattern(source, quote); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
	if got := e.ExpandPattern("{{user}}", nil); got != "B.b" {
		t.Error(got)
	}
}

func TestOriginalIsGivenOnce(t *testing.T) {
	e := example()
	inner := e.WithOriginal("{{user}}'s")
	if got := inner.Expand("[{{original}}{{original}}]") + inner.Expand("{{original}}") + e.Expand("{{original}}"); got != "[{{user}}'s]{{original}}" {
		t.Errorf("%q", got)
	}
}

func TestWithoutATimeItsMacrosStay(t *testing.T) {
	const text = "{{time}} {{date}} {{idle_duration}}"
	if got := (&Env{}).Expand(text + "{{char}}{{.x = 1}}{{.x}}{{random::a::b}}"); got != text+"a" {
		t.Errorf("%q", got)
	}
}

func TestDatesInTwoLanguages(t *testing.T) {
	at := time.Date(2025, 3, 2, 21, 5, 7, 89e6, time.FixedZone("", 8*3600))
	for layout, want := range map[string][2]string{
		"LT|LTS|L|l":                      {"9:05 PM|9:05:07 PM|03/02/2025|3/2/2025", "21:05|21:05:07|2025/03/02|2025/3/2"},
		"LL|ll":                           {"March 2, 2025|Mar 2, 2025", "2025年3月2日|2025年3月2日"},
		"LLLL":                            {"Sunday, March 2, 2025 9:05 PM", "2025年3月2日星期日晚上9点05分"},
		"llll":                            {"Sun, Mar 2, 2025 9:05 PM", "2025年3月2日星期日 21:05"},
		"dd ddd dddd d":                   {"Su Sun Sunday 0", "日 周日 星期日 0"},
		"MMM Do a":                        {"Mar 2nd pm", "3月 2日 晚上"},
		"Q DDDD W E GGGG k hh SSS Z ZZ X": {"1 061 9 7 2025 21 09 089 +08:00 +0800 1740920707", "1 061 9 7 2025 21 09 089 +08:00 +0800 1740920707"},
		`[YYYY] \YYYY YYYYY, [open`:       {"YYYY YYYY 2025" + "2025, [open"[len("2025"):], "YYYY YYYY 2025" + "2025, [open"[len("2025"):]},
	} {
		if strings.HasPrefix(layout, "[YYYY]") {
			want = [2]string{"YYYY YYYY 20252025, [op7n", "YYYY YYYY 20252025, [op7n"} // e is the day of the week
			want[0], want[1] = strings.Replace(want[0], "7", "0", 1), strings.Replace(want[1], "7", "0", 1)
		}
		if en, zh := English.Format(at, layout), Chinese.Format(at, layout); en != want[0] || zh != want[1] {
			t.Errorf("%s: %q %q, want %q", layout, en, zh, want)
		}
	}
	for d, want := range map[time.Duration][2]string{
		20 * time.Second: {"a few seconds", "几秒"}, time.Minute: {"a minute", "1 分钟"}, -44 * time.Minute: {"44 minutes", "44 分钟"},
		50 * time.Minute: {"an hour", "1 小时"}, 25 * time.Hour: {"a day", "1 天"}, 72 * time.Hour: {"3 days", "3 天"},
		30 * 24 * time.Hour: {"a month", "1 个月"}, 400 * 24 * time.Hour: {"a year", "1 年"}, 4000 * 24 * time.Hour: {"11 years", "11 年"},
	} {
		if en, zh := English.Humanize(d), Chinese.Humanize(d); en != want[0] || zh != want[1] {
			t.Errorf("%v: %q %q, want %q", d, en, zh, want)
		}
	}
}

func TestVariablesAreAnObject(t *testing.T) {
	var v Vars
	if err := json.Unmarshal([]byte(`{"a":"x","n":1.5,"l":[1,{"b":"<"}],"t":true,"z":null}`), &v); err != nil || v.Changed() {
		t.Fatal(err)
	}
	if got, err := json.Marshal(&v); err != nil || string(got) != `{"a":"x","l":"[1,{\"b\":\"\u003c\"}]","n":1.5,"t":"true","z":""}` {
		t.Errorf("%s %v", got, err)
	}
	for name, change := range map[string]func(v *Vars){
		"set": func(v *Vars) { v.Set("a", "y") }, "remove": func(v *Vars) { v.remove("a") }, "add": func(v *Vars) { v.add("n", "1") },
	} {
		if c := v.Clone(); c.Changed() {
			t.Error("a copy has changed")
		} else if change(c); !c.Changed() || v.Changed() {
			t.Errorf("%s: changed %v, the source %v", name, c.Changed(), v.Changed())
		}
	}
	same := v.Clone()
	same.Set("a", "x")
	same.remove("none")
	if same.Changed() || !reflect.DeepEqual(same.All(), v.All()) {
		t.Error("nothing was changed")
	}
	var none *Vars
	none.Set("a", "b")
	if _, ok := none.Get("a"); ok || none.Changed() || none.Clone().Changed() {
		t.Error("nil keeps nothing")
	}
	if got, err := json.Marshal(none); err != nil || string(got) != "null" {
		t.Errorf("%s %v", got, err)
	}
	if json.Unmarshal([]byte(`[1]`), &v) == nil {
		t.Error("a list was accepted")
	}
	for n, want := range map[float64]string{1: "1", -0.5: "-0.5", 1e21: "1e+21", 1e-7: "1e-7", 123456789012: "123456789012", math.Copysign(0, -1): "0"} {
		if got := formatNumber(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

func TestVariablesAreBounded(t *testing.T) {
	e := &Env{Local: &Vars{}}
	e.Expand("{{setvar::x::" + strings.Repeat("a", 1000) + "}}" + strings.Repeat("{{addvar::x::{{.x}}}}", 40))
	e.Expand("{{setvar::" + strings.Repeat("n", 300) + "::1}}{{setvar::::1}}")
	for i := range 40 {
		e.Expand(fmt.Sprintf("{{setvar::v%d::{{.x}}}}", i))
	}
	x, _ := e.Local.Get("x")
	if all := e.Local.All(); len(x) != 64000 || len(all) != 4 || e.Local.size > MaxVars {
		t.Errorf("x has %d bytes, %d variables, %d bytes", len(x), len(all), e.Local.size)
	}
}

// The limit applies to the stored JSON, however many bytes a character takes there.
func TestVariablesAreMeasuredAsTheyAreStored(t *testing.T) {
	for _, text := range []string{"plain", "\x00\x01\b\f\n\r\t\x7f", `"\/<b>&`, "\u2028\u2029\uFFFD", "茶🍵", "broken \xff\xc3 text"} {
		v := &Vars{}
		for i := 0; ; i++ {
			was := v.size
			v.Set(fmt.Sprint(text, i), strings.Repeat(text, 1000))
			v.add(fmt.Sprint("n", i), fmt.Sprint(1e-7*float64(i)))
			if doc, err := json.Marshal(v); err != nil || len(doc) != v.size+1 || len(doc) > MaxVars {
				t.Fatalf("%q: %d bytes are stored, %d were reckoned with, %v", text, len(doc), v.size+1, err)
			}
			if v.size == was {
				break
			}
		}
		before := v.size
		v.remove(fmt.Sprint(text, 0))
		v.Set(fmt.Sprint(text, 0), strings.Repeat(text, 1000))
		if v.size != before {
			t.Errorf("%q: %d bytes, then %d", text, before, v.size)
		}
	}
	v := &Vars{}
	for i := range MaxVarCount + 10 {
		v.Set(fmt.Sprint(i), "1")
	}
	v.Set("0", "changed")
	if all := v.All(); len(all) != MaxVarCount || all["0"] != "changed" {
		t.Errorf("%d variables, the first is %v", len(all), all["0"])
	}
}

// Texts that were made to be expensive end soon, and keep within the limits.
func TestHostileTexts(t *testing.T) {
	const n = 50_000
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	var worst time.Duration
	for name, text := range map[string]string{
		"braces":         strings.Repeat("{", n),
		"open":           strings.Repeat("{{ ", n),
		"open names":     strings.Repeat("{{reverse::", n),
		"closing":        strings.Repeat("}}", n),
		"nested":         deep("{{reverse::", "x", "}}", n),
		"blocks":         deep("{{if 1}}", "x", "{{/if}}", n),
		"open blocks":    strings.Repeat("{{if 1}}", n),
		"closed blocks":  strings.Repeat("{{/if}}", n),
		"crossed blocks": deep("{{if 1}}{{trim}}", "x", "{{/trim}}{{/if}}", n),
		"many blocks":    strings.Repeat("{{if 1}}\n  x\n{{else}}{{/if}}", n/10),
		"trims":          strings.Repeat("\n{{trim}}\n", n),
		"angles":         strings.Repeat("<user", n),
		"users":          strings.Repeat("<user>", n),
		"commas":         "{{random:" + strings.Repeat(",", n) + "}}",
		"arguments":      "{{random::" + strings.Repeat("::", n) + "}}",
		"picks":          strings.Repeat("{{pick::a::b}}", n),
		"dice":           strings.Repeat("{{roll::1000d6}}", n),
		"long values":    strings.Repeat("{{lastMessage}}", n),
		"long reversals": deep("{{reverse::", "{{lastMessage}}", "}}", 60),
		"fields":         strings.Repeat("{{description}}", n),
		"doubling":       "{{setvar::x::[1]}}" + strings.Repeat("{{addvar::x::{{.x}}}}", n/10),
		"objects":        strings.Repeat("{{setvarkey::o::{{incvar::i}}::x}}", n/10),
		"long list":      strings.Repeat("{{setvarkey::l::13000::x}}", n/10),
		"layouts":        strings.Repeat("{{datetimeformat "+strings.Repeat("LLLL", 100)+"}}", n/100),
		"slashes":        strings.Repeat("{{/", n),
		"comments":       deep("{{//", "x", "}}", n),
		"flags":          "{{" + strings.Repeat("#", n) + "char}}",
		"negations":      "{{if " + strings.Repeat("!", n) + "1}}x{{/if}}",
		"escapes":        strings.Repeat(`\{`, n),
		"unknown":        deep("{{x::", "{{user}}", "}}", n),
		"blank lines":    "{{if 1}}" + strings.Repeat("\n ", n) + "{{/if}}",
	} {
		e := example()
		e.Chat.Messages = append(e.Chat.Messages, Message{Text: strings.Repeat("long ", 20_000)})
		e.Card.Description = strings.Repeat("{{lastMessage}}{{personality}}", 100)
		e.Card.Personality = strings.Repeat("{{description}}{{scenario}}", 100)
		started := time.Now()
		got := e.Expand(text)
		took := time.Since(started)
		worst = max(worst, took)
		if most := 2*maxText + 2*len(text); len(got) > most {
			t.Errorf("%s: %d bytes of a text of %d", name, len(got), len(text))
		}
		if took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		t.Logf("%-15s %7.1f ms, %9d bytes, limited %v", name, float64(took.Microseconds())/1000, len(got), e.Limited())
	}
	t.Logf("worst: %v", worst)
}

func TestProblems(t *testing.T) {
	for text, want := range map[string]string{
		"{{char}} <USER> {{random::a::{{user}}}} {{.x}} {{// {{nope}} }}{{if a}}b{{else}}c{{/if}}{{lastChatMessage}}": "",
		"{{nope}} {{reverse::{{Nope::a}}}} {{a b {{c}}}}":                                                             "unknown {{nope}}, unknown {{Nope::a}}, unknown {{a b {{c}}}}, unknown {{c}}",
		"{{char::a}} {{reverse}} {{setvar::a}}":                                                                       "arguments {{char::a}}, arguments {{reverse}}, arguments {{setvar::a}}",
		"{{if a}}b {{/char}}":                                                                                         "unclosed {{if a}}, arguments {{/char}}",
		"{{if 1}}{{nope}}{{else}}{{isMobile}}{{/if}}":                                                                 "unknown {{nope}}, no_effect {{isMobile}}",
		"{{time_UTC+2}}{{.x = {{nope}}}}":                                                                             "deprecated {{time_UTC+2}}, unknown {{nope}}",
		"{{original}}":                                                                                                "unknown {{original}}", "{{x": "", "{{}}": "unknown {{}}",
	} {
		var found []string
		for _, p := range Problems(text, "lastchatmessage") {
			found = append(found, string(p.Kind)+" "+p.Macro)
		}
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("{{x::", 50_000) + strings.Repeat("}}", 50_000), strings.Repeat("{{x}}", 50_000)} {
		if n := len(Problems(text)); n == 0 || n > maxProblems {
			t.Errorf("%d problems", n)
		}
	}
}

func TestNamesAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, info := range Names() {
		if info.About == "" || strings.ContainsAny(info.About, "\n") || len(info.About) > 110 {
			t.Errorf("%s: %q", info.Name, info.About)
		}
		for _, name := range append([]string{info.Name}, info.Aliases...) {
			if name = strings.ToLower(name); seen[name] || slices.Contains([]string{"", " "}, name) {
				t.Errorf("%s stands twice", name)
			}
			seen[name] = true
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{
		"{{char}} <USER> {{random::a::b}}", "{{if .x > 1}}\n a{{else}}b{{/if}}", `\{\{x\}\} {{{char}}}`, "{{setvar::a}} x\n {{/setvar}}{{.a ??= {{roll 2d6}}}}",
		"{{// {{a}} }}{{//}}x{{///}}{{trim}}\n", "{{random:a,b\\,c}}{{pick::a::b}}", "{{datetimeformat [x] LLLL}}{{time_UTC+2}}", "{{#if !description}}\n\tq{{/if}}",
		"{{setvarkey::o::k::v}}{{addvar::l::[1]}}{{$g++}}", "{{{{}}}}{{:}}{{::}}{{/}}{{.}}{{$}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 5000 {
			return
		}
		const evil = "{{setvar::hacked::1}}{{.hacked = 1}}"
		expand := func() (string, *Env) {
			e := example()
			e.Card = Card{Version: evil}
			e.Names.User, e.Names.Char, e.Input = evil, evil, evil
			e.Chat.Messages[1].Text, e.Chat.Messages[3].Text = evil, evil
			e.Local = NewVars(map[string]any{"x": evil})
			return e.Expand(text), e
		}
		got, e := expand()
		if again, _ := expand(); again != got {
			t.Errorf("%q, then %q", got, again)
		}
		if _, hacked := e.Local.Get("hacked"); hacked && !strings.Contains(strings.ToLower(text), "hacked") {
			t.Errorf("a result was expanded: %q", text)
		}
		if len(got) > maxText+len(text) {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// entries are texts like those of a large world book.
func entries(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("Entry %d. {{char}} knows {{user}} since the harvest; %s {{if .met%d}}They met before.{{else}}They never met.{{/if}} "+
			"{{random::red::green::blue}} {{// note}}{{getvar::mood}} <USER>", i, strings.Repeat("The old town lies between two rivers. ", 12), i%7)
	}
	return texts
}

func BenchmarkExpand500Texts(b *testing.B) {
	texts := entries(500)
	parsed := make([]*Text, len(texts))
	for i, text := range texts {
		parsed[i] = Parse(text)
	}
	for name, expand := range map[string]func(e *Env, i int) string{
		"parsed":   func(e *Env, i int) string { return parsed[i].Expand(e) },
		"unparsed": func(e *Env, i int) string { return e.Expand(texts[i]) },
		"plain":    func(e *Env, i int) string { return e.Expand(texts[i][30:300]) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := example()
				for i := range texts {
					expand(e, i)
				}
			}
		})
	}
}

// The documentation names every macro, but for second names and templates of text completion.
func TestTheDocumentationNamesEveryMacro(t *testing.T) {
	text, err := os.ReadFile("../../docs/prompts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "### Macros of the SillyTavern dialect")
	section, _, _ = strings.Cut(section, "\n## ")
	section = strings.ToLower(section)
	for _, info := range Names() {
		name := strings.ToLower(info.Name)
		switch {
		case strings.HasPrefix(name, "instruct"), info.Status == Deprecated:
			continue
		case strings.Contains(name, "globalvar"):
			name = strings.Replace(name, "globalvar", "var", 1)
		}
		if !strings.Contains(section, "`"+name) && !strings.Contains(section, " "+name) {
			t.Errorf("%s is not there", info.Name)
		}
	}
}
