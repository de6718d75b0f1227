package search

import (
	"cmp"
	"context"
	"slices"

	"nodest/internal/index"
)

// scored is a chunk with its score by one leg.
type scored struct {
	Ref
	score float32
}

// three keeps the best three scores, best first.
func three(best *[3]float32, score float32) {
	for i, b := range best {
		if score > b {
			best[i], score = score, b
		}
	}
}

// leg is what one way of searching finds, group by group of files.
type leg struct {
	index.Top[scored]
	best [][3]float32 // the best three scores of each file
}

func newLeg(ids []string, depth int) leg {
	order := func(a, b scored) int {
		if a.score != b.score {
			return cmp.Compare(b.score, a.score)
		}
		return cmp.Or(cmp.Compare(ids[a.File], ids[b.File]), cmp.Compare(a.File, b.File), cmp.Compare(a.Chunk, b.Chunk))
	}
	return leg{index.Top[scored]{Most: depth, Order: order}, make([][3]float32, len(ids))}
}

// collect calls what worker returns for 0 to n-1 on all cores, and keeps the best of what the
// tops get.
func (l *leg) collect(ctx context.Context, n int, worker func(t *index.Top[scored]) func(i int)) error {
	var tops []*index.Top[scored]
	err := onCores(ctx, n, func() func(int) {
		t := &index.Top[scored]{Most: l.Most, Order: l.Order}
		tops = append(tops, t)
		return worker(t)
	})
	for _, t := range tops {
		l.List = append(l.List, t.List...)
	}
	slices.SortFunc(l.List, l.Order)
	l.List = l.List[:min(l.Most, len(l.List))]
	return err
}
