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
	most  int
	files []File
	list  []scored // best first
}

func (t *top) order(a, b scored) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Or(cmp.Compare(t.files[a.File].ID, t.files[b.File].ID), cmp.Compare(a.File, b.File), cmp.Compare(a.Chunk, b.Chunk))
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

func merged(tops []*top, most int, files []File) []scored {
	all := &top{files: files}
	for _, t := range tops {
		all.list = append(all.list, t.list...)
	}
	slices.SortFunc(all.list, all.order)
	return all.list[:min(most, len(all.list))]
}

// three keeps the best three scores, best first.
func three(best *[3]float32, score float32) {
	for i, b := range best {
		if score > b {
			best[i], score = score, b
		}
	}
}

// byWords scores all chunks that have a term of the wording.
func byWords(ctx context.Context, files []File, w *wording, depth int) (*leg, error) {
	found, err := lookUp(ctx, files, w)
	if err != nil {
		return nil, err
	}
	l := &leg{best: make([][3]float32, len(files))}
	var tops []*top
	err = onCores(ctx, len(files), func() func(int) {
		t, x := &top{most: depth, files: files}, &scratch{}
		tops = append(tops, t)
		return func(i int) {
			found.score(x, i, func(chunk int, score float32) {
				three(&l.best[i], score)
				t.add(scored{Ref{i, chunk}, score})
			})
		}
	})
	if err != nil {
		return nil, err
	}
	l.top = merged(tops, depth, files)
	return l, nil
}
