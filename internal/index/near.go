package index

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// scanLimit is the time after which no further part of a space is read.
const scanLimit = 25 * time.Millisecond

// Near returns at most n rows with vectors of q's model, nearest first. Those in memory are
// compared in full. Of stored ones all signs are compared, the newest segments first, and then
// the vectors of the first read of them; the cosines of the others are estimates. whole is false
// if there was not enough time for all of them.
func (v View) Near(ctx context.Context, q Vector, n, read int) (near []Near, whole bool, err error) {
	near, _, whole, err = v.NearAmong(ctx, q, n, read, 0)
	return near, whole, err
}

// Sample is the cosines of a question with some of the rows that have a vector of its model, the same rows for
// every question.
type Sample struct {
	Cosines []float32
	Of      int // how many rows have such a vector, about
}

// NearAmong is Near with a sample of about so many of all rows.
func (v View) NearAmong(ctx context.Context, q Vector, n, read, sampled int) (near []Near, sample Sample, whole bool, err error) {
	packed := Pack(q.Values)
	if packed == nil {
		return nil, sample, true, nil
	}
	held, err := v.x.vectors.near(ctx, q, packed, n)
	if err != nil {
		return nil, sample, false, err
	}
	rows := v.spread(sampled)
	near, compared, whole, err := v.x.nearStored(ctx, q, packed, n, read, rows)
	if err != nil {
		return nil, sample, false, err
	}
	for _, f := range held {
		near = append(near, Near{v.x.inMemory().from + int(v.x.newest.numbers[v.x.byID[f.ID].came]), f.Similarity})
	}
	for _, row := range rows {
		c, ok := compared[row]
		if s, local := v.x.at(row); s.held != nil {
			k := v.x.vectors.of(ctx, s.held.rows[local].id, q)
			c, ok = packed.Cosine(k), len(k) > 0
		}
		if ok {
			sample.Cosines = append(sample.Cosines, c)
		}
	}
	sample.Of = v.x.rows() * len(sample.Cosines) / max(1, len(rows))
	slices.SortFunc(near, func(a, b Near) int { return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Row, b.Row)) })
	return near[:min(n, len(near))], sample, whole, nil
}

// sampleRun is how many rows of a sample follow each other: what is read of them is stored together.
const sampleRun = 8

// spread returns about so many rows, in runs that are spread evenly.
func (v View) spread(count int) (rows []int) {
	if count == 0 {
		return nil
	}
	slots := v.x.slots()
	for first := 0; first < slots; first += max(sampleRun, slots*sampleRun/count) {
		for n := first; n < min(slots, first+sampleRun); n++ {
			if s, local := v.x.at(n); local < s.Rows && !s.stale.has(local) {
				rows = append(rows, n)
			}
		}
	}
	return rows
}

// nearStored is Near for the stored rows. compared has the cosines of the rows among others, too.
func (x *Index) nearStored(ctx context.Context, q Vector, packed Packed, n, read int, others []int) (near []Near, compared map[int]float32, whole bool, err error) {
	stored := x.inMemory().from // rows
	if stored == 0 {
		return nil, nil, true, nil
	}
	s := scans.Get().(*scan)
	defer scans.Put(s)
	s.bits, s.differs = signsOf(packed.numbers()), slices.Grow(s.differs[:0], stored)[:stored]
	clear(s.differs)
	if whole, err = s.run(ctx, x, q); err != nil {
		return nil, nil, false, err
	}
	for _, in := range x.stored() {
		in.stale.each(func(row int) { s.differs[in.from+row] = 0 })
	}
	best := s.best(n)
	read = min(read, len(best))
	if compared, err = x.compare(ctx, q, packed, slices.Concat(best[:read], others)); err != nil {
		return nil, nil, false, err
	}
	for i, row := range best {
		if c, ok := compared[row]; ok {
			near = append(near, Near{row, c})
		} else if i >= read {
			near = append(near, Near{row, s.cosine(row)})
		}
	}
	return near, compared, whole, nil
}

// cosine estimates that of a row from the signs: each differs as often as the angle is of a half
// turn.
func (s *scan) cosine(row int) float32 {
	return float32(math.Cos(math.Pi * float64(s.differs[row]-1) / float64(64*len(s.bits))))
}

// scan compares the signs of stored vectors with those of a query.
type scan struct {
	bits    []uint64
	differs []uint16 // by row: one more than the signs that differ; 0 = no vector
}

var scans = sync.Pool{New: func() any { return new(scan) }}

func (s *scan) run(ctx context.Context, x *Index, q Vector) (whole bool, err error) {
	end := time.Now().Add(scanLimit)
	for _, in := range slices.Backward(x.stored()) {
		space := in.Space(q.Model, len(q.Values))
		if space == nil {
			continue
		}
		numbers := space.Parts()
		for at, number := range slices.Backward(numbers) {
			if time.Now().After(end) {
				return false, nil
			}
			parts, err := x.source.Parts(ctx, x.key, []Part{{in.ID, number}})
			if err != nil {
				return false, err
			}
			space.Differ(parts[0], at, s.bits, s.differs[in.from:in.from+in.Rows])
		}
	}
	return true, nil
}

// best returns about n rows, those that differ least, by how much they do.
func (s *scan) best(n int) []int {
	var of [mostBits + 2]int // rows by how much they differ
	for _, d := range s.differs {
		of[d]++
	}
	most, count := 0, 0
	for most < len(of)-1 && count < n {
		most++
		count += of[most]
	}
	rows := make([]int, 0, count)
	for row, d := range s.differs {
		if d > 0 && int(d) <= most {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b int) int { return cmp.Or(cmp.Compare(s.differs[a], s.differs[b]), cmp.Compare(a, b)) })
	return rows
}

// compare computes the cosines of those of some rows that are stored and have a vector of q's model.
func (x *Index) compare(ctx context.Context, q Vector, packed Packed, rows []int) (map[int]float32, error) {
	names, err := x.ids(ctx, rows)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	vectors, err := x.source.Vectors(ctx, x.key, q.Model, slices.Sorted(maps.Values(names)))
	if err != nil {
		return nil, err
	}
	cosines := make(map[int]float32, len(names))
	for row, id := range names {
		if k := vectors[id]; len(k) == len(packed) {
			cosines[row] = packed.Cosine(k)
		}
	}
	return cosines, nil
}

// Cosine returns the cosine of two rows that were read, if both have a vector of the model that was
// asked for.
func Cosine(a, b *Found) (cosine float32, ok bool) {
	if len(a.vector) == 0 || len(a.vector) != len(b.vector) {
		return 0, false
	}
	return a.vector.Cosine(b.vector), true
}
