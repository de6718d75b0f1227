package worldinfo_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
)

// world makes random books and chats out of few words, so that keys meet, nest and differ by little.
type world struct{ *rand.Rand }

func (w world) one(list ...string) string { return list[w.IntN(len(list))] }

func (w world) chance(percent int) bool { return w.IntN(100) < percent }

func (w world) word() string {
	return w.one("cat", "Cat", "concat", "cats", "dragon", "龙", "青龙", "剑", "sea", "SEA", "ΣΟΣ", "σοσ", "İz", "iz", "c++", "a", "{{user}}", "o'neil", "é", "É")
}

func (w world) text() string {
	words := make([]string, w.IntN(7))
	for i := range words {
		words[i] = w.word()
	}
	return strings.Join(words, w.one(" ", " ", "", "，", ". ", "_", "\n"))
}

func (w world) key() string {
	switch n := w.IntN(100); {
	case n < 60:
		return w.word()
	case n < 68:
		return w.word() + " " + w.word()
	case n < 71:
		return w.one(" ", "", "  cat ", "{{none}}", "/(/", "/a/b/", "\x01cat", "{{user}}:")
	}
	return w.one(
		"/cat/", "/CAT/i", "/^Bob/m", `/\x01{{user}}:[^\x01]*dragon/`, `/(?<=c)at/`, `/\bcat\b/`, `/cats?|dragon/i`, `/[剑龙]/`, `/(\w)\1/`,
		`/cat[\s\S]*sea/`, `/cat.*dragon/`, `/σ/i`, `/ΣΟΣ/`, `/σοσ/i`, `/é/i`, `/sea$/`, `/^\x01Bob/`, `/cat/y`, `/\x01/y`, `/(?:cat|sea) ?(?:x|龙)?/`,
		`/k|s/iu`, `/[^a-z]cat/`, `/a{2,}/`, `/(?<who>Bob|Alice): cat/`, `/cat\s/`, `/c\+\+/`, `/SEA/g`, `/(cat|dragon)+, /`, `/a|/`, `/./s`, `/\d/`)
}

func (w world) keys(most int) []string {
	list := make([]string, w.IntN(most+1))
	for i := range list {
		list[i] = w.key()
	}
	return list
}

func (w world) maybe(percent, below int) *int {
	if !w.chance(percent) {
		return nil
	}
	n := w.IntN(below)
	return &n
}

func (w world) tristate() *bool {
	if w.chance(70) {
		return nil
	}
	on := w.chance(50)
	return &on
}

func (w world) entry(uid int) card.Entry {
	e := card.Entry{
		ID: strconv.Itoa(uid), Content: w.text(), Disable: w.chance(5), Constant: w.chance(15),
		Position: card.Position(w.IntN(8)), Key: w.keys(3), Order: float64(w.IntN(4) * 10), Depth: w.IntN(3),
		Selective: w.chance(85), Probability: 100, UseProbability: true,
	}
	if w.chance(4) {
		e.Content = w.one("@@activate\n", "@@dont_activate\n", "@@what\n@@@activate\n", "@@activate\n@@dont_activate\n") + e.Content
	}
	if w.chance(40) {
		e.KeySecondary, e.SelectiveLogic = w.keys(3), card.Logic(w.IntN(4))
	}
	if w.chance(20) {
		e.Probability, e.UseProbability = float64(w.IntN(5)*25), w.chance(85)
	}
	e.ScanDepth, e.CaseSensitive, e.MatchWholeWords = w.maybe(20, 6), w.tristate(), w.tristate()
	if w.chance(15) {
		e.ScanTexts = card.ScanTexts{Persona: w.chance(40), Description: w.chance(40), Personality: w.chance(40), DepthPrompt: w.chance(40), Scenario: w.chance(40), CreatorNotes: w.chance(40)}
	}
	if w.chance(35) {
		e.EntryGroup = card.EntryGroup{Group: w.one("g", "h", "g,h", "h, g", "1", ",g"), GroupOverride: w.chance(15), UseGroupScoring: w.tristate()}
	}
	e.GroupWeight = float64(w.IntN(4) * 50)
	e.EntryTiming = card.EntryTiming{Sticky: w.maybe(15, 4), Cooldown: w.maybe(15, 4), Delay: w.maybe(10, 5)}
	e.EntryRecursion = card.EntryRecursion{ExcludeRecursion: w.chance(15), PreventRecursion: w.chance(15)}
	if w.chance(20) {
		e.DelayUntilRecursion = w.IntN(4)
	}
	if w.chance(8) {
		e.EntryFilter = card.EntryFilter{Exclude: w.chance(40), CharacterNames: []string{w.one("alice", "bea")}}
	}
	if w.chance(8) {
		e.CharacterTags = []string{w.one("t1", "t2")}
	}
	if w.chance(8) {
		e.Triggers = []string{w.one("normal", "swipe")}
	}
	e.EntryPlace = card.EntryPlace{Role: w.IntN(3), OutletName: w.one("", "o", "p"), IgnoreBudget: w.chance(10)}
	return e
}

func (w world) sources() []worldinfo.Source {
	var all []worldinfo.Source
	for range 1 + w.IntN(3) {
		s := worldinfo.Source{Name: w.one("x", "y", "z"), Origin: worldinfo.Origin(w.IntN(4))}
		for i := range w.IntN(9) {
			s.Entries = append(s.Entries, w.entry(i))
		}
		all = append(all, s)
	}
	return all
}

