package reader

import (
	"hash/fnv"
	"slices"
	"strings"
	"unicode"
)

const (
	shingleWords = 4
	maxShingles  = 2048
)

// Shingles is a sample of the runs of four words in a text (of four characters in
// Chinese, Japanese and Korean), as sorted hashes. The sample has the smallest hashes, so
// that the same runs are in the samples of two texts.
type Shingles []uint64

// ShinglesOf returns the sample of a text.
func ShinglesOf(s string) Shingles {
	words := splitWords(s)
	seen := map[uint64]bool{}
	for i := 0; i+shingleWords <= len(words); i++ {
		h := fnv.New64a()
		for _, w := range words[i : i+shingleWords] {
			_, _ = h.Write([]byte(w + " "))
		}
		seen[mix(h.Sum64())] = true
	}
	all := make(Shingles, 0, len(seen))
	for h := range seen {
		all = append(all, h)
	}
	slices.Sort(all)
	return all[:min(len(all), maxShingles)]
}

// mix spreads the bits of a hash: those of FNV follow the last bytes.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

func splitWords(s string) []string {
	var words []string
	start := -1
	for i, r := range s {
		letter := unicode.IsLetter(r) || unicode.IsNumber(r)
		if start >= 0 && (!letter || wide(r)) {
			words = append(words, strings.ToLower(s[start:i]))
			start = -1
		}
		if letter && wide(r) {
			words = append(words, string(r))
		} else if letter && start < 0 {
			start = i
		}
	}
	if start >= 0 {
		words = append(words, strings.ToLower(s[start:]))
	}
	return words
}

// NearDuplicate reports whether at least nine tenths of the shorter text are in the longer one,
// which has at most three times as much. Texts of fewer than 20 shingles are never near duplicates.
func NearDuplicate(a, b Shingles) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 20 || len(b) > 3*len(a) {
		return false
	}
	if len(b) == maxShingles { // above its last hash, b is not complete
		last, _ := slices.BinarySearch(a, b[len(b)-1]+1)
		a = a[:last]
	}
	common := 0
	for _, h := range a {
		if _, ok := slices.BinarySearch(b, h); ok {
			common++
		}
	}
	return len(a) > 0 && common*10 >= len(a)*9
}
