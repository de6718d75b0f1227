package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"nodest/index"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/lang"
)

// sessionUnits makes the turns of one session: "Ann: text" or "Reed: text", an hour
// apart.
func sessionUnits(session int, day string, lines ...string) []memory.Unit {
	at, err := time.Parse("2006-01-02", day)
	if err != nil {
		panic(err)
	}
	var units []memory.Unit
	for i, line := range lines {
		speaker, text, _ := strings.Cut(line, ": ")
		role := lang.RoleCharacter
		if speaker == "Ann" {
			role = lang.RoleUser
		}
		units = append(units, memory.Unit{
			ID: fmt.Sprintf("%d.%d", session, i), Layer: memory.Exchange, Conversation: "c", Session: session, Order: int64(session*100 + i),
			Speaker: role, Text: text, At: at.Add(time.Duration(i) * time.Hour), Importance: 0.5,
		})
	}
	return units
}

func fact(id, text string, change func(*memory.Unit)) memory.Unit {
	u := memory.Unit{ID: id, Version: 1, Layer: memory.Fact, Text: text, At: noon.AddDate(0, -2, 0), Importance: 0.5}
	if change != nil {
		change(&u)
	}
	return u
}

func indexOf(t testing.TB, units ...memory.Unit) *index.Index {
	t.Helper()
	units = slices.Clone(units) // which tests share
	x := index.New()
	rows := make([]index.Row, len(units))
	for i := range units {
		units[i].Terms = index.Join(units[i].Text)
		rows[i] = units[i].Row()
	}
	if err := x.Apply(t.Context(), rows, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

func recall(t testing.TB, x *index.Index, q memory.Ask) []memory.Hit {
	t.Helper()
	if q.Names == (lang.Names{}) {
		q.Names = lang.Names{User: "Ann", Character: "Reed"}
	}
	if q.Now.IsZero() {
		q.Now = noon
	}
	hits, _, err := memory.Recall(t.Context(), x, q)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func foundIDs(hits []memory.Hit) []string {
	list := []string{}
	for _, h := range hits {
		list = append(list, h.ID)
	}
	return list
}

var sampleUnits = slices.Concat(
	sessionUnits(1, "2023-04-02", "Ann: Good morning, captain!", "Reed: What did you paint at the lake?", "Ann: A sunrise, with much orange and a little red in it.", "Reed: Wonderful. I was mending the sails all day."),
	sessionUnits(2, "2023-04-20", "Ann: My sister Lucy moved to Bergen last week.", "Reed: How many cats does she have?", "Ann: Three, and a very old dog called Biscuit.", "Reed: I promise to visit her when we sail north."),
	sessionUnits(3, "2023-05-04", "Ann: 我最喜欢的茶是乌龙茶。", "Reed: 我更喜欢喝咖啡。", "Ann: 昨天我看了《银河补习班》，很感动。", "Reed: 下次一起看吧。"),
)

func TestRecallFindsWhatWasSaid(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sampleUnits...)
	for _, c := range []struct{ name, query, want string }{
		{"the answer behind the question", "What did Ann paint at the lake?", "1.2"},
		{"the one who is meant", "What was Reed doing with the sails?", "1.3"},
		{"a number is sought", "How many cats does Ann's sister have?", "2.2"},
		{"a place is sought", "Where did Lucy move?", "2.0"},
		{"Chinese", "我最喜欢喝什么茶？", "3.0"},
		{"a title is sought", "哪部电影让我很感动，叫什么？", "3.2"},
		{"you are the character", "What did you promise?", "2.3"},
		{"inflected otherwise", "visiting", "2.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hits := recall(t, x, memory.Ask{Text: c.query})
			if len(hits) == 0 || hits[0].ID != c.want {
				t.Errorf("%q finds %v, want %s first", c.query, foundIDs(hits), c.want)
			}
		})
	}
}

func TestALongMessageRecallsWhatItMentions(t *testing.T) {
	t.Parallel()
	message := "It rained all morning, so I stayed at home, sorted old letters, baked a cake that fell flat, quarrelled with the neighbour about his hedge" +
		" and then, out of nowhere, wondered how Biscuit is doing up there in Bergen these days."
	if got := foundIDs(recall(t, indexOf(t, sampleUnits...), memory.Ask{Text: message})); len(got) == 0 || got[0] != "2.2" && got[0] != "2.0" {
		t.Errorf("found %v", got)
	}
}

// byDay are questions about a day of sampleUnits.
var byDay = []string{"What did we talk about on April 20th?", "在4月20号我们聊了什么？", "2023-04-20?"}

func TestRecallByDay(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sampleUnits...)
	for _, query := range byDay {
		hits := recall(t, x, memory.Ask{Text: query, Limit: 4, Search: true})
		for _, h := range hits {
			if !strings.HasPrefix(h.ID, "2.") {
				t.Errorf("%q finds %v", query, foundIDs(hits))
				break
			}
		}
		if len(hits) != 4 {
			t.Errorf("%q finds %v", query, foundIDs(hits))
		}
	}
}

