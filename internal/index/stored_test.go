package index_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nodest/internal/index"
	"nodest/internal/index/dict"
)

// shelf is a database with segments.
type shelf struct {
	segments []index.Segment
	parts    map[string][][]byte
	rows     map[string]index.Row // as they are now
	loose    []index.Row
	removed  []string
	version  int64
	calls    int // calls of Parts
	read     int // parts other than heads
	bytes    int // bytes of those parts
}

func (s *shelf) Load(_ context.Context, _ string, since, _ int64) (index.Delta, error) {
	d := index.Delta{Version: s.version, Segments: s.segments, Whole: since == 0}
	for _, r := range s.loose {
		if r.Version > since {
			d.Rows = append(d.Rows, r)
		}
	}
	d.Removed = s.removed
	return d, nil
}

func (s *shelf) Parts(_ context.Context, key string, parts []index.Part) (out [][]byte, err error) {
	s.calls++
	for _, p := range parts {
		id, n := p.Segment, p.Number
		if key != "ann" || n >= len(s.parts[id]) {
			return nil, errors.New("no such part")
		}
		if n > 0 {
			s.read++
			s.bytes += len(s.parts[id][n])
		}
		out = append(out, s.parts[id][n])
	}
	return out, nil
}

func (s *shelf) Rows(_ context.Context, _ string, ids []string) (rows []index.Row, err error) {
	for _, id := range ids {
		if r, ok := s.rows[id]; ok {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (s *shelf) Vectors(_ context.Context, _, model string, ids []string) (map[string]index.Packed, error) {
	found := map[string]index.Packed{}
	for _, id := range ids {
		for _, k := range s.rows[id].Vectors {
			if k.Model == model {
				found[id] = k.Packed
			}
		}
	}
	return found, nil
}

// keep stores rows as the next segment.
func (s *shelf) keep(rows ...index.Row) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b index.Row) int { return index.Compare(a.Group, a.Order, a.ID, b.Group, b.Order, b.ID) })
	b := index.NewBuilder()
	s.version++
	for i := range rows {
		rows[i].Version = s.version
		s.note(rows[i])
		b.Add(&rows[i])
	}
	id := fmt.Sprint("segment-", len(s.segments))
	if s.parts == nil {
		s.parts = map[string][][]byte{}
	}
	s.parts[id] = b.Encode()
	s.segments = append(s.segments, index.Segment{ID: id, From: s.version - 1, To: s.version})
}

// put stores rows beside the segments.
func (s *shelf) put(rows ...index.Row) {
	s.version++
	for _, r := range rows {
		r.Version = s.version
		s.note(r)
		s.loose = append(s.loose, r)
	}
}

func (s *shelf) note(r index.Row) {
	if s.rows == nil {
		s.rows = map[string]index.Row{}
	}
	s.rows[r.ID] = r
}

// use passes the index to f.
func (s *shelf) use(t testing.TB, f func(v index.View) error) {
	t.Helper()
	s.with(t, index.NewCache(s, 0), f)
}

