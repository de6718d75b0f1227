package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"nodest/index"
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

// Among more vectors than are compared in full, at most one in a hundred of the ten
// nearest is missed; among fewer, none is.
func TestTheNearestAreFound(t *testing.T) {
	for _, c := range []struct{ vectors, dim, allowed int }{
		{600, 512, 0}, {600, 100, 0}, {2000, 512, 2}, {2000, 1024, 0}, {2000, 100, 0},
	} {
		t.Run(fmt.Sprint(c.vectors, " of ", c.dim), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			vectors := themes(r, c.vectors, c.dim)
			x := filled(t, vectorRows(vectors)...)
			lost := 0
			for range 10 {
				q := about(r, vectors[r.IntN(len(vectors))], 0.9)
				lost += missed(nearestOf(vectors, q, 10), near(t, x, vectors, q, 200))
			}
			t.Logf("%d of 100 missed", lost)
			if lost > c.allowed {
				t.Errorf("%d of 100 were missed", lost)
			}
		})
	}
}

// A vector whose sketch is zero, because its numbers cancel out when folded, is still
// found.
func TestAVectorWithAZeroSketchIsStillFound(t *testing.T) {
	const dim = 512
	sign := func(i int) float32 {
		if uint32(i)*2_654_435_761 < 1<<31 {
			return -1
		}
		return 1
	}
	lost := make([]float32, dim)
	for i := range 128 {
		lost[i], lost[i+128] = sign(i), -sign(i+128)
	}
	vectors := append(themes(rand.New(rand.NewPCG(1, 1)), 50, dim), lost)
	x := filled(t, vectorRows(vectors)...)
	if found := near(t, x, vectors, lost, 1); !slices.Equal(found, []string{"50"}) {
		t.Errorf("found %v", found)
	}
}

func TestPackedVectorsKeepTheirDirection(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 50 {
		v := direction(r, 1+r.IntN(900))
		for i := range v {
			v[i] *= 1e-3 // the length does not count
		}
		back := make([]float32, len(v))
		for i, b := range index.Pack(v) {
			back[i] = float32(int8(b))
		}
		if c := cosine(v, back); c < 0.9995 {
			t.Errorf("cosine %f with %d numbers", c, len(v))
		}
	}
	for name, v := range map[string][]float32{
		"nothing": nil, "zeros": {0, 0}, "not a number": {1, float32(math.NaN())}, "without end": {float32(math.Inf(1)), 1},
	} {
		if p := index.Pack(v); p != nil {
			t.Errorf("%s: %v", name, p)
		}
	}
}