// In a large memory the rows of a day are found too, where words find others.
func TestRecallByDayInALargeMemory(t *testing.T) {
	t.Parallel()
	units := slices.Concat(sampleUnits, sessionUnits(9, "2020-12-01", "Ann: I talk to you.", "Reed: 我们聊天吧。", "Ann: 2023 is far away."))
	for session := 10; len(units) <= 17_000; session++ {
		units = append(units, sessionUnits(session, "2020-12-01", slices.Repeat([]string{"Ann: Waves."}, 10)...)...)
	}
	x := indexOf(t, units...)
	for _, query := range byDay {
		hits := recall(t, x, memory.Ask{Text: query, Limit: 4, Search: true})
		if found := foundIDs(hits); !slices.Contains(found, "2.0") {
			t.Errorf("%q finds %v", query, found)
		}
	}
}

func TestRecallOfNothingRelevantIsEmpty(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sampleUnits...)
	for _, query := range []string{"quantum chromodynamics", "", "？！", "the of and", "火山喷发"} {
		if hits := recall(t, x, memory.Ask{Text: query}); len(hits) != 0 {
			t.Errorf("%q finds %v", query, foundIDs(hits))
		}
	}
	if hits := recall(t, index.New(), memory.Ask{Text: "tea"}); len(hits) != 0 {
		t.Errorf("an empty scope gives %v", foundIDs(hits))
	}
}

func TestRecallKeepsItsBudget(t *testing.T) {
	t.Parallel()
	var units []memory.Unit
	for i := range 40 {
		units = append(units, fact(fmt.Sprint("f", i), fmt.Sprintf("Lighthouse number %d stands on a rock of its own, %s.", i, strings.Repeat(fmt.Sprintf("word%d ", i), 12)), nil))
	}
	long := fact("long", "Of the lighthouse much can be told. "+strings.Repeat("Other things are told as well. ", 100), nil)
	x := indexOf(t, append(units, long)...)
	for _, q := range []memory.Ask{{Text: "lighthouse"}, {Text: "lighthouse", Limit: 3}, {Text: "lighthouse", Characters: 200}, {Text: "much told of the lighthouse"}} {
		hits, length := recall(t, x, q), 0
		for _, h := range hits {
			length += utf8.RuneCountInString(h.Shown())
		}
		if limit, room := max(q.Limit, 10*min(1, 10-q.Limit)), q.Characters; len(hits) == 0 || q.Limit > 0 && len(hits) > q.Limit || len(hits) > limit || room > 0 && length > room || length > 1500 {
			t.Errorf("%+v: %d hits of %d characters", q, len(hits), length)
		}
	}
	hits := recall(t, x, memory.Ask{Text: "much told of the lighthouse"})
	at := slices.IndexFunc(hits, func(h memory.Hit) bool { return h.ID == "long" })
	if at < 0 || !strings.Contains(hits[at].Shown(), "Of the lighthouse much can be told.") || utf8.RuneCountInString(hits[at].Shown()) > 400 {
		t.Errorf("the long one is shown as %q", hits[max(0, at)].Shown())
	}
	if all := recall(t, x, memory.Ask{Text: "lighthouse", Everything: true, Limit: 100}); len(all) != 41 {
		t.Errorf("everything is %d hits", len(all))
	}
}

