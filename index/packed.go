package index

import "math"

// Packed is a vector as it is stored: a signed byte for each number, scaled to ±127. Only its
// direction is kept. Cosines differ from the original ones by less than 0.005.
type Packed []byte

// Pack packs a vector; nil without a direction (no numbers, all zero, or some not finite).
func Pack(v []float32) Packed {
	if !(Vector{Values: v}).directed() {
		return nil
	}
	most := 0.0
	for _, f := range v {
		most = max(most, math.Abs(float64(f)))
	}
	p := make(Packed, len(v))
	for i, f := range v {
		p[i] = byte(int8(math.Round(float64(f) / most * 127)))
	}
	return p
}

// product is the scalar product of two vectors of the same length, in four independent sums.
func (p Packed) product(q Packed) int64 {
	var s0, s1, s2, s3 int64
	q = q[:len(p)]
	for len(p) >= 4 && len(q) >= 4 {
		s0 += int64(int8(p[0])) * int64(int8(q[0]))
		s1 += int64(int8(p[1])) * int64(int8(q[1]))
		s2 += int64(int8(p[2])) * int64(int8(q[2]))
		s3 += int64(int8(p[3])) * int64(int8(q[3]))
		p, q = p[4:], q[4:]
	}
	for i := range p {
		s0 += int64(int8(p[i])) * int64(int8(q[i]))
	}
	return s0 + s1 + s2 + s3
}

// scale gives a vector length one.
func (p Packed) scale() float32 { return float32(1 / math.Sqrt(float64(p.product(p)))) }

// signs are pseudo-random (Fibonacci hashing).
var signs = func() (s [4096]float32) {
	for i := range s {
		s[i] = 1
		if uint32(i)*2_654_435_761 < 1<<31 {
			s[i] = -1
		}
	}
	return s
}()

// sketch folds a vector into len(into) numbers, of length one, whose cosines are on average
// those of the vectors: each number is added to or subtracted from one of them.
func (p Packed) sketch(into []float32) {
	clear(into)
	for from := 0; from < len(p); from += len(into) {
		part := p[from:min(len(p), from+len(into))]
		for i, b := range part {
			into[i] += float32(int8(b)) * signs[(from+i)%len(signs)]
		}
	}
	var square float64
	for _, f := range into {
		square += float64(f) * float64(f)
	}
	if square == 0 {
		into[0] = 1 // no direction is as good as another
		return
	}
	scale := 1 / math.Sqrt(square)
	for i := range into {
		into[i] = float32(float64(into[i]) * scale)
	}
}

// Probe is a vector that many packed ones are compared with.
type Probe struct {
	packed Packed
	scale  float32
}

// NewProbe returns a probe; nil if v has no direction.
func NewProbe(v []float32) *Probe {
	p := Pack(v)
	if p == nil {
		return nil
	}
	return &Probe{p, p.scale()}
}

// Dim returns the length of the vectors that p can be compared with.
func (p *Probe) Dim() int { return len(p.packed) }

// Cosine compares p with a vector of its length, whose Scale is given.
func (p *Probe) Cosine(v Packed, scale float32) float32 {
	return float32(p.packed.product(v)) * p.scale * scale
}

// Scale is one divided by the length of a vector.
func (p Packed) Scale() float32 { return p.scale() }
