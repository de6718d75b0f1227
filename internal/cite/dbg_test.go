package cite

import "testing"

func TestDbg(t *testing.T) {
	for _, c := range [][2]string{
		{"The Orion cell aged better than the Lyra cell: 91 percent against 74 after 800 charges.", "After 800 charges the Orion cell kept 91 percent of its capacity, the Lyra cell 74 percent. Both were tested at 25 degrees."},
	} {
		a, b := read(c[0]), read(c[1])
		t.Log(c[0], "=>", conflict(a, []*reading{b}), swaps(a, b), standsIn(a, []*reading{b}))
		x, _ := sequence(a, b.terms, 99)
		_, y := sequence(b, a.terms, 99)
		t.Log(x, y)
	}
}
