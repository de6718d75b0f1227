package index_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"nodest/internal/index"
)

// about returns a direction near another; less noise is nearer.
func about(r *rand.Rand, v []float32, noise float64) []float32 {
	out := direction(r, len(v))
	for i := range out {
		out[i] = v[i] + float32(noise)*out[i]
	}
	return out
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// themes returns n vectors around a hundred themes, like those of real texts.
func themes(r *rand.Rand, n, dim int) [][]float32 {
	centres := make([][]float32, 100)
	for i := range centres {
		centres[i] = direction(r, dim)
	}
	vectors := make([][]float32, n)
	for i := range vectors {
		vectors[i] = about(r, centres[r.IntN(len(centres))], 1.2)
	}
	return vectors
}

func vectorRows(vectors [][]float32) []index.Row {
	rows := make([]index.Row, len(vectors))
	for i, v := range vectors {
		rows[i] = row(fmt.Sprint(i), "", 0, "x")
		rows[i].Vectors = []index.Kept{{"m", index.Pack(v)}}
	}
	return rows
}

// near returns the n best rows found, best first, and checks their cosines.
func near(t *testing.T, x *index.Index, vectors [][]float32, q []float32, n int) (found []string) {
	t.Helper()
	err := x.View(func(v index.View) error {
		list, _, err := v.Near(t.Context(), index.Vector{"m", q}, n, n)
		for i, one := range list {
			d := v.Held(one.Row)
			id := d.(string)
			var at int
			if _, err := fmt.Sscan(id, &at); err != nil {
				return err
			}
			if want := cosine(vectors[at], q); math.Abs(want-float64(one.Cosine)) > 0.005 {
				t.Fatalf("row %s: cosine %.4f, want %.4f", id, one.Cosine, want)
			}
			if i > 0 && one.Cosine > list[i-1].Cosine {
				t.Fatalf("row %s stands behind a worse one", id)
			}
			found = append(found, id)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// nearestOf returns the n nearest by comparing all vectors.
func nearestOf(vectors [][]float32, q []float32, n int) []string {
	order := make([]int, len(vectors))
	cosines := make([]float64, len(vectors))
	for i := range vectors {
		order[i], cosines[i] = i, cosine(vectors[i], q)
	}
	slices.SortFunc(order, func(a, b int) int {
		if cosines[a] > cosines[b] {
			return -1
		}
		return 1
	})
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(order[i])
	}
	return ids
}

func missed(want, found []string) (n int) {
	for _, id := range want {
		if !slices.Contains(found, id) {
			n++
		}
	}
	return n
}

// Rows in memory are compared whole, and only by direction: of the ten nearest none is missed.
func TestTheNearestInMemoryAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ vectors, dim int }{{600, 100}, {2000, 512}, {2000, 1024}} {
		t.Run(fmt.Sprint(c.vectors, " of ", c.dim), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, 8))
			vectors := themes(r, c.vectors, c.dim)
			questions := make([][]float32, 10)
			for i := range questions {
				questions[i] = about(r, vectors[r.IntN(len(vectors))], 0.9)
			}
			stretch(r, slices.Concat(vectors, questions))
			x := filled(t, vectorRows(vectors)...)
			for _, q := range questions {
				if n := missed(nearestOf(vectors, q, 10), near(t, x, vectors, q, 12)); n > 0 {
					t.Errorf("%d of 10 were missed", n)
				}
			}
		})
	}
}

// stretch gives vectors lengths that differ by some powers of ten.
func stretch(r *rand.Rand, vectors [][]float32) {
	for _, v := range vectors {
		scale := float32(math.Exp(3 * r.NormFloat64()))
		for i := range v {
			v[i] *= scale
		}
	}
}

func TestPackedVectorsKeepTheirDirection(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	for _, factor := range []float32{1e-30, 1e-3, 1, 1e30} { // the length does not count
		v := direction(r, 1+r.IntN(900))
		for i := range v {
			v[i] *= factor
		}
		p := index.Pack(v)
		unit := p.Unit()
		if c := cosine(v, unit); c < 0.9995 {
			t.Errorf("cosine %f with %d numbers", c, len(v))
		}
		if c := p.Cosine(p); math.Abs(float64(c)-1) > 1e-6 {
			t.Errorf("cosine with itself %f", c)
		}
		if again := index.Pack(unit); !slices.Equal(again, p) {
			t.Errorf("%d numbers are packed differently when they were read", len(v))
		}
	}
}

// The stored form is that of decision 12: a float32 in little endian, and then a signed byte for
// each number.
func TestPackedVectorsAreReadByHand(t *testing.T) {
	t.Parallel()
	p := index.Pack([]float32{-30, 0, 40})
	scale := math.Float32frombits(binary.LittleEndian.Uint32(p))
	if !slices.Equal(p[4:], []byte{256 - 95, 0, 127}) || math.Abs(float64(scale)-1/math.Hypot(95, 127)) > 1e-9 {
		t.Errorf("%v, scale %g", p, scale)
	}
}

func TestAVectorWithoutADirectionIsNotPacked(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, v := range map[string][]float32{
		"nothing": nil, "zeros": {0, 0}, "not a number": {1, nan}, "without end": {inf, 1}, "without end, below": {1, -inf},
	} {
		if p := index.Pack(v); p != nil {
			t.Errorf("%s: %v", name, p)
		}
	}
}

// Vectors of different numbers of numbers, and damaged ones, are like nothing.
func TestVectorsThatCannotBeComparedAreLikeNothing(t *testing.T) {
	t.Parallel()
	p := index.Pack([]float32{1, 0})
	for name, other := range map[string]index.Packed{"none": nil, "short": {1, 2}, "no numbers": {0, 0, 128, 63}, "longer": index.Pack([]float32{1, 0, 0})} {
		if c := p.Cosine(other) + other.Cosine(p) + other.Cosine(other[:min(4, len(other))]); c != 0 {
			t.Errorf("%s: %f", name, c)
		}
		if other.Dim() > 3 || len(other.Unit()) != other.Dim() {
			t.Errorf("%s: %d numbers", name, other.Dim())
		}
	}
}
