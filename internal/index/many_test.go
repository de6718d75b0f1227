package index_test

import (
	"fmt"
	"testing"

	"nodest/internal/index"
)

// In a large index a question looks at the rows around its rare words only.
func TestRareWordsFindTheRowsOfALargeIndex(t *testing.T) {
	const rows, rare = 36_000, 7_777
	text := func(i int) string {
		switch {
		case i == rare:
			return "the lighthouse by the harbour"
		case i == rare+1:
			return "she painted it"
		case i%2 == 0:
			return "the ships in the harbour"
		}
		return "the weather of today"
	}
	all := make([]index.Row, rows, rows+1)
	for i := range all {
		all[i] = row(fmt.Sprintf("row-%05d", i), fmt.Sprintf("chat-%02d", i/400), i, text(i))
	}
	all = append(all, row("alone", "", 0, "a harbour"))
	for name, half := range map[string]int{"in memory": 0, "stored": rows + 1, "both": rows / 3} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{}
			if half > 0 {
				s.keep(all[:half]...)
			}
			if half < len(all) {
				s.put(all[half:]...)
			}
			s.use(t, func(v index.View) error {
				query := []index.Term{{Text: "harbour", Weight: 1}, {Text: "lighthous", Weight: 1}}
				m := &index.Match{}
				for _, q := range [][]index.Term{query[:1], query} { // the second one with the memory of the first
					if err := v.Match(t.Context(), q, m); err != nil {
						return err
					}
				}
				seen := map[string]index.Score{}
				m.Each(func(n int, score *index.Score) {
					found, err := v.Rows(t.Context(), []int{n}, index.Vector{})
					if err != nil || len(found) != 1 {
						t.Fatalf("row %d: %v, %v", n, found, err)
					}
					seen[found[0].ID] = *score
				})
				if len(seen) != 8 || seen["alone"].Covered == 0 {
					t.Errorf("%d rows have a score, want 7 in a chat and the one that stands alone", len(seen))
				}
				best := seen[fmt.Sprintf("row-%05d", rare)]
				for id, s := range seen {
					if s.Row > best.Row || s.Group == 0 || s.Around == 0 {
						t.Errorf("%s has %+v, the row with both words %+v", id, s, best)
					}
				}
				if best.Covered < 0.999 {
					t.Errorf("the row with both words covers %g of the question", best.Covered)
				}
				others := 0
				for n := range m.Scores {
					if m.Scores[n] != (index.Score{}) {
						others++
					}
				}
				if others != len(seen) {
					t.Errorf("%d rows have a score of an earlier question", others-len(seen))
				}
				return nil
			})
		})
	}
}

// Once the rarest words of a question have found some thousand rows, the others find no further ones.
func TestCommonWordsFindNoFurtherRowsOfALargeIndex(t *testing.T) {
	const rows = 20_000
	all := make([]index.Row, rows)
	for i := range all {
		text := "the weather of today"
		switch i % 16 {
		case 0:
			text = "the lighthouse"
		case 8:
			text = "the harbour and its ships"
		}
		all[i] = row(fmt.Sprintf("row-%05d", i), fmt.Sprintf("chat-%02d", i/400), i, text)
	}
	query := []index.Term{{Text: "lighthous", Weight: 1}, {Text: "harbour", Weight: 1}}
	few := map[string]int{}
	for name, half := range map[string]int{"in memory": 0, "stored": rows} {
		s := &shelf{}
		if half > 0 {
			s.keep(all[:half]...)
		}
		s.put(all[half:]...)
		s.use(t, func(v index.View) error {
			m := &index.Match{}
			err := v.Match(t.Context(), query, m)
			few[name] = len(m.Few)
			for _, n := range m.Few {
				if m.Scores[n].Around == 0 {
					t.Errorf("%s: row %d was found by nothing", name, n)
				}
			}
			return err
		})
		if few[name] < rows/16*6 || few[name] > rows/16*7 {
			t.Errorf("%s: %d rows are looked at", name, few[name])
		}
	}
}
