package search

import (
	"context"

	"nodest/internal/index"
)

// Vectors are those of a file's chunks in one space. They are immutable and safe for concurrent
// use.
type Vectors struct {
	packed []index.Packed
	bytes  int
}

// NewVectors prepares the vectors of a file's chunks, by their index; nil where one is missing.
// It keeps packed.
func NewVectors(packed []index.Packed) *Vectors {
	v := &Vectors{packed, 64}
	for _, p := range packed {
		v.bytes += 24 + len(p)
	}
	return v
}

// Bytes estimates the memory that vectors take.
func (v *Vectors) Bytes() int { return v.bytes }

// cosine of a chunk with a question; false = it has no vector of that length.
func (v *Vectors) cosine(q index.Packed, chunk int) (float32, bool) {
	if v == nil || chunk >= len(v.packed) || len(v.packed[chunk]) != len(q) {
		return 0, false
	}
	return q.Cosine(v.packed[chunk]), true
}

// scanned is how many vectors a core compares before it takes the next ones.
const scanned = 512

// vectorLeg is a search by vectors.
type vectorLeg struct {
	leg
	probe index.Packed // the question's vector
}

// rank compares the question with the vectors of a group of files.
func (l *vectorLeg) rank(ctx context.Context, files []int, vectors []*Vectors) error {
	type part struct{ at, from, to int }
	var parts []part
	for i, v := range vectors {
		if v != nil {
			for from := 0; from < len(v.packed); from += scanned {
				parts = append(parts, part{i, from, min(from+scanned, len(v.packed))})
			}
		}
	}
	bests := make([][3]float32, len(parts))
	err := l.collect(ctx, len(parts), func(t *index.Top[scored]) func(int) {
		return func(i int) {
			p := parts[i]
			for c := p.from; c < p.to; c++ {
				if cosine, ok := vectors[p.at].cosine(l.probe, c); ok {
					three(&bests[i], cosine)
					t.Add(scored{Ref{files[p.at], c}, cosine})
				}
			}
		}
	})
	for i, p := range parts {
		for _, score := range bests[i] {
			three(&l.best[files[p.at]], score)
		}
	}
	return err
}
