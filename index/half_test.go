package index

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestHalvesOfVectorsKeepTheirCosines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	cosine := func(p, q Packed) float64 { return float64(p.product(q)) * float64(p.scale()) * float64(q.scale()) }
	sum, most, n := 0.0, 0.0, 0
	for _, dim := range []int{1, 7, 64, 512, 513} {
		for range 200 {
			shared, a, b := random.Float32(), make([]float32, dim), make([]float32, dim)
			for i := range a {
				x := float32(random.NormFloat64())
				a[i], b[i] = x, shared*x+(1-shared)*float32(random.NormFloat64())
			}
			p, q := Pack(a), Pack(b)
			half := Whole(q.Half())
			if len(half) != dim {
				t.Fatalf("%d numbers, want %d", len(half), dim)
			}
			if dim < 64 {
				continue
			}
			wrong := math.Abs(cosine(p, q) - cosine(p, half))
			sum, most, n = sum+wrong, max(most, wrong), n+1
		}
	}
	t.Logf("cosines differ by %.4f, at most %.4f", sum/float64(n), most)
	if sum/float64(n) > 0.01 || most > 0.05 {
		t.Errorf("cosines differ by %.4f, at most %.4f", sum/float64(n), most)
	}
}