func TestEqualTextsTakeOnePlace(t *testing.T) {
	t.Parallel()
	older := fact("older", "Ann likes oolong tea from Wuyi.", func(u *memory.Unit) { u.Hash = "h" })
	newer := fact("newer", "Ann likes oolong tea from Wuyi!", func(u *memory.Unit) { u.Hash, u.At = "h", noon })
	other := fact("other", "Reed keeps his tea in a tin.", nil)
	if got := foundIDs(recall(t, indexOf(t, older, newer, other), memory.Ask{Text: "tea"})); !slices.Contains(got, "newer") || slices.Contains(got, "older") || len(got) != 2 {
		t.Errorf("found %v", got)
	}
	source := sampleUnits[4]
	told := fact("told", "Ann's sister Lucy moved to Bergen in April.", func(u *memory.Unit) { u.Sources = []string{source.ID} })
	hits := recall(t, indexOf(t, source, told), memory.Ask{Text: "Where did Lucy move?"})
	if len(hits) != 1 || hits[0].ID != "told" || len(hits[0].Sources) != 1 || hits[0].Sources[0].ID != source.ID {
		t.Errorf("a fact and its source are %+v", hits)
	}
	// A rule may have misread its source, so the source is recalled too, even if both
	// have the same text.
	for _, text := range []string{told.Text, source.Text} {
		read := fact("read", text, func(u *memory.Unit) { u.Sources, u.Origin, u.At = []string{source.ID}, memory.ByRule, source.At })
		read.Hash = source.Hash
		got := foundIDs(recall(t, indexOf(t, source, read), memory.Ask{Text: "Where did Lucy move?"}))
		if len(got) != 2 || !slices.Contains(got, source.ID) || !slices.Contains(got, "read") {
			t.Errorf("a rule's fact and its source are %v", got)
		}
	}
}

func TestPinnedFactsCompete(t *testing.T) {
	t.Parallel()
	units := append(slices.Clone(sampleUnits), fact("pinned", "Ann is allergic to nuts.", func(u *memory.Unit) { u.Pinned = true }))
	if got := foundIDs(recall(t, indexOf(t, units...), memory.Ask{Text: "What did Ann paint at the lake?"})); slices.Contains(got, "pinned") || !slices.Contains(got, "1.2") {
		t.Errorf("for something else: %v", got)
	}
	loose := fact("loose", "Ann paints boats on Sunday mornings.", nil)
	pinned := fact("pinned", "Ann paints boats on Monday mornings.", func(u *memory.Unit) { u.Pinned = true })
	if got := foundIDs(recall(t, indexOf(t, loose, pinned), memory.Ask{Text: "Which mornings does Ann paint boats?"})); len(got) == 0 || got[0] != "pinned" {
		t.Errorf("of two that fit alike: %v", got)
	}
}

func TestRecencyBreaksTiesOnly(t *testing.T) {
	t.Parallel()
	old := fact("old", "Ann works as a potter in Bergen.", func(u *memory.Unit) { u.At = noon.AddDate(-2, 0, 0) })
	fresh := fact("fresh", "Ann works as a potter in Oslo.", func(u *memory.Unit) { u.At = noon })
	if got := foundIDs(recall(t, indexOf(t, old, fresh), memory.Ask{Text: "Where does Ann work now?"})); got[0] != "fresh" {
		t.Errorf("of two that fit alike %v", got)
	}
	vague := fact("vague", "Ann spoke of her work today.", func(u *memory.Unit) { u.At = noon })
	exact := fact("exact", "The glaze on Ann's first pot was cobalt blue.", func(u *memory.Unit) { u.At = noon.AddDate(-2, 0, 0) })
	if got := foundIDs(recall(t, indexOf(t, vague, exact), memory.Ask{Text: "Which glaze was on the first pot in her work?"})); got[0] != "exact" {
		t.Errorf("an old exact answer stands behind: %v", got)
	}
}

func TestSkippedUnitsAreNotRecalled(t *testing.T) {
	t.Parallel()
	x := indexOf(t, append(slices.Clone(sampleUnits), fact("f", "Ann painted a sunrise at the lake.", func(u *memory.Unit) { u.Pinned = true }))...)
	skip := func(u *memory.Unit) bool { return u.Layer == memory.Fact || u.ID == "1.2" }
	for _, everything := range []bool{true, false} {
		if got := foundIDs(recall(t, x, memory.Ask{Text: "sunrise at the lake", Skip: skip, Everything: everything, Search: !everything})); slices.Contains(got, "f") || slices.Contains(got, "1.2") || len(got) == 0 {
			t.Errorf("found %v", got)
		}
	}
}

// withVectors embeds units with the offline embedder.
func withVectors(t testing.TB, units []memory.Unit) []memory.Unit {
	units = slices.Clone(units)
	for i := range units {
		v := vector(t, llm.Passage, units[i].Text)
		units[i].Vectors = []index.Kept{{Model: v.Model, Packed: index.Pack(v.Values)}}
	}
	return units
}

