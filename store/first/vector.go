package first

import (
	"encoding/binary"
	"math"
	"slices"
)

// A vector of a memory has the sign of each number and the root of its size, from 0 to mostRoot, in
// one of five codes. In front is a varint: how many numbers there are, times the number of codes,
// plus the place of the code.
const (
	mostRoot = 7
	codeBits = 7 // bits of the longest code
)

// coding has the number that some bits begin with, and how many bits are of it.
type coding [1 << codeBits]struct {
	number int8
	bits   uint8
}

// codings are made of the lengths of the codes of roots, from 0, without the sign that all but 0 have.
var codings = [...]coding{
	newCoding(1, 3, 3, 4, 3, 5, 6, 6),
	newCoding(1, 6, 4, 2, 4, 4, 5, 6),
	newCoding(2, 5, 2, 2, 3, 4, 6, 6),
	newCoding(6, 4, 2, 2, 2, 3, 5, 6),
	newCoding(3, 3, 3, 3, 3, 3, 3, 3),
}

func newCoding(lengths ...int) (c coding) {
	at := 0
	for length := 1; length <= codeBits; length++ {
		for root := -mostRoot; root <= mostRoot; root++ {
			if lengths[max(root, -root)]+min(root*root, 1) != length {
				continue
			}
			for range 1 << (codeBits - length) {
				c[at].number, c[at].bits = squared(root), uint8(length) //nolint:gosec // at most codeBits
				at++
			}
		}
	}
	return c
}

// squared is the number with this root.
func squared(root int) int8 {
	size := (root*root*127 + mostRoot*mostRoot/2) / (mostRoot * mostRoot)
	return int8(math.Copysign(float64(size), float64(root)))
}

// whole reads a vector of a memory. Of damaged bytes it is nil, or some vector.
func whole(stored []byte) []float32 {
	head, n := binary.Uvarint(stored)
	dim, of := head/uint64(len(codings)), &codings[head%uint64(len(codings))]
	if n <= 0 || dim > 8*uint64(len(stored)-n) {
		return nil
	}
	stored = stored[n:]
	v := make([]float32, dim)
	word, bits := uint64(0), 0 // the next bits are on top
	// The codes of eight numbers are in a word.
	for some := range slices.Chunk(v, 8) {
		for ; bits <= 56 && len(stored) > 0; bits += 8 {
			word, stored = word|uint64(stored[0])<<(56-bits), stored[1:]
		}
		for i := range some {
			next := of[word>>(64-codeBits)]
			some[i], word, bits = float32(next.number), word<<(next.bits&63), bits-int(next.bits)
		}
	}
	return v
}

// signed reads a vector of a document.
func signed(stored []byte) []float32 {
	v := make([]float32, len(stored))
	for i, b := range stored {
		v[i] = float32(int8(b)) //nolint:gosec // a signed byte
	}
	return v
}
