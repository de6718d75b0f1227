package index

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Two texts are compared only until it is clear that they share too little.
func TestShareOfTwoTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	list := func(n int) (numbers []int32) {
		for range n {
			numbers = append(numbers, random.Int32N(40))
		}
		slices.Sort(numbers)
		return slices.Compact(numbers)
	}
	reached := 0
	for i := range 20_000 {
		a := list(1 + i%50)
		b := slices.Clone(a)
		if i%3 > 0 {
			b = list(1 + i%50)
		}
		if i%3 == 1 && len(a) > 1 {
			b = a[1:]
		}
		both, all := Overlap(a, b)
		for _, least := range []float64{0, 0.5, 0.9} {
			want := float64(both) / float64(all)
			if want < least {
				want = 0
			}
			got := Share(a, b, least)
			if got < least {
				got = 0
			}
			if got != want {
				t.Fatalf("%v and %v share %g of their words, want %g", a, b, got, want)
			}
			if got > 0 {
				reached++
			}
		}
	}
	if reached < 1000 {
		t.Errorf("only %d pairs share enough", reached)
	}
}