func vector(t testing.TB, task llm.EmbedTask, text string) index.Vector {
	t.Helper()
	e, err := offline.Embedder{}.Embed(context.Background(), task, []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return index.Vector{Model: e.Model, Values: e.Vectors[0]}
}

func TestVectorsAddHits(t *testing.T) {
	t.Parallel()
	units := withVectors(t, sampleUnits)
	units[7].Vectors = nil // not embedded yet
	x := indexOf(t, units...)
	text := "sunrisee orangee"
	if hits := recall(t, x, memory.Ask{Text: text}); len(hits) != 0 {
		t.Errorf("words alone find %v", foundIDs(hits))
	}
	if hits := recall(t, x, memory.Ask{Text: text, Vector: vector(t, llm.Query, text)}); len(hits) == 0 || hits[0].ID != "1.2" {
		t.Errorf("with vectors %v", foundIDs(hits))
	}
	// A unit without a vector is found by its words, even if other units have vectors.
	text = "Did you promise to visit her when we sail north?"
	if hits := recall(t, x, memory.Ask{Text: text, Vector: vector(t, llm.Query, text)}); len(hits) == 0 || hits[0].ID != "2.3" {
		t.Errorf("not embedded: %v", foundIDs(hits))
	}
	// A vector of another model counts as missing, not as zero.
	other := index.Vector{Model: "other", Values: make([]float32, 8)}
	if a, b := foundIDs(recall(t, x, memory.Ask{Text: text})), foundIDs(recall(t, x, memory.Ask{Text: text, Vector: other})); !slices.Equal(a, b) {
		t.Errorf("a vector of another model changes %v to %v", a, b)
	}
}

func TestScoresAreExplained(t *testing.T) {
	t.Parallel()
	hits := recall(t, indexOf(t, sampleUnits...), memory.Ask{Text: "What did Ann paint at the lake?", Everything: true})
	for i, h := range hits {
		if h.Score < 0 || h.Score > 1 || i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("score %d is %v", i, h.Score)
		}
	}
	if why := hits[0].Signals; why["answer"] == 0 || why["speaker"] == 0 || why["day"] != 0 {
		t.Errorf("because of %v", why)
	}
}

// FuzzRecall checks the guarantees of Recall for any text in units and query.
func FuzzRecall(f *testing.F) {
	f.Add("What did Ann paint?", "Ann: a sunrise", "昨天 tea")
	f.Add("5月4号", "\xff?", strings.Repeat("long. ", 300))
	f.Fuzz(func(t *testing.T, query, one, two string) {
		x := indexOf(t, fact("a", one, nil), fact("b", two, func(u *memory.Unit) { u.Pinned = true }))
		seen, length := map[string]bool{}, 0
		for _, h := range recall(t, x, memory.Ask{Text: query}) {
			if seen[h.ID] {
				t.Errorf("%s comes twice", h.ID)
			}
			seen[h.ID] = true
			length += utf8.RuneCountInString(h.Shown())
		}
		if length > 1500 {
			t.Errorf("%d characters", length)
		}
	})
}

func BenchmarkRecall10000(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	var units []memory.Unit
	zipf := rand.NewZipf(r, 1.1, 8, 20_000)
	for i := range 10_000 {
		words := make([]string, 15+r.IntN(20))
		for j := range words {
			words[j] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		u := fact(fmt.Sprint(i), strings.Join(words, " "), func(u *memory.Unit) {
			u.Layer, u.Session, u.Order, u.Speaker = memory.Exchange, i/25, int64(i), []lang.Role{lang.RoleUser, lang.RoleCharacter}[i%2]
		})
		units = append(units, u)
	}
	for _, c := range []struct {
		name    string
		vectors bool
	}{{"words", false}, {"vectors", true}} {
		if c.vectors {
			units = withVectors(b, units)
		}
		x := indexOf(b, units...)
		b.Run(c.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				q := memory.Ask{Text: fmt.Sprintf("When did Ann w1 w3 w%d w%d w2000 w9 w77?", i%50, i%300), Now: noon}
				if c.vectors {
					q.Vector = vector(b, llm.Passage, units[i%len(units)].Text)
				}
				recall(b, x, q)
			}
		})
	}
}
