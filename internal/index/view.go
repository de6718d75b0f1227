package index

import (
	"cmp"
	"context"
	"math"
)

// View is what a ranking sees of an index. Rows are numbered from 0 to Slots-1, with gaps. It
// is valid only inside the function that it was passed to.
type View struct{ x *Index }

// View calls rank with the current rows. Changes wait until it returns.
func (x *Index) View(rank func(View) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return rank(View{x})
}

// Slots returns one more than the highest number of a row.
func (v View) Slots() int { return v.x.slots() }

// Attr returns the attribute of row n; there is none for a gap.
func (v View) Attr(n int) (attr uint64, ok bool) {
	s, local := v.x.at(n)
	if local >= s.Rows {
		return 0, false
	}
	return s.Attrs[local], !s.stale.has(local)
}

// Each calls f for all rows, by number, with their Neighbour(n, -1), how many terms they have, and
// their attributes.
func (v View) Each(f func(n, before, length int, attr uint64)) {
	for _, s := range v.x.sections {
		g := 0
		for i, a := range s.Attrs {
			before := -1
			if i >= s.Lone {
				for s.Groups[g].End <= i {
					g++
				}
				if i > s.Groups[g].First && !s.stale.has(i-1) {
					before = s.from + i - 1
				}
			}
			if !s.stale.has(i) {
				f(s.from+i, before, s.Terms(i, i+1), a)
			}
		}
	}
}

// Some is Each for the rows of a list, which ascends.
func (v View) Some(rows []int, f func(n, before, length int, attr uint64)) {
	for _, s := range v.x.sections {
		for g := 0; len(rows) > 0 && rows[0] < s.from+s.Rows; rows = rows[1:] {
			i, before := rows[0]-s.from, -1
			if s.stale.has(i) {
				continue
			}
			if i >= s.Lone {
				if g += s.GroupAfter(g, i); i > s.Groups[g].First && !s.stale.has(i-1) {
					before = rows[0] - 1
				}
			}
			f(rows[0], before, s.Terms(i, i+1), s.Attrs[i])
		}
	}
}

// Within calls f for the rows of which the upper half of the attribute, as a signed number, is from low
// to high, as long as f wants more.
func (v View) Within(low, high int32, f func(n int, attr uint64) (more bool)) {
	for _, s := range v.x.sections {
		for i, a := range s.Attrs {
			if upper := int32(a >> 32); upper >= low && upper <= high && !s.stale.has(i) && !f(s.from+i, a) {
				return
			}
		}
	}
}

// EachAlone calls f for the rows that stand alone.
func (v View) EachAlone(f func(n int, attr uint64)) {
	for _, s := range v.x.sections {
		for i, a := range s.Attrs[:s.Lone] {
			if !s.stale.has(i) {
				f(s.from+i, a)
			}
		}
	}
}

// Group returns the name of the group of row n; empty = it stands alone.
func (v View) Group(n int) string {
	s, local := v.x.at(n)
	if g := s.GroupOf(local); g != nil {
		return g.Name
	}
	return ""
}

// Length returns how many terms row n has.
func (v View) Length(n int) int {
	s, local := v.x.at(n)
	return s.Terms(local, local+1)
}

// Neighbour returns the row steps after row n in its group (before it, if negative), or -1.
// Rows in memory and those of each segment have neighbours of their own.
func (v View) Neighbour(n, steps int) int {
	s, local := v.x.at(n)
	g := s.GroupOf(local)
	if at := local + steps; g != nil && at >= g.First && at < g.End && !s.stale.has(at) {
		return s.from + at
	}
	return -1
}

// Overlap returns how many terms two sorted lists have in common, and how many both have
// together.
func Overlap[T cmp.Ordered](a, b []T) (both, all int) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return both, len(a) + len(b) - both
}

// Share is the share of the terms of two sorted lists that both have; 0 if it cannot reach least.
func Share[T cmp.Ordered](a, b []T, least float64) float64 {
	sum := len(a) + len(b)
	most := sum - int(math.Ceil(2*least/(1+least)*float64(sum)-1e-9)) // terms that only one of them may have
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			both, i, j = both+1, i+1, j+1
			continue
		case a[i] < b[j]:
			i++
		default:
			j++
		}
		if i+j-2*both > most {
			return 0
		}
	}
	return float64(both) / float64(max(1, sum-both))
}

// Holding is the rows that have a term, and its rarity: 1 for a term that is in one row.
type Holding struct {
	Rows   []int
	Rarity float32
}

// Having returns the rows that have each of some terms. A term in more than limit rows has
// none; a single character of a script without spaces counts with all pairs that have it.
func (v View) Having(ctx context.Context, terms []string, limit int) (map[string]Holding, error) {
	keys := make([]string, len(terms))
	for i, t := range terms {
		keys[i] = Key(t)
	}
	lists, err := v.x.lists(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string]Holding, len(terms))
	for i, text := range terms {
		rows := 0
		for _, l := range lists[keys[i]] {
			rows += l.Rows
		}
		if rows == 0 || rows > limit {
			continue
		}
		found[text] = Holding{Rows: rowsOf(lists[keys[i]]), Rarity: v.x.rarity(rows)}
	}
	return found, nil
}

// rowsOf returns the rows of lists.
func rowsOf(lists []list) (rows []int) {
	for _, l := range lists {
		for _, p := range l.appendTo(nil, nil) {
			if row := int(p.Row); row < l.in.Rows && !l.in.stale.has(row) {
				rows = append(rows, l.in.from+row)
			}
		}
	}
	return rows
}

// Marked returns the rows that have each of some marks.
func (v View) Marked(ctx context.Context, marks []string) (map[string][]int, error) {
	keys := make([]string, len(marks))
	for i, m := range marks {
		keys[i] = MarkKey(m)
	}
	lists, err := v.x.lists(ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]int, len(marks))
	for i, m := range marks {
		if rows := rowsOf(lists[keys[i]]); len(rows) > 0 {
			found[m] = rows
		}
	}
	return found, nil
}

// Near is a row and its cosine with a query.
type Near struct {
	Row    int
	Cosine float32
}
