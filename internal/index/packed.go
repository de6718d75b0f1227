package index

import (
	"encoding/binary"
	"math"
)

// Packed is a vector as it is stored: a scale (float32, little endian), and then a signed byte for
// each number. The scale times these bytes is the vector with length one: only its direction counts.
// Cosines differ from the original ones by less than 0.005. docs/decisions/0012-retrieval.md shows how
// to read it by hand.
type Packed []byte

const scaleBytes = 4

// Pack packs a vector of any length; nil without a direction (no numbers, all zero, or some not
// finite).
func Pack(v []float32) Packed {
	most := 0.0
	for _, f := range v {
		most = max(most, math.Abs(float64(f)))
	}
	if most == 0 || math.IsNaN(most) || math.IsInf(most, 1) {
		return nil
	}
	p, square := make(Packed, scaleBytes, scaleBytes+len(v)), 0.0
	for _, f := range v {
		n := math.Round(float64(f) / most * 127)
		square += n * n
		p = append(p, byte(int8(n)))
	}
	binary.LittleEndian.PutUint32(p, math.Float32bits(float32(1/math.Sqrt(square))))
	return p
}

// Dim returns how many numbers p has.
func (p Packed) Dim() int { return len(p.numbers()) }

// numbers are the signed bytes.
func (p Packed) numbers() []byte { return p[min(scaleBytes, len(p)):] }

// scale makes the length one; 0 if p is damaged.
func (p Packed) scale() float32 {
	if len(p) <= scaleBytes {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(p))
}

// Unit returns the numbers of p with length one.
func (p Packed) Unit() []float32 {
	v, scale := make([]float32, p.Dim()), p.scale()
	for i, b := range p.numbers() {
		v[i] = scale * float32(int8(b))
	}
	return v
}

// Cosine compares two vectors; 0 if they have different numbers of numbers.
func (p Packed) Cosine(q Packed) float32 {
	if len(p) != len(q) {
		return 0
	}
	return float32(product(p.numbers(), q.numbers())) * p.scale() * q.scale()
}

// product is the scalar product of signed bytes of the same length, in four independent sums.
func product(p, q []byte) int64 {
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
