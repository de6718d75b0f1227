package index_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nodest/internal/index"
)

// row returns a row of a group, at its place in the group.
func row(id string, group string, order int, text string) index.Row {
	return index.Row{ID: id, Version: 1, Group: group, Order: int64(order), Terms: index.Join(text), Data: id, Size: len(text)}
}

func filled(t testing.TB, rows ...index.Row) *index.Index {
	t.Helper()
	x := index.New()
	if err := x.Apply(t.Context(), rows, nil); err != nil {
		t.Fatal(err)
	}
	return x
}

// ranked returns the ids with a score above 0, the best first.
func ranked(x *index.Index, query string, column func(*index.Score) float32) []string {
	type scored struct {
		id    string
		score float32
	}
	var found []scored
	_ = x.View(func(v index.View) error {
		var terms []index.Term
		for _, t := range index.Terms(query) {
			terms = append(terms, index.Term{Text: t, Weight: 1})
		}
		for i, s := range match(v, terms).Scores {
			if d := v.Held(i); d != nil && column(&s) > 0 {
				found = append(found, scored{d.(string), column(&s)})
			}
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b scored) int {
		if a.score != b.score {
			return map[bool]int{true: -1, false: 1}[a.score > b.score]
		}
		return strings.Compare(a.id, b.id)
	})
	ids := []string{}
	for _, f := range found {
		ids = append(ids, f.id)
	}
	return ids
}

func own(s *index.Score) float32     { return s.Row }
func next(s *index.Score) float32    { return s.Near }
func group(s *index.Score) float32   { return s.Group }
func covered(s *index.Score) float32 { return s.Covered }

func TestWordsFindRows(t *testing.T) {
	x := filled(t,
		row("bread", "s1", 1, "She bakes bread every Sunday"), row("tea", "s1", 2, "他喜欢喝乌龙茶"),
		row("long", "s2", 1, "bread "+strings.Repeat("and a great many other words ", 20)), row("twice", "s2", 2, "bread with bread"))
	for _, c := range []struct {
		name, query string
		want        []string
	}{
		{"a rarer word counts more, a long row less", "baking bread", []string{"bread", "twice", "long"}},
		{"Chinese", "乌龙茶", []string{"tea"}},
		{"a pair that is not in the text finds nothing", "红茶", []string{}},
		{"unknown words", "zebra", []string{}},
		{"stop words alone", "the of and", []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ranked(x, c.query, own); !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}

func TestNeighboursAndGroupsRaiseARowsScore(t *testing.T) {
	x := filled(t, // put out of order
		row("c", "s1", 30, "A sunrise!"), row("a", "s1", 10, "Hello there"), row("b", "s1", 20, "What did you paint?"),
		row("d", "s2", 10, "Nothing of the kind"), row("alone", "", 0, "unrelated"))
	if got, want := ranked(x, "paint", next), []string{"a", "b", "c"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("near %v, want %v", got, want)
	}
	if got, want := ranked(x, "paint", group), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("group %v, want %v", got, want)
	}
	if got := ranked(x, "unrelated", next); !slices.Equal(got, []string{"alone"}) {
		t.Errorf("a row that stands alone has neighbours: %v", got)
	}
}

func TestRowsAreReplacedByVersionAndRemoved(t *testing.T) {
	x := filled(t, row("a", "s", 1, "old words"), row("b", "s", 2, "unrelated"))
	newer, older := row("a", "s", 1, "new words"), row("a", "s", 1, "ancient words")
	newer.Version, older.Version = 3, 2
	for _, r := range []index.Row{newer, older} {
		if err := x.Apply(t.Context(), []index.Row{r}, []string{"unknown"}); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]int{"new": 1, "old": 0, "ancient": 0, "unrelated": 1} {
		if got := len(ranked(x, query, own)); got != want {
			t.Errorf("%q finds %d rows, want %d", query, got, want)
		}
	}
	if err := x.Apply(t.Context(), nil, []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	if x.Len() != 0 || len(ranked(x, "new unrelated", own)) != 0 {
		t.Errorf("%d rows left", x.Len())
	}
}

// An index equals a new one made of the remaining rows, whatever changes led to it.
func TestChangesLeadToTheSameIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("tea bread cat dog sea ship lamp moon 茶壶 月亮 大海")
	rows := map[string]index.Row{}
	x := index.New()
	for step := range 400 {
		id := fmt.Sprint(r.IntN(120))
		if _, ok := rows[id]; ok && r.IntN(3) == 0 {
			delete(rows, id)
			if err := x.Apply(t.Context(), nil, []string{id}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text := make([]string, 1+r.IntN(6))
		for i := range text {
			text[i] = words[r.IntN(len(words))]
		}
		group := []string{"", "s1", "s2"}[r.IntN(3)]
		n := row(id, group, r.IntN(1000), strings.Join(text, " "))
		n.Version = int64(step)
		n.Vectors = []index.Kept{{"m", index.Pack([]float32{r.Float32() + 0.1, r.Float32(), r.Float32()})}}
		rows[id] = n
		if err := x.Apply(t.Context(), []index.Row{n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var left []index.Row
	for _, n := range rows {
		left = append(left, n)
	}
	fresh := filled(t, left...)
	for _, column := range []func(*index.Score) float32{own, next, group, covered} {
		if a, b := scores(x, "tea 月亮 cat", column), scores(fresh, "tea 月亮 cat", column); !equal(a, b) {
			t.Errorf("scores differ:\n%v\n%v", a, b)
		}
	}
	if a, b := nearest(t, x), nearest(t, fresh); !slices.Equal(a, b) {
		t.Errorf("neighbours differ:\n%v\n%v", a, b)
	}
	if x.Len() != len(rows) {
		t.Errorf("%d rows, want %d", x.Len(), len(rows))
	}
}

func equal(a, b map[string]float32) bool {
	for id := range b {
		if math.Abs(float64(a[id]-b[id])) > 1e-4 {
			return false
		}
	}
	return len(a) == len(b)
}

func scores(x *index.Index, query string, column func(*index.Score) float32) map[string]float32 {
	found := map[string]float32{}
	_ = x.View(func(v index.View) error {
		var terms []index.Term
		for _, t := range index.Terms(query) {
			terms = append(terms, index.Term{Text: t, Weight: 1})
		}
		for i, s := range match(v, terms).Scores {
			if d := v.Held(i); d != nil && column(&s) > 0 {
				found[d.(string)] = column(&s)
			}
		}
		return nil
	})
	return found
}

func nearest(t *testing.T, x *index.Index) (ids []string) {
	t.Helper()
	err := x.View(func(v index.View) error {
		near, _, err := v.Near(t.Context(), index.Vector{"m", []float32{1, 0.5, 0}}, 1000, 1000)
		for _, n := range near {
			d := v.Held(n.Row)
			ids = append(ids, d.(string))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestVectorsOfDifferentModelsOrLengthsAreNotCompared(t *testing.T) {
	a, b, c := row("a", "", 0, "a"), row("b", "", 0, "b"), row("c", "", 0, "c")
	a.Vectors = []index.Kept{{"m", index.Pack([]float32{1, 0})}, {"n", index.Pack([]float32{0, 1, 0})}}
	b.Vectors = []index.Kept{{"m", index.Pack([]float32{0.6, 0.8})}}
	c.Vectors = []index.Kept{{"m", index.Pack([]float32{1, 0, 0})}} // a vector of another length
	x := filled(t, a, b, c)
	for _, q := range []struct {
		vector index.Vector
		want   int
	}{
		{index.Vector{"m", []float32{1, 0}}, 2}, {index.Vector{"m", []float32{1, 0, 0}}, 1}, {index.Vector{"n", []float32{0, 1, 0}}, 1},
		{index.Vector{"n", []float32{1, 0}}, 0}, {index.Vector{"unknown", []float32{1, 0}}, 0}, {index.Vector{"m", []float32{0, 0}}, 0}, {index.Vector{}, 0},
	} {
		_ = x.View(func(v index.View) error {
			near, _, err := v.Near(t.Context(), q.vector, 100, 100)
			if err != nil || len(near) != q.want {
				t.Errorf("%v: %v %v, want %d", q.vector, near, err, q.want)
			}
			return nil
		})
	}
}

func TestInvalidRowsChangeNothing(t *testing.T) {
	nan := float32(math.NaN())
	for name, bad := range map[string]index.Row{
		"no id": row("", "s", 1, "x"), "no model": {ID: "x", Vectors: []index.Kept{{"", index.Pack([]float32{1})}}},
		"no numbers": {ID: "x", Vectors: []index.Kept{{"m", nil}}}, "not a number": {ID: "x", Vectors: []index.Kept{{"m", index.Pack([]float32{nan})}}},
	} {
		x := filled(t, row("a", "s", 1, "tea"))
		if err := x.Apply(t.Context(), []index.Row{row("b", "s", 2, "tea"), bad}, []string{"a"}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := ranked(x, "tea", own); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: rows are %v", name, got)
		}
	}
}

// many returns rows of about 25 terms, with a vocabulary like that of real texts.
func many(n, dim int) []index.Row {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, 20_000)
	rows := make([]index.Row, n)
	for i := range rows {
		words := make([]string, 15+r.IntN(20))
		for j := range words {
			words[j] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		rows[i] = index.Row{ID: fmt.Sprintf("row-%08d", i), Version: 1, Group: fmt.Sprint("s", i/25), Order: int64(i), Terms: strings.Join(words, " "), Data: i}
		if dim > 0 {
			rows[i].Vectors = []index.Kept{{"m", index.Pack(direction(r, dim))}}
		}
	}
	return rows
}

func BenchmarkLoad10000(b *testing.B) {
	for _, dim := range []int{0, 512, 1024} {
		rows := many(10_000, dim)
		b.Run(fmt.Sprint("dim=", dim), func(b *testing.B) {
			for b.Loop() {
				x := index.New()
				if err := x.Apply(b.Context(), rows, nil); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(x.Bytes())/1e6, "MB")
			}
		})
	}
}

// BenchmarkApply adds a message and its reply to an index, and their vectors.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 1000, 4000} {
		rows := many(n+2, 0)
		b.Run(fmt.Sprint("rows=", n), func(b *testing.B) {
			x := filled(b, rows[:n]...)
			version := int64(1)
			for b.Loop() {
				version++
				two := []index.Row{rows[n], rows[n+1]}
				two[0].Version, two[1].Version = version, version
				if err := x.Apply(b.Context(), two, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMatch10000(b *testing.B) {
	x := filled(b, many(10_000, 0)...)
	terms := []index.Term{}
	for _, w := range []string{"w1", "w3", "w40", "w300", "w2000", "w9", "w77", "w1234"} {
		terms = append(terms, index.Term{Text: w, Weight: 1})
	}
	for b.Loop() {
		_ = x.View(func(v index.View) error { match(v, terms); return nil })
	}
}

func BenchmarkNear10000(b *testing.B) {
	for _, dim := range []int{512, 1024} {
		rows := many(10_000, dim)
		x := filled(b, rows...)
		question := index.Vector{"m", direction(rand.New(rand.NewPCG(3, 4)), dim)}
		b.Run(fmt.Sprint("dim=", dim), func(b *testing.B) {
			for b.Loop() {
				_ = x.View(func(v index.View) error {
					_, _, err := v.Near(context.Background(), question, 200, 200)
					return err
				})
			}
		})
	}
}

// match scores all rows.
func match(v index.View, query []index.Term) *index.Match {
	var m index.Match
	if err := v.Match(context.Background(), query, &m); err != nil {
		panic(err)
	}
	return &m
}

// direction returns a random vector of length one.
func direction(r *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	var square float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		square += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(square))
	}
	return v
}
