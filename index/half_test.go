package index

import (
	"bytes"
	"encoding/binary"
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

// TestHalvesAreRead packs vectors with ever more numbers that are not 0, and such of models.
func TestHalvesAreRead(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	used := map[int]bool{}
	for n := range 3000 {
		p, share := make(Packed, 1+random.IntN(600)), random.Float64()
		for i := range p {
			switch x := random.Float64(); {
			case n%3 == 0:
				p[i] = byte(random.IntN(256)) // as long as can be
			case n%3 == 1:
				p[i] = byte(int8(max(-127, min(127, 38*random.NormFloat64()))))
			case x < share:
				p[i] = byte(21 * (1 - 2*random.IntN(2)) << random.IntN(3))
			}
		}
		half := p.Half()
		head, _ := binary.Uvarint(half)
		used[int(head)%len(codings)] = true
		if most := len(p)/2 + 4; len(half) > most {
			t.Fatalf("%d bytes of %d numbers, want at most %d", len(half), len(p), most)
		}
		whole := Whole(half)
		if len(whole) != len(p) {
			t.Fatalf("%d numbers, want %d", len(whole), len(p))
		}
		for i, b := range whole {
			if want := byte(squared(rooted(int8(p[i])))); b != want {
				t.Fatalf("%d is read as %d, want %d", int8(p[i]), int8(b), int8(want))
			}
		}
		if again := whole.Half(); !bytes.Equal(again, half) {
			t.Fatalf("%x is read and stored as %x", half, again)
		}
	}
	if len(used) != len(codings) {
		t.Errorf("codings %v were used, want all %d", used, len(codings))
	}
}

func FuzzWhole(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(Packed{127, 0, 129, 3}.Half())
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, half []byte) {
		p := Whole(half)
		if len(p) > 8*len(half) {
			t.Fatalf("%d numbers of %d bytes", len(p), len(half))
		}
		if again := Whole(p.Half()); !bytes.Equal(again, p) {
			t.Fatalf("%v is stored and read as %v", p, again)
		}
	})
}
