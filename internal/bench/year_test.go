package bench

import (
	"reflect"
	"testing"
)

func TestYearTexts(t *testing.T) {
	t.Parallel()
	y, n, facts := yearChat{seed: 1, exchanges: 2000}, 0, map[string]bool{}
	for i := range 4000 {
		l := y.line(i)
		if got := y.line(i); !reflect.DeepEqual(got, l) {
			t.Fatalf("y.line(i) is %+v, want %+v", got, l)
		}
		n += len(l.text)
	}
	for k := range y.facts() {
		_, name, _, _ := y.planted(k)
		if facts[name] {
			t.Fatal("facts[name] is true, want false")
		}
		facts[name] = true
	}
	if got := n / 2000; got <= 1100 {
		t.Fatalf("n/2000 is %d, want more than %d", got, 1100)
	}
	if got := n / 2000; got >= 1400 {
		t.Fatalf("n/2000 is %d, want less than %d", got, 1400)
	}
}
