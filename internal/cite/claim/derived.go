package claim

import (
	"math"
	"slices"
	"strings"
)

// maxDerived bounds the numbers of a source from which others are derived.
const maxDerived = 24

// derives reports whether a number follows from two in the evidence: their sum or difference, the years between two, a year
// so many years after another, a share of an amount, or so many out of a hundred. A number of one digit too often does by
// chance, unless it measures something.
func (e Evidence) derives(q quantity) bool {
	all := e.termsOf(q)
	if q.amount <= 0 || len(all) > maxDerived || len(q.value) < 2 && !q.lasts() && !q.unit.measures() {
		return false
	}
	for i, a := range all {
		if slices.ContainsFunc(all[i+1:], func(b quantity) bool {
			return q.isShare(a, b) || q.isShare(b, a) || q.isSum(a, b) || q.isTime(a, b)
		}) {
			return true
		}
	}
	return false
}

// termsOf are the numbers from which q may follow: where some count the same things, only these, shares and years,
// because twelve farmers are not eleven farmers and a dog.
func (e Evidence) termsOf(q quantity) []quantity {
	all := e.all()
	if q.unit.dim == "" || !q.unit.counts() || e.kinds[q.unit.dim] == nil {
		return all
	}
	return slices.DeleteFunc(all, func(x quantity) bool { return !slices.Contains([]string{q.unit.dim, ratio, year}, x.unit.dim) })
}

// all are the different numbers that stand in the evidence, without those that it implies.
func (e Evidence) all() (all []quantity) {
	for _, some := range e.numbers {
		for i, q := range some {
			if q.end > 0 && !slices.ContainsFunc(some[:i], func(x quantity) bool { return x.unit == q.unit }) {
				all = append(all, q)
			}
		}
	}
	return all
}

// counts reports whether a unit counts things, or is unknown.
func (u unit) counts() bool { return u.dim == "" || strings.HasPrefix(u.dim, counts) }

// lasts reports whether q is a number of years, or an age.
func (q quantity) lasts() bool {
	return q.unit.dim == "calendar" && q.unit.factor == 12 || q.unit.dim == counts+"岁"
}

// base is the amount in the first unit of its dimension.
func (q quantity) base() float64 {
	if q.unit.measures() {
		return q.amount * q.unit.factor
	}
	return q.amount
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}

// isSum reports whether q is the sum or the difference of two numbers of its kind.
func (q quantity) isSum(a, b quantity) bool {
	if q.unit.measures() {
		if a.unit.dim == "" { // 17.1 and 18.6 degrees
			a.unit = b.unit
		} else if b.unit.dim == "" {
			b.unit = a.unit
		}
		if a.unit.dim != q.unit.dim || b.unit.dim != q.unit.dim {
			return false
		}
	} else if !q.unit.counts() || !a.unit.counts() && !b.unit.counts() || !a.unit.alike(b.unit) {
		return false
	}
	return near(q.base(), a.base()+b.base(), 1e-6) || near(q.base(), math.Abs(a.base()-b.base()), 1e-6)
}

// alike reports whether numbers of two units may be added: the units are the same, or both count, or one counts and the
// other is a year, as a bare 1200 is read.
func (u unit) alike(v unit) bool {
	return u.dim == v.dim || u.counts() && v.counts() || u.dim == year && v.counts() || v.dim == year && u.counts()
}

// isTime reports whether q is the time between two years, or the year that follows another after such a time.
func (q quantity) isTime(a, b quantity) bool {
	if a.unit.dim != year {
		a, b = b, a
	}
	switch {
	case a.unit.dim != year:
		return false
	case b.unit.dim == year:
		between := math.Abs(a.amount - b.amount)
		return (q.lasts() || q.unit.dim == "") && (q.amount == between || q.unit.dim != "calendar" && q.amount == between-1)
	}
	return q.unit.dim == year && b.lasts() && q.amount == a.amount+b.amount
}

// isShare reports whether q is the share a of b, or the share that a is of a round number b.
func (q quantity) isShare(a, b quantity) bool {
	if q.unit.dim == ratio {
		return a.unit.counts() && b.unit.counts() && (b.amount == 10 || b.amount == 100 || b.amount == 1000) && near(q.amount, 100*a.amount/b.amount, 1e-6)
	}
	of := b.unit.dim == q.unit.dim || b.unit.counts() && q.unit.counts()
	return a.unit.dim == ratio && of && near(q.base(), b.base()*a.amount/100, 1e-3)
}

// isDifference reports whether two numbers of the evidence differ by q, and the sentence has one of them too: 1.5 degrees
// more, for 17.1 and 18.6.
func (f Facts) isDifference(q quantity, e Evidence) bool {
	return slices.ContainsFunc(f.quantities, func(a quantity) bool {
		if a.value == q.value || q.amount == 0 || q.unit.dim == month || q.unit.dim == day || q.unit.dim == year || q.measured() && !a.like(q) || !slices.ContainsFunc(e.numbers[a.value], a.equals) {
			return false
		}
		return e.numbers[decimal(a.amount+q.amount)] != nil || e.numbers[decimal(a.amount-q.amount)] != nil ||
			q.measured() && e.numbers[decimal(q.amount-a.amount)] != nil
	})
}
