package cite

import (
	"strings"
	"testing"
)

func TestDbg(t *testing.T) {
	set := foreignClaims(t)
	_ = set
	own := ownClaims(t, "claims_en.json")
	_ = own
	zh := ownClaims(t, "claims_zh.json")
	_ = zh
	for _, c := range []struct {
		text string
		s    Source
	}{
		{"Tomas Brandl was beaten by Irina Sokolova in 41 moves.", own.sources[2]},
	} {
		t.Log("##", c.text)
		l := newLibrary([]Source{c.s})
		v := &verifier{sources: []Source{c.s}, pages: l, threshold: .55}
		p := newPart(c.text)
		for i := range l.all {
			for _, w := range l.windows(i) {
				x := v.weigh(&p, w, true)
				q := l.readingsOf(w)
				e := join(q)
				fire := ""
				for k := range p.about.clauses {
					cl := &p.about.clauses[k]
					near := e.nearest(cl)
					if wrongUnit(cl, e) {
						fire += " unit"
					}
					if deniesOnce(cl, near, e) {
						fire += " denies:" + cl.text
					}
					if turns(cl, near, e) {
						fire += " turns"
					}
					if passesBound(cl, e) {
						fire += " bound"
					}
					if changesBack(cl, e) {
						fire += " change"
					}
					if takesOver(p.about, cl, e) {
						fire += " takesOver"
					}
					if otherKind(p.about, cl, near, e) {
						fire += " kind"
					}
					if onlyHeard(p.about, cl, near) {
						fire += " heard"
					}
				}
				if swaps(p.about, e) {
					fire += " swaps"
				}
				if otherSlot(p.about, e) {
					fire += " slot"
				}
				if standsIn(p.about, q) {
					fire += " standsIn"
				}
				if swapsDense(p.about.text, e.text) {
					fire += " dense"
				}
				if otherPerson(p.about.text, e.text) {
					fire += " person"
				}
				t.Logf("   %v %.2f %+v %s | %.60s", w, x.score, x.why, fire, strings.TrimSpace(e.text))
			}
		}
	}
}
