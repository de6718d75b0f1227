package worldinfo

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
)

// bigBook is a book of n entries.
func bigBook(n int, entry func(i int) card.Entry) *Book {
	list := make([]card.Entry, n)
	for i := range list {
		list[i] = entry(i)
		list[i].ID = fmt.Sprint(i)
	}
	return Compile(Source{Name: "w", Origin: OfCharacter, Entries: list})
}

func TestLevelsAreFew(t *testing.T) {
	const n = 5000
	b := bigBook(n, func(i int) card.Entry {
		e := card.Entry{Constant: true, Content: "x"}
		e.DelayUntilRecursion, e.PreventRecursion, e.IgnoreBudget = i+1, true, true
		return e
	})
	s := newScan(t.Context(), b, &Input{Settings: DefaultSettings(), Context: 4000})
	looked := 0
	for s.pass = initialPass; s.pass != noPass; {
		s.passes++
		for _, k := range s.alive {
			if !s.same || !s.settled(k) {
				looked++
			}
		}
		s.look()
	}
	if s.passes > maxLevels+1 || looked > 4*n || len(s.active) != n {
		t.Errorf("%d passes looked at %d entries; %d are in", s.passes, looked, len(s.active))
	}
}

func TestKeysWithoutMacrosAreNotDynamic(t *testing.T) {
	for text, fixed := range map[string]bool{
		"castle": true, "/(?<=old )castle/": true, "a < b": true, "/(?<user>x)/": false, // a name that is a macro
		"{{user}}": false, "<BOT>": false, `\{x`: false, "{{": true, "": true,
	} {
		b := bigBook(1, func(int) card.Entry { return card.Entry{Key: []string{text}} })
		if (len(b.dynamic) == 0) != fixed {
			t.Errorf("%q: %d dynamic keys", text, len(b.dynamic))
		}
	}
}

func TestManyDynamicKeysAreNamedShortly(t *testing.T) {
	b := bigBook(20_000, func(i int) card.Entry { return card.Entry{Key: []string{fmt.Sprintf("{{user}} %d", i)}} })
	expand := func(s string) string { return "Bob" + s[len("{{user}}"):] }
	first := b.dynamicSet(false, expand)
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	again := b.dynamicSet(false, expand)
	runtime.ReadMemStats(&m1)
	if again != first || b.dynamicSet(true, expand) == first || b.dynamicSet(false, func(s string) string { return s }) == first {
		t.Error("sets of keys were confused")
	}
	if n := m1.TotalAlloc - m0.TotalAlloc; n > 64<<20 {
		t.Errorf("%d bytes were copied for the name of a set", n)
	}
	if nameOf(false, []string{"a\x00b"}) == nameOf(false, []string{"a", "b"}) {
		t.Error("different keys have one name")
	}
}

func TestSmallPatternsTakeTheirRoom(t *testing.T) {
	b := bigBook(20_000, func(i int) card.Entry { return card.Entry{Key: []string{fmt.Sprintf("/a%d/", i)}} })
	if n := 20_000 - b.Skipped; n < 5000 || n > 15_000 {
		t.Errorf("%d patterns are looked for", n)
	}
}

// Each pattern is looked for once in a text, however many of its literals are there.
func TestPatternsAreTriedOncePerText(t *testing.T) {
	b := bigBook(50, func(i int) card.Entry { return card.Entry{Key: []string{fmt.Sprintf("/(castle|moon|sun)(%d)?/", i)}} })
	s := newScan(t.Context(), b, &Input{Messages: []Message{{Text: "castle moon sun"}, {Text: "moon castle sun"}}, Settings: DefaultSettings(), Context: 4000})
	s.scanMessages()
	for _, k := range s.texts.hays[0].find.try {
		if n := len(s.texts.hays[0].find.try); n != 50 {
			t.Fatalf("pattern %d of %d", k, n)
		}
	}
	for i, p := range s.texts.hays[0].patterns {
		if p.any != 1 {
			t.Errorf("pattern %d was found at %+v", i, p)
		}
	}
}

// Texts that are joined for patterns cost the time of the patterns.
func TestJoinsCostTime(t *testing.T) {
	text := strings.Repeat("long text of a chat ", 500_000)
	depths := make([]int, 400)
	b := bigBook(len(depths), func(i int) card.Entry {
		depths[i] = i + 1
		e := card.Entry{Key: []string{"/^.{0,4}chat/"}}
		e.ScanDepth, e.PreventRecursion = &depths[i], true
		return e
	})
	var chat []Message
	for range depths {
		chat = append(chat, Message{Text: "chat"})
	}
	s := newScan(t.Context(), b, &Input{Messages: chat, Injections: []string{text}, Settings: DefaultSettings(), Context: 4000})
	s.patterns.allowance = jsregex.NewAllowance(patternLimit + 20*time.Millisecond)
	s.look()
	if n := len(s.texts.memo); n == 0 || n > 20 || len(s.patterns.slow) == 0 {
		t.Errorf("the pattern was run over %d texts", n)
	}
	s.texts.recurse(strings.Repeat("x", maxJoined))
	if len(s.texts.joined) > 0 {
		t.Error("joined texts grow beyond their bound")
	}
}

// Long lists of groups, tags and depths take time in proportion to their length.
func TestLongListsAreReadInOneGo(t *testing.T) {
	const n = 100_000
	var names strings.Builder
	tags := make([]string, n)
	for i := range tags {
		fmt.Fprintf(&names, "g%d, ", i)
		tags[i] = fmt.Sprintf("t%d", i)
	}
	started := time.Now()
	b := bigBook(20_000, func(i int) card.Entry {
		e := card.Entry{Constant: true, Content: "x", Position: card.AtDepth, Depth: i}
		e.IgnoreBudget = true
		if i == 0 {
			e.Group, e.CharacterTags = names.String(), append([]string{}, tags...)
		}
		return e
	})
	for i := range tags {
		tags[i] = fmt.Sprintf("other%d", i)
	}
	o, err := b.Scan(t.Context(), &Input{Settings: DefaultSettings(), Context: 4000, Character: Character{Tags: tags}})
	if err != nil || len(o.Activated) != 20_000-1 || len(o.Depth) != 20_000-1 {
		t.Fatalf("%v, %d entries at %d depths", err, len(o.Activated), len(o.Depth))
	}
	if d := time.Since(started); d > 10*time.Second { // it was minutes
		t.Errorf("it took %v", d)
	}
}
