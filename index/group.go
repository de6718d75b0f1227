package index

import (
	"cmp"
	"slices"
	"strings"
)

type group struct {
	name   string
	number int32 // of those with a name, from 0; -1 = a row that stands alone
	docs   []int32
	length int32 // terms of all its rows
}

// place is where a row is in its group, with what a ranking needs to know of every row.
type place struct {
	group *group // nil in a gap
	at    int32  // in group

	// Terms in the row itself, and in the windows around it that Match scores.
	own, near, around int32
}

// group returns the group of a name, and a new one for each row without.
func (x *Index) group(name string) *group {
	g := x.groups[name]
	if g == nil {
		g = &group{name: name, number: -1}
		if name != "" {
			g.number = x.numbers
			x.numbers++
			x.groups[name] = g
		}
	}
	return g
}

// arrange sorts the groups that have changed, if marked, and updates the places of their rows.
// Empty groups are removed.
func (x *Index) arrange(changed map[*group]bool) {
	for g, marked := range changed {
		if marked {
			g.docs = slices.DeleteFunc(g.docs, func(n int32) bool { return x.places[n].group != g })
			slices.SortFunc(g.docs, x.inOrder)
		}
		if len(g.docs) == 0 {
			if x.groups[g.name] == g {
				delete(x.groups, g.name)
			}
			continue
		}
		x.locate(g)
	}
}

func (x *Index) inOrder(a, b int32) int {
	return cmp.Or(cmp.Compare(x.docs[a].order, x.docs[b].order), strings.Compare(x.docs[a].id, x.docs[b].id))
}

func (x *Index) locate(g *group) {
	before := make([]int32, len(g.docs)+1) // terms in front of each row
	for i, n := range g.docs {
		before[i+1] = before[i] + int32(len(x.docs[n].terms))
	}
	within := func(at, reach int) int32 {
		return before[min(len(g.docs), at+reach+1)] - before[max(0, at-reach)]
	}
	for i, n := range g.docs {
		x.places[n] = place{group: g, at: int32(i), own: within(i, 0), near: within(i, nearReach), around: within(i, aroundReach)}
	}
	g.length = before[len(g.docs)]
}

// window returns the rows within reach of a place, as a part of its group.
func (p *place) window(reach int) []int32 {
	return p.group.docs[max(0, int(p.at)-reach):min(len(p.group.docs), int(p.at)+reach+1)]
}
