package search

import (
	"context"

	"nodest/index"
)

// Vectors are those of a file's chunks in one space. They are immutable and safe for concurrent
// use.
type Vectors struct {
	packed []index.Packed
	scales []float32
}

// NewVectors prepares the vectors of a file's chunks, by their index; nil where one is missing.
// It keeps packed.
func NewVectors(packed []index.Packed) *Vectors {
	v := &Vectors{packed, make([]float32, len(packed))}
	for i, p := range packed {
		if len(p) > 0 {
			v.scales[i] = p.Scale()
		}
	}
	return v
}

// Bytes estimates the memory that vectors take.
func (v *Vectors) Bytes() (n int) {
	n = 64
	for _, p := range v.packed {
		n += 28 + len(p)
	}
	return n
}

// Count returns how many chunks have a vector.
func (v *Vectors) Count() (n int) {
	for _, p := range v.packed {
		if len(p) > 0 {
			n++
		}
	}
	return n
}

// cosine of a chunk with a question; false = it has no vector of that length.
func (v *Vectors) cosine(p *index.Probe, chunk int) (float32, bool) {
	if v == nil || chunk >= len(v.packed) || len(v.packed[chunk]) != p.Dim() {
		return 0, false
	}
	return p.Cosine(v.packed[chunk], v.scales[chunk]), true
}

// scanned is how many vectors a core compares before it takes the next ones.
const scanned = 512

// byVectors compares a question with the vectors of all chunks.
func byVectors(ctx context.Context, files []File, question []float32, depth int) (*leg, error) {
	probe := index.NewProbe(question)
	l := &leg{best: make([][3]float32, len(files))}
	if probe == nil {
		return l, nil
	}
	type part struct{ file, from, to int }
	var parts []part
	for f := range files {
		if v := files[f].Vectors; v != nil {
			for from := 0; from < len(v.packed); from += scanned {
				parts = append(parts, part{f, from, min(from+scanned, len(v.packed))})
			}
		}
	}
	bests := make([][3]float32, len(parts))
	var tops []*top
	err := onCores(ctx, len(parts), func() func(int) {
		t := &top{most: depth, files: files}
		tops = append(tops, t)
		return func(i int) {
			p := parts[i]
			for c := p.from; c < p.to; c++ {
				if cosine, ok := files[p.file].Vectors.cosine(probe, c); ok {
					three(&bests[i], cosine)
					t.add(scored{Ref{p.file, c}, cosine})
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		for _, score := range bests[i] {
			three(&l.best[p.file], score)
		}
	}
	l.top = merged(tops, depth, files)
	return l, nil
}
