package framework

import (
	"encoding/binary"
	"math/bits"
)

// hashText is a fast 64-bit hash that is the same on every machine and in every
// version: stored prompts are compared by it. It resists accidents, not attacks.
func hashText(s string) uint64 { return hashOn(0x9e3779b97f4a7c15, s) }

func hashOn(h uint64, s string) uint64 {
	h = mix(h^0xa0761d6478bd642f, uint64(len(s))^0xe7037ed1a0b428db)
	for len(s) >= 8 {
		h = mix(h^binary.LittleEndian.Uint64([]byte(s[:8])), 0x8ebc6af09c88c6e3)
		s = s[8:]
	}
	if len(s) > 0 {
		var tail [8]byte
		copy(tail[:], s)
		h = mix(h^binary.LittleEndian.Uint64(tail[:]), 0x589965cc75374cc3)
	}
	return h
}

// mix folds the product; a factor of zero would lose the other one.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^b, b|1)
	return hi ^ lo ^ bits.RotateLeft64(a, 32)
}
