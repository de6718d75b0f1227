package index

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestNearIsExact asks chromem itself what the nearest rows are.
func TestNearIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, rows := range []int{1, 3, 200, 5000} {
		x := New()
		var put []Row
		for i := range rows {
			put = append(put, Row{ID: fmt.Sprint(i), Vectors: []Vector{randomVector(r, 24)}})
		}
		if err := x.Apply(t.Context(), put, nil); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < rows; i += 3 { // the places of those that go are filled by others
			if err := x.Apply(t.Context(), nil, []string{fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			checkNear(t, x, randomVector(r, 24), min(50, x.Len()))
		}
	}
}

func checkNear(t *testing.T, x *Index, q Vector, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	want, err := x.vectors.of[q.space()].QueryEmbedding(t.Context(), q.Values, n, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = x.View(func(v View) error {
		got, err := v.Near(t.Context(), q, n)
		if err != nil {
			return err
		}
		if len(got) != n {
			t.Errorf("%d rows of %d", len(got), n)
		}
		for i, g := range got {
			if id := x.docs[g.Row].id; id != want[i].ID {
				t.Errorf("row %d is %s (%v), want %s (%v)", i, id, g.Cosine, want[i].ID, want[i].Similarity)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func randomVector(r *rand.Rand, dim int) Vector {
	v := Vector{Model: "m", Values: make([]float32, dim)}
	for i := range v.Values {
		v.Values[i] = float32(r.NormFloat64())
	}
	return v
}
