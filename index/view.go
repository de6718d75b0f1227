package index

import (
	"cmp"
	"context"
	"slices"
)

// View is what a ranking sees of an index. Rows are numbered from 0 to Slots-1, with gaps. It
// is valid only inside the function that it was passed to.
type View struct{ x *Index }

// View calls rank with the current rows. Changes wait until it returns, so it must not block.
func (x *Index) View(rank func(View) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return rank(View{x})
}

// Slots returns one more than the highest number of a row.
func (v View) Slots() int { return len(v.x.docs) }

// Data returns the data of row n; nil in a gap.
func (v View) Data(n int) any { return v.x.docs[n].data }

// Length returns how many terms row n has.
func (v View) Length(n int) int { return int(v.x.places[n].own) }

// Number returns the number of the row with an id, or -1.
func (v View) Number(id string) int {
	if n, ok := v.x.byID[id]; ok {
		return int(n)
	}
	return -1
}

// Neighbour returns the row steps after row n in its group (before it, if negative), or -1.
func (v View) Neighbour(n, steps int) int {
	p := &v.x.places[n]
	if at := int(p.at) + steps; p.group != nil && at >= 0 && at < len(p.group.docs) {
		return int(p.group.docs[at])
	}
	return -1
}

// Words returns the terms of row n, with repetitions.
func (v View) Words(n int) []string {
	terms := v.x.docs[n].terms
	words := make([]string, len(terms))
	for i, t := range terms {
		words[i] = v.x.terms[t].text
	}
	return words
}

// Distinct returns the sorted numbers of the distinct terms of row n.
func (v View) Distinct(n int) []int32 {
	terms := slices.Clone(v.x.docs[n].terms)
	slices.Sort(terms)
	return slices.Compact(terms)
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

// Near is a row and its cosine with a query.
type Near struct {
	Row    int
	Cosine float32
}

// Near returns at most n rows with vectors of q's model, nearest first.
func (v View) Near(ctx context.Context, q Vector, n int) ([]Near, error) {
	found, err := v.x.vectors.near(ctx, q, n)
	if err != nil {
		return nil, err
	}
	near := make([]Near, len(found))
	for i, f := range found {
		near[i] = Near{int(v.x.byID[f.id]), f.cosine}
	}
	return near, nil
}

// Cosine returns the cosine of rows a and b in the space of q, if both have a vector there.
func (v View) Cosine(a, b int, q Vector) (cosine float32, ok bool) {
	return v.x.vectors.cosine(v.x.docs[a].id, v.x.docs[b].id, q.space())
}

// Having returns the rows that have a term, and its rarity: 1 for a term that is in one row. A
// term in more than limit rows has none; a single character of a script without spaces counts
// with all pairs that have it.
func (v View) Having(text string, limit int) (rows []int, rarity float32) {
	t := v.x.term(text)
	if t.rows == 0 || t.rows > limit {
		return nil, 0
	}
	for _, p := range t.postings {
		if v.x.places[p.doc].group != nil {
			rows = append(rows, int(p.doc))
		}
	}
	return rows, v.x.rarity(t.rows)
}
