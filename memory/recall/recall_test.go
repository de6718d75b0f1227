package recall_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"nodest/internal/index"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// sessionUnits makes the turns of one session: "Ann: text" or "Reed: text", an hour
// apart.
func sessionUnits(session int, day string, lines ...string) []recall.Unit {
	at, err := time.Parse("2006-01-02", day)
	if err != nil {
		panic(err)
	}
	var units []recall.Unit
	for i, line := range lines {
		speaker, text, _ := strings.Cut(line, ": ")
		role := lang.RoleCharacter
		if speaker == "Ann" {
			role = lang.RoleUser
		}
		units = append(units, recall.Unit{
			ID: fmt.Sprintf("%d.%d", session, i), Layer: recall.Exchange, Conversation: "c", Session: session, Order: int64(session*100 + i),
			Speaker: role, Text: text, At: at.Add(time.Duration(i) * time.Hour), Importance: 0.5,
		})
	}
	return units
}

func fact(id, text string, change func(*recall.Unit)) recall.Unit {
	u := recall.Unit{ID: id, Version: 1, Layer: recall.Fact, Text: text, At: noon.AddDate(0, -2, 0), Importance: 0.5}
	if change != nil {
		change(&u)
	}
	return u
}

func indexOf(t testing.TB, units ...recall.Unit) *index.Index {
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

func find(t testing.TB, x *index.Index, q recall.Query) []recall.Hit {
	t.Helper()
	return findNear(t, x, q, recall.Vectors{})
}

func findNear(t testing.TB, x *index.Index, q recall.Query, near recall.Vectors) []recall.Hit {
	t.Helper()
	if q.Names == (lang.Names{}) {
		q.Names = lang.Names{User: "Ann", Character: "Reed"}
	}
	if q.Now.IsZero() {
		q.Now = noon
	}
	hits, _, err := recall.Find(t.Context(), x, &q, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// noon is a Wednesday.
var noon = time.Date(2023, 5, 10, 12, 0, 0, 0, time.UTC)

func foundIDs(hits []recall.Hit) []string {
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
			hits := find(t, x, recall.Query{Text: c.query})
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
	if got := foundIDs(find(t, indexOf(t, sampleUnits...), recall.Query{Text: message})); len(got) == 0 || got[0] != "2.2" && got[0] != "2.0" {
		t.Errorf("found %v", got)
	}
}

// byDay are questions about a day of sampleUnits.
var byDay = []string{"What did we talk about on April 20th?", "在4月20号我们聊了什么？", "2023-04-20?"}

func TestRecallByDay(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sampleUnits...)
	for _, query := range byDay {
		hits := find(t, x, recall.Query{Text: query, Limit: 4, Mode: recall.Search})
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
		hits := find(t, x, recall.Query{Text: query, Limit: 4, Mode: recall.Search})
		if found := foundIDs(hits); !slices.Contains(found, "2.0") {
			t.Errorf("%q finds %v", query, found)
		}
	}
}

func TestRecallOfNothingRelevantIsEmpty(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sampleUnits...)
	for _, query := range []string{"quantum chromodynamics", "", "？！", "the of and", "火山喷发"} {
		if hits := find(t, x, recall.Query{Text: query}); len(hits) != 0 {
			t.Errorf("%q finds %v", query, foundIDs(hits))
		}
	}
	if hits := find(t, index.New(), recall.Query{Text: "tea"}); len(hits) != 0 {
		t.Errorf("an empty scope gives %v", foundIDs(hits))
	}
}

func TestRecallKeepsItsBudget(t *testing.T) {
	t.Parallel()
	var units []recall.Unit
	for i := range 40 {
		units = append(units, fact(fmt.Sprint("f", i), fmt.Sprintf("Lighthouse number %d stands on a rock of its own, %s.", i, strings.Repeat(fmt.Sprintf("word%d ", i), 12)), nil))
	}
	long := fact("long", "Of the lighthouse much can be told. "+strings.Repeat("Other things are told as well. ", 100), nil)
	x := indexOf(t, append(units, long)...)
	for _, q := range []recall.Query{{Text: "lighthouse"}, {Text: "lighthouse", Limit: 3}, {Text: "lighthouse", Characters: 200}, {Text: "much told of the lighthouse"}} {
		hits, length := find(t, x, q), 0
		for _, h := range hits {
			length += utf8.RuneCountInString(h.Shown())
		}
		if limit, room := max(q.Limit, 10*min(1, 10-q.Limit)), q.Characters; len(hits) == 0 || q.Limit > 0 && len(hits) > q.Limit || len(hits) > limit || room > 0 && length > room || length > 1500 {
			t.Errorf("%+v: %d hits of %d characters", q, len(hits), length)
		}
	}
	hits := find(t, x, recall.Query{Text: "much told of the lighthouse"})
	at := slices.IndexFunc(hits, func(h recall.Hit) bool { return h.ID == "long" })
	if at < 0 || !strings.Contains(hits[at].Shown(), "Of the lighthouse much can be told.") || utf8.RuneCountInString(hits[at].Shown()) > 400 {
		t.Errorf("the long one is shown as %q", hits[max(0, at)].Shown())
	}
	if all := find(t, x, recall.Query{Text: "lighthouse", Limit: 100, Mode: recall.Ranked}); len(all) != 41 {
		t.Errorf("everything is %d hits", len(all))
	}
}

func TestEqualTextsTakeOnePlace(t *testing.T) {
	t.Parallel()
	older := fact("older", "Ann likes oolong tea from Wuyi.", func(u *recall.Unit) { u.Hash = "h" })
	newer := fact("newer", "Ann likes oolong tea from Wuyi!", func(u *recall.Unit) { u.Hash, u.At = "h", noon })
	other := fact("other", "Reed keeps his tea in a tin.", nil)
	if got := foundIDs(find(t, indexOf(t, older, newer, other), recall.Query{Text: "tea"})); !slices.Contains(got, "newer") || slices.Contains(got, "older") || len(got) != 2 {
		t.Errorf("found %v", got)
	}
	source := sampleUnits[4]
	told := fact("told", "Ann's sister Lucy moved to Bergen in April.", func(u *recall.Unit) { u.Sources = []recall.Source{{source.ID}} })
	hits := find(t, indexOf(t, source, told), recall.Query{Text: "Where did Lucy move?"})
	if len(hits) != 1 || hits[0].ID != "told" || len(hits[0].Sources) != 1 || hits[0].Sources[0].ID != source.ID {
		t.Errorf("a fact and its source are %+v", hits)
	}
	// A rule may have misread its source, so the source is recalled too, even if both
	// have the same text.
	for _, text := range []string{told.Text, source.Text} {
		read := fact("read", text, func(u *recall.Unit) { u.Sources, u.ByRule, u.At = []recall.Source{{source.ID}}, true, source.At })
		read.Hash = source.Hash
		got := foundIDs(find(t, indexOf(t, source, read), recall.Query{Text: "Where did Lucy move?"}))
		if len(got) != 2 || !slices.Contains(got, source.ID) || !slices.Contains(got, "read") {
			t.Errorf("a rule's fact and its source are %v", got)
		}
	}
}

func TestPinnedFactsCompete(t *testing.T) {
	t.Parallel()
	units := append(slices.Clone(sampleUnits), fact("pinned", "Ann is allergic to nuts.", func(u *recall.Unit) { u.Pinned = true }))
	if got := foundIDs(find(t, indexOf(t, units...), recall.Query{Text: "What did Ann paint at the lake?"})); slices.Contains(got, "pinned") || !slices.Contains(got, "1.2") {
		t.Errorf("for something else: %v", got)
	}
	loose := fact("loose", "Ann paints boats on Sunday mornings.", nil)
	pinned := fact("pinned", "Ann paints boats on Monday mornings.", func(u *recall.Unit) { u.Pinned = true })
	if got := foundIDs(find(t, indexOf(t, loose, pinned), recall.Query{Text: "Which mornings does Ann paint boats?"})); len(got) == 0 || got[0] != "pinned" {
		t.Errorf("of two that fit alike: %v", got)
	}
}

func TestRecencyBreaksTiesOnly(t *testing.T) {
	t.Parallel()
	old := fact("old", "Ann works as a potter in Bergen.", func(u *recall.Unit) { u.At = noon.AddDate(-2, 0, 0) })
	fresh := fact("fresh", "Ann works as a potter in Oslo.", func(u *recall.Unit) { u.At = noon })
	if got := foundIDs(find(t, indexOf(t, old, fresh), recall.Query{Text: "Where does Ann work now?"})); got[0] != "fresh" {
		t.Errorf("of two that fit alike %v", got)
	}
	vague := fact("vague", "Ann spoke of her work today.", func(u *recall.Unit) { u.At = noon })
	exact := fact("exact", "The glaze on Ann's first pot was cobalt blue.", func(u *recall.Unit) { u.At = noon.AddDate(-2, 0, 0) })
	if got := foundIDs(find(t, indexOf(t, vague, exact), recall.Query{Text: "Which glaze was on the first pot in her work?"})); got[0] != "exact" {
		t.Errorf("an old exact answer stands behind: %v", got)
	}
}

func TestFilteredUnitsAreNotRecalled(t *testing.T) {
	t.Parallel()
	units := append(slices.Clone(sampleUnits), fact("f", "Ann painted a sunrise at the lake.", func(u *recall.Unit) { u.Pinned = true }))
	units[2].Conversation = "other"
	x := indexOf(t, units...)
	only := recall.Filter{Layers: []recall.Layer{recall.Exchange}, Conversation: "c"}
	for _, mode := range []recall.Mode{recall.Ranked, recall.Search} {
		if got := foundIDs(find(t, x, recall.Query{Text: "sunrise at the lake", Mode: mode, Only: only})); slices.Contains(got, "f") || slices.Contains(got, "1.2") || len(got) == 0 {
			t.Errorf("found %v", got)
		}
	}
}

// withVectors embeds units with the offline embedder.
func withVectors(t testing.TB, units []recall.Unit) []recall.Unit {
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
	if hits := find(t, x, recall.Query{Text: text}); len(hits) != 0 {
		t.Errorf("words alone find %v", foundIDs(hits))
	}
	if hits := findNear(t, x, recall.Query{Text: text}, recall.Vectors{Model: vector(t, llm.Query, text)}); len(hits) == 0 || hits[0].ID != "1.2" {
		t.Errorf("with vectors %v", foundIDs(hits))
	}
	// A unit without a vector is found by its words, even if other units have vectors.
	text = "Did you promise to visit her when we sail north?"
	if hits := findNear(t, x, recall.Query{Text: text}, recall.Vectors{Model: vector(t, llm.Query, text)}); len(hits) == 0 || hits[0].ID != "2.3" {
		t.Errorf("not embedded: %v", foundIDs(hits))
	}
	// A vector of another model counts as missing, not as zero.
	other := index.Vector{Model: "other", Values: make([]float32, 8)}
	if a, b := foundIDs(find(t, x, recall.Query{Text: text})), foundIDs(findNear(t, x, recall.Query{Text: text}, recall.Vectors{Model: other})); !slices.Equal(a, b) {
		t.Errorf("a vector of another model changes %v to %v", a, b)
	}
}

func TestScoresAreExplained(t *testing.T) {
	t.Parallel()
	hits := find(t, indexOf(t, sampleUnits...), recall.Query{Text: "What did Ann paint at the lake?", Mode: recall.Ranked})
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
		x := indexOf(t, fact("a", one, nil), fact("b", two, func(u *recall.Unit) { u.Pinned = true }))
		seen, length := map[string]bool{}, 0
		for _, h := range find(t, x, recall.Query{Text: query}) {
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
	var units []recall.Unit
	zipf := rand.NewZipf(r, 1.1, 8, 20_000)
	for i := range 10_000 {
		words := make([]string, 15+r.IntN(20))
		for j := range words {
			words[j] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		u := fact(fmt.Sprint(i), strings.Join(words, " "), func(u *recall.Unit) {
			u.Layer, u.Session, u.Order, u.Speaker = recall.Exchange, i/25, int64(i), []lang.Role{lang.RoleUser, lang.RoleCharacter}[i%2]
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
				q, near := recall.Query{Text: fmt.Sprintf("When did Ann w1 w3 w%d w%d w2000 w9 w77?", i%50, i%300)}, recall.Vectors{}
				if c.vectors {
					near.Model = vector(b, llm.Passage, units[i%len(units)].Text)
				}
				findNear(b, x, q, near)
			}
		})
	}
}