func (s *shelf) with(t testing.TB, c *index.Cache, f func(v index.View) error) {
	t.Helper()
	err := c.Use(t.Context(), "ann", func(x *index.Index, whole bool) error {
		if !whole {
			t.Error("the index is not whole")
		}
		return x.View(f)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// found are the scores of rows by id.
func found(t testing.TB, v index.View, query string) map[string]index.Score {
	t.Helper()
	var terms []index.Term
	for i, text := range index.Terms(query) {
		terms = append(terms, index.Term{Text: text, Weight: 1, Evidence: 1, Extra: i == 3})
	}
	all := map[string]index.Score{}
	m := match(v, terms)
	for _, r := range rowsOf(t, v) {
		if s := m.Scores[r.N]; s.Group > 0 {
			all[r.ID] = s
		}
	}
	return all
}

func rowsOf(t testing.TB, v index.View) []index.Found {
	t.Helper()
	var numbers []int
	v.Each(func(n, _, _ int, _ uint64) { numbers = append(numbers, n) })
	rows, err := v.Rows(t.Context(), numbers, index.Vector{})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// texts are rows of several sessions and some that stand alone, in two languages.
func texts(n int) []index.Row {
	r := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("tea bread moon river Lucy sister harbour winter boat 月亮 乌龙茶 妹妹 天气 下雨 猫 한국어 서울 running ran")
	rows := make([]index.Row, n)
	for i := range rows {
		text := make([]string, 3+r.IntN(9))
		for j := range text {
			text[j] = words[int(float64(len(words))*r.Float64()*r.Float64())]
		}
		group := fmt.Sprintf("chat-%02d", i/17)
		if i%5 == 0 {
			group = ""
		}
		rows[i] = row(fmt.Sprintf("row-%05d", i), group, i, strings.Join(text, " "))
		rows[i].Attr = uint64(i)<<32 | uint64(i*7)
		rows[i].Marks = []string{"all", fmt.Sprint("ten-", i%10)}
		rows[i].Vectors = []index.Kept{{"m", index.Pack(direction(r, 64))}}
	}
	return rows
}

// Where rows are does not matter to what is found.
func TestStoredRowsAreFoundLikeThoseInMemory(t *testing.T) {
	rows := texts(600)
	held := &shelf{}
	held.put(rows...)
	inOne := &shelf{}
	inOne.keep(rows...)
	spread := &shelf{}
	of := func(from, to int) (part []index.Row) { // whole groups
		for i, r := range rows {
			if i/17 >= from && i/17 < to {
				part = append(part, r)
			}
		}
		return part
	}
	spread.keep(of(0, 9)...)
	spread.keep(of(9, 30)...)
	spread.put(of(30, 99)...)

	for _, query := range []string{"tea", "bread moon tea river boat", "the sister of Lucy ran", "茶", "我的妹妹喜欢猫", "月 tea", "서울 한국어", "nothing"} {
		var want map[string]index.Score
		held.use(t, func(v index.View) error { want = found(t, v, query); return nil })
		for name, other := range map[string]*shelf{"in a segment": inOne, "in two segments and in memory": spread} {
			other.use(t, func(v index.View) error {
				if got := found(t, v, query); !maps.EqualFunc(got, want, like) {
					t.Errorf("%q %s: %d rows, want %d", query, name, len(got), len(want))
				}
				return nil
			})
		}
	}
	for name, other := range map[string]*shelf{"in memory": held, "in a segment": inOne, "spread": spread} {
		other.use(t, func(v index.View) error {
			compareView(t, name, v, rows)
			return nil
		})
	}
}

func like(a, b index.Score) bool {
	near := func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-4 }
	return near(a.Row, b.Row) && near(a.Near, b.Near) && near(a.Around, b.Around) && near(a.Group, b.Group) &&
		near(a.Covered, b.Covered) && near(a.Spanned, b.Spanned) && near(a.Evidence, b.Evidence)
}

// compareView checks everything else that a view tells of rows.
func compareView(t *testing.T, name string, v index.View, rows []index.Row) {
	t.Helper()
	byID := map[string]index.Row{}
	for _, r := range rows {
		byID[r.ID] = r
	}
	all := rowsOf(t, v)
	if len(all) != len(rows) {
		t.Errorf("%s: %d rows, want %d", name, len(all), len(rows))
	}
	ids := map[int]string{-1: ""}
	for _, f := range all {
		ids[f.N] = f.ID
	}
	alone := 0
	v.EachAlone(func(int, uint64) { alone++ })
	v.Each(func(n, before, length int, attr uint64) {
		want := byID[ids[n]]
		got, ok := v.Attr(n)
		if !ok || got != want.Attr || attr != want.Attr || v.Group(n) != want.Group || v.Length(n) != length || length != len(strings.Fields(want.Terms)) || v.Neighbour(n, -1) != before {
			t.Errorf("%s: row %s is told wrongly", name, want.ID)
		}
		if after := v.Neighbour(n, 1); after >= 0 && (byID[ids[after]].Group != want.Group || byID[ids[after]].Order <= want.Order) {
			t.Errorf("%s: after %s comes %s", name, want.ID, ids[after])
		}
	})
	type told struct {
		n, before, length int
		attr              uint64
	}
	var each, some, within []told
	var numbers []int
	v.Each(func(n, before, length int, attr uint64) {
		if n%3 == 0 {
			numbers, each = append(numbers, n), append(each, told{n, before, length, attr})
		}
	})
	if v.Some(numbers, func(n, before, length int, attr uint64) { some = append(some, told{n, before, length, attr}) }); !slices.Equal(each, some) {
		t.Errorf("%s: some rows are told otherwise than each", name)
	}
	v.Within(100, 199, func(n int, attr uint64) bool {
		if upper := attr >> 32; upper < 100 || upper > 199 {
			t.Errorf("%s: %d is not within", name, upper)
		}
		within = append(within, told{n: n})
		return len(within) < 90
	})
	if len(within) != 90 {
		t.Errorf("%s: %d are within, want 90 of 100", name, len(within))
	}
	marked, err := v.Marked(t.Context(), []string{"all", "ten-3", "ten-30"})
	if err != nil || len(marked["all"]) != len(rows) || len(marked["ten-3"]) != len(rows)/10 || len(marked) != 2 || alone != len(rows)/5 {
		t.Errorf("%s: %d marked, %d of tens, %d alone, %v", name, len(marked["all"]), len(marked["ten-3"]), alone, err)
	}
	having, err := v.Having(t.Context(), []string{"tea", "茶"}, len(rows))
	for term, h := range having {
		for _, n := range h.Rows {
			if !strings.Contains(byID[ids[n]].Terms, term) {
				t.Errorf("%s: %s has no %q", name, ids[n], term)
			}
		}
	}
	if err != nil || len(having) != 2 || having["tea"].Rarity <= 0 {
		t.Errorf("%s: having %v, %v", name, having, err)
	}
}

// A row that has changed counts once, as it is now; a removed one does not count.
func TestChangedRowsTakeThePlaceOfStoredOnes(t *testing.T) {
	rows := texts(600)
	s := &shelf{}
	s.keep(rows...)
	c := index.NewCache(s, 0)
	s.with(t, c, func(index.View) error { return nil })
	changed, alone, gone := rows[23], rows[25], rows[30]
	changed.Terms, alone.Terms = index.Join("tea and a zeppelin"), index.Join("a zeppelin")
	s.put(changed, alone)
	s.removed = []string{gone.ID}
	delete(s.rows, gone.ID)
	s.with(t, c, func(v index.View) error {
		got := slices.Sorted(maps.Keys(found(t, v, "zeppelin")))
		if !slices.Contains(got, changed.ID) || !slices.Contains(got, alone.ID) {
			t.Errorf("found %v", got)
		}
		seen := map[string]int{}
		for _, r := range rowsOf(t, v) {
			seen[r.ID]++
		}
		if len(seen) != 599 || seen[changed.ID] != 1 || seen[alone.ID] != 1 || seen[gone.ID] != 0 {
			t.Errorf("%d rows; changed %d, %d times; removed %d times", len(seen), seen[changed.ID], seen[alone.ID], seen[gone.ID])
		}
		return nil
	})
}

// A row that was purged since is not found, although its segment still has it.
func TestRowsThatAreGoneAreNotRead(t *testing.T) {
	rows := texts(100)
	s := &shelf{}
	s.keep(rows...)
	delete(s.rows, rows[7].ID)
	newer := s.rows[rows[8].ID]
	newer.Version += 10 // changed, and not loaded yet
	s.rows[rows[8].ID] = newer
	s.use(t, func(v index.View) error {
		if got := rowsOf(t, v); len(got) != 98 {
			t.Errorf("%d rows, want 98", len(got))
		}
		return nil
	})
}

// A question reads the parts that have its words, not the segment.
func TestAQuestionReadsLittle(t *testing.T) {
	s := &shelf{}
	s.keep(many(20_000, 0)...)
	all := 0
	for _, p := range s.parts["segment-0"] {
		all += len(p)
	}
	s.use(t, func(v index.View) error {
		s.read, s.bytes = 0, 0
		match(v, []index.Term{{Text: "w900", Weight: 1}, {Text: "w17", Weight: 1}})
		if s.read > 2 || s.bytes*10 > all {
			t.Errorf("%d parts with %d of %d bytes were read", s.read, s.bytes, all)
		}
		return nil
	})
}

// Parts of segments that were read are read again from memory, as far as its bytes allow; missing parts are
// read at once, of all segments.
func TestPartsAreReadOnce(t *testing.T) {
	s := &shelf{}
	rows := texts(3000)
	for some := range slices.Chunk(rows, 600) {
		s.keep(some...)
	}
	for _, bytes := range []int{1 << 20, 1 << 10} {
		c := index.NewCache(s, bytes)
		for range 2 {
			s.with(t, c, func(v index.View) error {
				s.calls, s.read = 0, 0
				found(t, v, "tea bread moon")
				_, _, err := v.Near(t.Context(), index.Vector{"m", direction(rand.New(rand.NewPCG(9, 9)), 64)}, 10, 10)
				return err
			})
			if bytes == 1<<20 && s.calls > 8 { // words, ids twice, and the signs of five segments
				t.Errorf("%d calls for parts", s.calls)
			}
		}
		if (bytes == 1<<20) != (s.read == 0) {
			t.Errorf("with %d bytes, %d parts are read again", bytes, s.read)
		}
	}
}

// Parts may take what indexes leave.
func TestPartsHaveTheRoomThatIndexesLeave(t *testing.T) {
	s := &shelf{}
	s.keep(many(20_000, 0)...)
	parts := 0
	for _, p := range s.parts["segment-0"][1:] {
		parts += len(p)
	}
	var words []index.Term
	for i := range 5000 {
		words = append(words, index.Term{Text: fmt.Sprint("w", i), Weight: 1})
	}
	c := index.NewCache(s, 2*parts)
	for range 3 { // the first question does not know yet what the index leaves
		s.bytes = 0
		s.with(t, c, func(v index.View) error { return v.Match(t.Context(), words, new(index.Match)) })
	}
	if _, held := c.Stats(); s.bytes > 0 || held < parts/2 {
		t.Errorf("%d of %d bytes are read again, %d are held", s.bytes, parts, held)
	}
}

// The signs of vectors, whatever their lengths, are enough to find most of the nearest.
func TestStoredVectorsAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	s := &shelf{}
	rows := texts(6000)
	middle := direction(r, 512)
	for i := range rows {
		v := direction(r, 512)
		for j := range v {
			v[j] += middle[j] * float32(i%7) / 6
		}
		stretch(r, [][]float32{v})
		rows[i].Vectors = []index.Kept{{"m", index.Pack(v)}}
	}
	s.keep(rows[:3000]...)
	s.keep(rows[3000:5000]...)
	s.put(rows[5000:]...)
	s.use(t, func(v index.View) error {
		{
			near, whole, err := v.Near(t.Context(), index.Vector{"m", middle}, 100, 100)
			if err != nil || !whole || len(near) != 100 {
				t.Fatalf("%d near, whole: %v, %v", len(near), whole, err)
			}
			nearest := 0
			for i, n := range near {
				attr, _ := v.Attr(n.Row)
				if attr>>32%7 == 6 {
					nearest++
				}
				if i > 0 && n.Cosine > near[i-1].Cosine {
					t.Fatal("a worse one comes first")
				}
			}
			if nearest < 95 {
				t.Errorf("%d of 100 are of the nearest kind", nearest)
			}
		}
		if near, whole, err := v.Near(t.Context(), index.Vector{"other", middle}, 100, 100); len(near) != 0 || !whole || err != nil {
			t.Errorf("another model has %d, %v, %v", len(near), whole, err)
		}
		return nil
	})
}

func FuzzDecode(f *testing.F) {
	s := &shelf{}
	s.keep(texts(50)...)
	for _, p := range s.parts["segment-0"] {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := index.Decode(data); err == nil {
			h.TermPart("tea")
			h.LonePart("row")
		}
		_, postings := dict.Block(data).Find("tea")
		postings.All()
		ids := index.ReadIDs(data)
		ids.At(0)
		ids.Find("row")
	})
}

func BenchmarkStored200000(b *testing.B) {
	s := &shelf{}
	rows := many(200_000, 512)
	for part := range slices.Chunk(rows, 60_000) {
		s.keep(part...)
	}
	size := 0
	for _, parts := range s.parts {
		for _, p := range parts {
			size += len(p)
		}
	}
	terms := []index.Term{}
	for _, w := range []string{"w1", "w3", "w40", "w300", "w2000", "w9", "w77", "w1234"} {
		terms = append(terms, index.Term{Text: w, Weight: 1})
	}
	c := index.NewCache(s, 0)
	s.with(b, c, func(v index.View) error {
		b.Run("match", func(b *testing.B) {
			var m index.Match
			for b.Loop() {
				if err := v.Match(b.Context(), terms, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
		question := index.Vector{"m", direction(rand.New(rand.NewPCG(3, 4)), 512)}
		b.Run("near", func(b *testing.B) {
			for b.Loop() {
				if _, _, err := v.Near(b.Context(), question, 200, 200); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("each", func(b *testing.B) {
			for b.Loop() {
				sum := uint64(0)
				v.Each(func(_, before, _ int, attr uint64) { sum += attr + uint64(before) })
			}
		})
		return nil
	})
	b.ReportMetric(float64(size)/200_000, "B/row")
	_, held := c.Stats()
	b.ReportMetric(float64(held)/200_000, "held-B/row")
}
