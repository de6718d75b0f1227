package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"nodest/internal/index"
)

// slowly scores the stored rows of a large index one by one.
type slowly struct {
	rows    []index.Row // by group and place
	stale   map[string]bool
	average float64
	of      float64 // rows
	found   []bool
}

func (s *slowly) count(i int, word string) (n float64) {
	for _, t := range index.Terms(s.rows[i].Terms) {
		if t == word {
			n++
		}
	}
	return n
}

// window is how often a word is around row i, and how many terms are there.
func (s *slowly) window(i, reach int, word string, limited bool) (count, length float64) {
	for j := max(0, i-reach); j <= i+reach && j < len(s.rows); j++ {
		if j != i && (s.rows[j].Group != s.rows[i].Group || s.rows[i].Group == "") {
			continue
		}
		length += float64(len(index.Terms(s.rows[j].Terms)))
		if !s.stale[s.rows[j].ID] && (!limited || s.found[j] || s.rows[i].Group == "") {
			count += s.count(j, word)
		}
	}
	return count, length
}

// scores are near, around and covered of the rows that were found, by id.
func (s *slowly) scores(words []string) map[string][3]float64 {
	all, weight, many := map[string][3]float64{}, 0.0, 0
	s.found = make([]bool, len(s.rows))
	for _, word := range words {
		rows := 0.0
		for i := range s.rows {
			rows += min(1, s.count(i, word))
		}
		idf := math.Log(1 + (s.of-rows+0.5)/(rows+0.5))
		weight += idf
		limited := many > 0 && many+int(rows) > 8192
		bm25 := func(count, length, reach float64) float64 {
			return 2.2 * idf * count / (count + 1.2*(0.25+0.75*length/(s.average*(2*reach+1))))
		}
		for i, r := range s.rows {
			around, length := s.window(i, 3, word, limited)
			if around == 0 || limited && !s.found[i] && r.Group != "" {
				continue
			}
			near, short := s.window(i, 1, word, limited)
			sum := all[r.ID]
			sum[0], sum[1] = sum[0]+bm25(near, short, 1), sum[1]+bm25(around, length, 3)
			if s.count(i, word) > 0 && !s.stale[r.ID] {
				sum[2] += idf
			}
			all[r.ID] = sum
		}
		for i, r := range s.rows {
			if _, ok := all[r.ID]; ok && !s.found[i] {
				s.found[i], many = true, many+1
			}
		}
	}
	for id, sum := range all {
		all[id] = [3]float64{sum[0], sum[1], sum[2] / weight}
	}
	return all
}

// sessions are rows of short sessions, and some that stand alone; each word is more common than the
// one before it.
func sessions(r *rand.Rand, name string, n int, words []string) []index.Row {
	rows, session := make([]index.Row, n), 0
	for i := range rows {
		text := "moon"
		for k, word := range words {
			for range 3 {
				if r.IntN([]int{240, 60, 15, 6, 4}[k]) == 0 {
					text += " " + word
				}
			}
		}
		if r.IntN(12) == 0 {
			session++
		}
		group := fmt.Sprintf("chat-%s-%04d", name, session)
		if i%40 == 0 {
			group = ""
		}
		rows[i] = row(fmt.Sprintf("row-%s-%05d", name, i), group, i, text)
	}
	return rows
}

// Common words add to the rows of a large index what they add to each of them alone.
func TestCommonWordsAddToTheRowsOfALargeIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	words := []string{"lighthous", "boat", "river", "bread", "tea"} // the rarest first
	s, slow := &shelf{}, &slowly{stale: map[string]bool{}}
	for part, n := range []int{5_003, 6_010} {
		rows := sessions(r, fmt.Sprint(part), n, words)
		s.keep(rows...)
		slow.rows = append(slow.rows, rows...)
	}
	slices.SortFunc(slow.rows, func(a, b index.Row) int { return index.Compare(a.Group, a.Order, a.ID, b.Group, b.Order, b.ID) })
	length := 0
	for i := range slow.rows {
		if length += len(index.Terms(slow.rows[i].Terms)); i%29 == 0 {
			changed := slow.rows[i]
			changed.Terms, slow.stale[changed.ID] = "moon", true
			s.put(changed)
			length++
		}
	}
	slow.of, slow.average = float64(len(slow.rows)), float64(length)/float64(len(slow.rows))
	want := slow.scores(words)
	s.use(t, func(v index.View) error {
		var query []index.Term
		for _, word := range words {
			query = append(query, index.Term{Text: word, Weight: 1})
		}
		m := match(v, query)
		if len(m.Few) == v.Slots() || len(m.Few) != len(want) {
			t.Errorf("%d of %d rows were found, want %d", len(m.Few), v.Slots(), len(want))
		}
		rows := 0
		for _, f := range rowsOf(t, v) {
			if w, ok := want[f.ID]; ok && !slow.stale[f.ID] {
				rows++
				got := m.Scores[f.N]
				for i, x := range []float32{got.Near, got.Around, got.Covered} {
					if math.Abs(float64(x)-w[i]) > 1e-4*(1+w[i]) {
						t.Fatalf("%s: %d is %g, want %g", f.ID, i, x, w[i])
					}
				}
			}
		}
		if rows < 1000 {
			t.Errorf("only %d rows were compared", rows)
		}
		return nil
	})
}
