package recall

import (
	"context"

	"nodest/internal/index"
)

// mostProfile is how many facts are considered for a profile.
const mostProfile = 100

// Profile returns the facts of an index that may be in the user's profile and that the filter
// lets through, the most urgent first: those with the user's name, then what is pinned, then by
// importance, the newest first.
func Profile(ctx context.Context, x *index.Index, only *Filter) (facts []*Unit, err error) {
	err = x.View(func(v index.View) error {
		found, err := v.Rows(ctx, mostUrgent(v), index.Vector{})
		for _, f := range found {
			if e := entryOf(f); e != nil && e.Profile && !only.barsUnit(&e.Unit) {
				facts = append(facts, &e.Unit)
			}
		}
		return err
	})
	return facts, err
}

// mostUrgent returns the rows of the facts for a profile, the most urgent first.
func mostUrgent(v index.View) []int {
	top := &topmost{size: mostProfile}
	v.EachAlone(func(n int, attr uint64) {
		l := line(attr)
		if !l.is(lineProfile) {
			return
		}
		urgency := float32(l.importance())
		if l.is(linePinned) {
			urgency++
		}
		if l.is(lineNamesUser) {
			urgency += 2
		}
		top.add(ranked{-n, urgency}) // the newest of equals first
	})
	rows := numbers(top.sorted())
	for i := range rows {
		rows[i] = -rows[i]
	}
	return rows
}
