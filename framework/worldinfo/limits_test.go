package worldinfo

import (
	"fmt"
	"testing"

	"nodest/card"
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
