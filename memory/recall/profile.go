package recall

import (
	"context"
	"slices"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// mostProfile is how many facts are considered for a profile.
const mostProfile = 100

// Profile returns the facts of an index that may be in the user's profile and that the filter
// lets through, the most urgent first: those with the user's name, then what is pinned, then by
// importance, the newest first. outdated has, by the ids of facts, the line that says that they have changed.
func Profile(ctx context.Context, x *index.Index, only *Filter) (facts []*Unit, outdated map[string]*Unit, err error) {
	err = x.View(func(v index.View) error {
		found, err := v.Rows(ctx, mostUrgent(v), index.Vector{})
		if err != nil {
			return err
		}
		var of []*entry
		for _, f := range found {
			if e := entryOf(f); e != nil && e.Profile && !only.barsUnit(&e.Unit) {
				of, facts = append(of, e), append(facts, &e.Unit)
			}
		}
		outdated, err = outdatedBy(ctx, v, of)
		return err
	})
	return facts, outdated, err
}

// mostRetold is how many of the newest lines that give a property are compared with the facts that give it.
const mostRetold = 4

// outdatedBy finds the latest lines of the user that give a property of facts and say that it has changed: no fact
// may have been made of them yet, or none can be made.
func outdatedBy(ctx context.Context, v index.View, facts []*entry) (map[string]*Unit, error) {
	all := lang.Properties(0)
	for _, f := range facts {
		all |= f.gives(lang.Names{})
	}
	var marks []string
	for _, p := range all.Each() {
		marks = append(marks, markOf(p))
	}
	if len(marks) == 0 {
		return nil, nil
	}
	marked, err := v.Marked(ctx, marks)
	if err != nil {
		return nil, err
	}
	outdated := map[string]*Unit{}
	for _, p := range all.Each() {
		found, err := v.Rows(ctx, newest(v, marked[markOf(p)], mostRetold), index.Vector{})
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			line := entryOf(row)
			if line == nil || slices.ContainsFunc(facts, func(f *entry) bool { return f.from(line.ID) }) {
				continue // that is read already
			}
			for _, f := range facts {
				if line.outdates(f, p) {
					outdated[f.ID] = &line.Unit
				}
			}
		}
	}
	return outdated, nil
}

// outdates reports whether a line says that a property has changed since an older fact that gives it, and which the
// user did not write or pin.
func (e *entry) outdates(f *entry, p lang.Properties) bool {
	return e.Layer == Exchange && f.gives(lang.Names{})&p != 0 && !f.ByHand && !f.Pinned && e.At.After(f.At) &&
		(p.Grows() || e.saysChanged())
}

// newest returns the newest of some rows.
func newest(v index.View, rows []int, most int) []int {
	top := &topmost{size: most}
	for _, row := range rows {
		attr, _ := v.Attr(row)
		top.add(ranked{row, float32(line(attr).minute())})
	}
	return numbers(top.sorted())
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