func (w world) settings() worldinfo.Settings {
	s := worldinfo.Settings{
		Depth: w.IntN(6), BudgetPercent: 100, Recursive: w.chance(60), IncludeNames: w.chance(70), CaseSensitive: w.chance(20),
		MatchWholeWords: w.chance(50), UseGroupScoring: w.chance(30), Strategy: worldinfo.Strategy(w.IntN(3)),
	}
	if w.chance(40) {
		s.BudgetCap = 1 + w.IntN(60)
	}
	if w.chance(30) {
		s.MinActivations, s.MinActivationsDepth = 1+w.IntN(5), w.IntN(6)
	} else if w.chance(20) {
		s.MaxRecursionSteps = 1 + w.IntN(3)
	}
	return s
}

func (w world) input() *worldinfo.Input {
	in := &worldinfo.Input{
		Settings: w.settings(), Context: 2000, Trigger: w.one("", "normal", "swipe"), Injections: nil, Forced: map[string]bool{},
		Texts:     worldinfo.Texts{Persona: w.text(), Description: w.text(), Personality: w.text(), DepthPrompt: w.text(), Scenario: w.text(), CreatorNotes: w.text()},
		Character: worldinfo.Character{File: w.one("alice", "bea")},
	}
	if w.chance(60) {
		in.Character.Tags = []string{w.one("t1", "t3")}
	}
	if w.chance(25) {
		in.Injections = append(in.Injections, w.text())
	}
	if w.chance(10) {
		in.Forced[w.one("x", "y", "z")+"."+strconv.Itoa(w.IntN(8))] = true
	}
	user := w.one("Bob", "Σ", "cat")
	in.Expand = strings.NewReplacer("{{user}}", user, "{{none}}", "").Replace
	in.Count = func(s string) int { return (len(s)*100 + 334) / 335 }
	return in
}

// explained lists the verdicts about entries that are in one result and not in the other.
func explained(o, want *worldinfo.Output, sources []worldinfo.Source) string {
	var b strings.Builder
	for _, v := range o.Verdicts {
		if slices.Contains(o.Activated, v.ID) == slices.Contains(want.Activated, v.ID) {
			continue
		}
		for _, s := range sources {
			for i := range s.Entries {
				if e := &s.Entries[i]; s.Name+"."+e.ID == v.ID {
					fmt.Fprintf(&b, "%s\n\t%s\n", asJSON(v), asJSON(e))
				}
			}
		}
	}
	return b.String()
}

// compareWithModel scans a random chat as it grows, is rolled back and goes on, with and without a cache.
func compareWithModel(t *testing.T, seed uint64, cache *framework.Cache) (scans int, ok bool) {
	w := world{rand.New(rand.NewPCG(seed, 47))}
	sources, in := w.sources(), w.input()
	book := worldinfo.Compile(sources...)
	var chat []worldinfo.Message
	for i := range 1 + w.IntN(7) {
		chat = append(chat, worldinfo.Message{Name: w.one("Bob", "Alice"), Text: w.text(), User: i%2 == 0})
	}
	for turn := range 1 + w.IntN(4) {
		in.Messages = chat[:w.IntN(len(chat)+1)]
		if in.Cache = nil; w.chance(50) {
			in.Cache = cache.Memo()
		}
		in.Explain = w.chance(20)
		rolls := func() func() float64 {
			r := rand.New(rand.NewPCG(seed, uint64(turn)))
			return func() float64 { return float64(r.IntN(101)) / 101 }
		}
		in.Rand = rolls()
		got, err := book.Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		timed := in.Timed
		in.Rand = rolls()
		want := modelScan(in, sources, false)
		scans++
		if diffs := unequal(got, want); len(diffs) > 0 {
			in.Explain, in.Timed, in.Rand, in.Cache = true, timed, rolls(), nil
			again, _ := book.Scan(t.Context(), in)
			t.Errorf("seed %d, turn %d:\n%s\ninput %s\nverdicts:\n%s", seed, turn, strings.Join(diffs, "\n"),
				asJSON([]any{in.Messages, in.Settings, in.Texts, in.Injections, timed}), explained(again, want, sources))
			return scans, false
		}
		if len(got.Slow) > 0 {
			t.Errorf("seed %d: slow patterns %q", seed, got.Slow)
		}
		in.Timed = got.Timed
	}
	return scans, true
}

// The engine and the model agree about random books and chats: 1,000 of them, 100,000 with NODEST_LONG=1.
func TestScansMatchTheModel(t *testing.T) {
	books, first := 1000, uint64(1)
	if share, err := strconv.ParseFloat(os.Getenv("NODEST_LONG"), 64); err == nil {
		books = max(books, int(100_000*share))
	}
	if n, err := strconv.ParseUint(os.Getenv("NODEST_SEED"), 10, 64); err == nil {
		first = n
	}
	cache := framework.NewCache(4 << 20) // small: results are lost now and then
	var next, scans, failed atomic.Int64
	began := time.Now()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(books) && failed.Load() < 5; i = next.Add(1) - 1 {
				n, ok := compareWithModel(t, first+uint64(i), cache)
				scans.Add(int64(n))
				if !ok {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d random books and chats from seed %d on, %d scans, %d differ, %v", books, first, scans.Load(), failed.Load(), time.Since(began).Round(time.Millisecond))
}
