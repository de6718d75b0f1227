package index

import (
	"encoding/binary"
	"math"
	"slices"
)

// A vector is stored with the sign of each number and the root of its size, from 0 to mostRoot:
// small numbers are many, and more of them is kept. A common root takes fewer bits. In front is a
// varint: how many numbers there are, times the number of codings, plus the place of the one in use.

const (
	mostRoot = 7
	codeBits = 7 // of the longest code
)

// code is the bits of a number, or the number that some bits begin with.
type code struct {
	value  byte
	length uint8 // in bits
}

type coding struct {
	write [256]code // by number
	read  [1 << codeBits]code
}

// codings are made of the lengths of the codes of roots, from 0, without the sign that all but 0
// have. The first three are for the built-in embedder and fit its vectors of texts of chats: most
// numbers are 0, more of them in short texts. The next one fits a normal distribution, as models
// make it, and with the last one no number takes more than four bits.
var codings = [...]coding{
	newCoding(1, 3, 3, 4, 3, 5, 6, 6),
	newCoding(1, 6, 4, 2, 4, 4, 5, 6),
	newCoding(2, 5, 2, 2, 3, 4, 6, 6),
	newCoding(6, 4, 2, 2, 2, 3, 5, 6),
	newCoding(3, 3, 3, 3, 3, 3, 3, 3),
}

func newCoding(lengths ...byte) (c coding) {
	byNumber := map[int]code{}
	at := 0
	for length := byte(1); length <= codeBits; length++ {
		for number := -mostRoot; number <= mostRoot; number++ {
			signed := min(byte(number*number), 1)
			if lengths[max(number, -number)]+signed != length {
				continue
			}
			byNumber[number] = code{byte(at >> (codeBits - length)), length}
			for range 1 << (codeBits - length) {
				c.read[at] = code{byte(squared(number)), length}
				at++
			}
		}
	}
	for b := range c.write {
		c.write[b] = byNumber[rooted(int8(b))]
	}
	return c
}

// rooted is the root of the size of a number, with its sign.
func rooted(number int8) int {
	root := math.Round(mostRoot * math.Sqrt(math.Abs(float64(number))/127))
	return int(math.Copysign(root, float64(number)))
}

// squared is a number of which this is the root.
func squared(root int) int8 {
	size := (root*root*127 + mostRoot*mostRoot/2) / (mostRoot * mostRoot)
	return int8(math.Copysign(float64(size), float64(root)))
}

// bits is how many bits p takes.
func (c *coding) bits(p Packed) (n int) {
	for _, b := range p {
		n += int(c.write[b].length)
	}
	return n
}

// Half is p as it is stored, in four bits for each number or less. Cosines differ by 0.007 on
// average.
func (p Packed) Half() []byte {
	best, bits := 0, math.MaxInt
	for i := range codings {
		if n := codings[i].bits(p); n < bits {
			best, bits = i, n
		}
	}
	half := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+bits/8+1), uint64(len(p)*len(codings)+best))
	word, n := uint64(0), byte(0)
	for _, b := range p {
		next := codings[best].write[b]
		word, n = word<<next.length|uint64(next.value), n+next.length
		for ; n >= 8; n -= 8 {
			half = append(half, byte(word>>(n-8)))
		}
	}
	if n > 0 {
		half = append(half, byte(word<<(8-n)))
	}
	return half
}

// Whole is the vector of a Half. Of bytes that are damaged it is nil, or some vector of at most
// eight numbers for each of them.
func Whole(half []byte) Packed {
	head, n := binary.Uvarint(half)
	dim, of := head/uint64(len(codings)), &codings[head%uint64(len(codings))]
	if n <= 0 || dim > 8*uint64(len(half)-n) {
		return nil
	}
	half = half[n:]
	p := make(Packed, dim)
	word, bits := uint64(0), 0 // the next bits are on top
	// The codes of eight numbers are in a word.
	for some := range slices.Chunk(p, 8) {
		for ; bits <= 56 && len(half) > 0; bits += 8 {
			word, half = word|uint64(half[0])<<(56-bits), half[1:]
		}
		for i := range some {
			next := of.read[word>>(64-codeBits)]
			some[i], word, bits = next.value, word<<(next.length&63), bits-int(next.length)
		}
	}
	return p
}
