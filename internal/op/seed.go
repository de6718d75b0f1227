package op

import "hash/fnv"

// Seed is a number that an id decides: what is drawn with it can be drawn again.
func Seed(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}
