package search

import (
	"cmp"
	"context"
	"slices"
)

// scored is a chunk with its score by one leg.
type scored struct {
	Ref
	score float32
}

// top keeps the best chunks.
type top struct {
	most int
	ids  []string // of files
	list []scored // best first
}

func (t *top) order(a, b scored) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Or(cmp.Compare(t.ids[a.File], t.ids[b.File]), cmp.Compare(a.File, b.File), cmp.Compare(a.Chunk, b.Chunk))
}

func (t *top) add(s scored) {
	if n := len(t.list); n == t.most {
		if s.score < t.list[n-1].score || t.order(s, t.list[n-1]) > 0 {
			return
		}
		t.list = t.list[:n-1]
	}
	at, _ := slices.BinarySearchFunc(t.list, s, t.order)
	t.list = slices.Insert(t.list, at, s)
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
	top
	best [][3]float32 // of each file; its best three scores
}

func newLeg(ids []string, depth int) leg {
	return leg{top{most: depth, ids: ids}, make([][3]float32, len(ids))}
}

// collect calls what worker returns for 0 to n-1 on all cores, and keeps the best of what the
// tops get.
func (l *leg) collect(ctx context.Context, n int, worker func(t *top) func(i int)) error {
	var tops []*top
	err := onCores(ctx, n, func() func(int) {
		t := &top{most: l.most, ids: l.ids}
		tops = append(tops, t)
		return worker(t)
	})
	for _, t := range tops {
		l.list = append(l.list, t.list...)
	}
	slices.SortFunc(l.list, l.order)
	l.list = l.list[:min(l.most, len(l.list))]
	return err
}
