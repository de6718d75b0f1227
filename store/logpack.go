package store

import (
	"math/bits"
	"sync"
)

// deflateShort writes a short text as one deflated block with the fixed codes of RFC 1951,
// and finds repetitions in the text and in a dictionary. A flate.Writer makes as few bytes
// of such a text, but it clears and fills tables of 700 KB before each one.

const (
	shortText  = 2 << 10 // bytes up to which a text is short
	hashBits   = 12
	chainSteps = 32  // places that are compared at most
	leastMatch = 4   // bytes
	mostMatch  = 258 // bytes
)

// shortWords are words and where they repeat. Places count from 1; 0 = none.
type shortWords struct {
	words []byte
	last  [1 << hashBits]uint16 // the last place with each hash
	prev  []uint16              // the place before a place with the same hash
}

// shortDict is a dictionary that is ready for use. It is safe for concurrent use.
type shortDict struct {
	shortWords
	writers sync.Pool // of *shortDeflater, whose words begin with the dictionary
}

// newShortDict reads a dictionary of at most 32 KB.
func newShortDict(words string) *shortDict {
	d := &shortDict{shortWords: shortWords{words: []byte(words), prev: make([]uint16, len(words))}}
	for at := range len(words) {
		d.note(at)
	}
	d.writers.New = func() any {
		w := &shortDeflater{shortWords: shortWords{words: make([]byte, len(words)+shortText), prev: make([]uint16, len(words)+shortText)}}
		copy(w.words, words)
		copy(w.prev, d.prev)
		return w
	}
	return d
}

func hashOf(b []byte) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) * 2654435761 >> (32 - hashBits)
}

// shortDeflater deflates one text.
type shortDeflater struct {
	shortWords // of the dictionary, and behind them the text
	out        []byte
	bits       uint64
	count      uint // of bits that are not in out yet
}

// deflateShort appends a text of at most shortText bytes, deflated with a dictionary, to out.
func (d *shortDict) deflateShort(out, text []byte) []byte {
	w := d.writers.Get().(*shortDeflater)
	defer d.writers.Put(w)
	all := w.words
	defer func() { w.words, w.out = all, nil }()
	size := len(d.words) + copy(all[len(d.words):], text)
	w.words, w.last, w.out, w.bits, w.count = all[:size], d.last, out, 0, 0
	w.put(0b011, 3) // the last block, with fixed codes
	for at := len(d.words); at < size; {
		length, distance := w.longest(at)
		if length >= leastMatch {
			if longer, back := w.later(at, length); longer > length { // a literal first
				w.literal(w.words[at])
				at, length, distance = at+1, longer, back
			}
			w.match(length, distance)
		} else {
			length = 1
			w.literal(w.words[at])
		}
		for range length {
			w.note(at)
			at++
		}
	}
	w.put(0, 7) // end of the block
	for ; w.count > 0; w.count -= min(w.count, 8) {
		w.out = append(w.out, byte(w.bits))
		w.bits >>= 8
	}
	return w.out
}

// later is the longest match one byte behind at, where it may be worth a literal.
func (w *shortDeflater) later(at, length int) (longer, distance int) {
	w.note(at)
	if length >= 32 {
		return 0, 0
	}
	return w.longest(at + 1)
}

// note makes a place known to later ones.
func (w *shortWords) note(at int) {
	if at+leastMatch > len(w.words) {
		return
	}
	if h := hashOf(w.words[at:]); w.last[h] != uint16(at+1) {
		w.prev[at], w.last[h] = w.last[h], uint16(at+1)
	}
}

// longest finds the longest match of what begins at a place, the nearest one of them.
func (w *shortWords) longest(at int) (length, distance int) {
	if at+leastMatch > len(w.words) {
		return 0, 0
	}
	rest := w.words[at:min(at+mostMatch, len(w.words))]
	from := int(w.last[hashOf(rest)])
	for step := 0; from != 0 && step < chainSteps; step++ {
		n := 0
		for n < len(rest) && w.words[from-1+n] == rest[n] {
			n++
		}
		if n > length {
			length, distance = n, at-(from-1)
		}
		from = int(w.prev[from-1])
	}
	return length, distance
}

// put writes the n low bits of v, the lowest first.
func (w *shortDeflater) put(v uint32, n uint) {
	w.bits |= uint64(v) << w.count
	for w.count += n; w.count >= 8; w.count -= 8 {
		w.out = append(w.out, byte(w.bits))
		w.bits >>= 8
	}
}

// code writes a Huffman code, whose highest bit comes first.
func (w *shortDeflater) code(v uint32, n uint) { w.put(bits.Reverse32(v)>>(32-n), n) }

func (w *shortDeflater) literal(b byte) {
	if b < 144 {
		w.code(0x30+uint32(b), 8)
	} else {
		w.code(0x190+uint32(b)-144, 9)
	}
}

func (w *shortDeflater) match(length, distance int) {
	symbol, extra, n := uint32(285), uint32(0), uint(0)
	if length < mostMatch {
		symbol, extra, n = step(uint32(length-3), 2, 257)
	}
	if symbol < 280 {
		w.code(symbol-256, 7)
	} else {
		w.code(0xC0+symbol-280, 8)
	}
	w.put(extra, n)
	symbol, extra, n = step(uint32(distance-1), 1, 0)
	w.code(symbol, 5)
	w.put(extra, n)
}

// step is the symbol of a value, where 1<<group symbols have the same number of extra bits,
// and those bits.
func step(v uint32, group, base uint) (symbol, extra uint32, n uint) {
	if v >= 2<<group {
		n = uint(bits.Len32(v)) - group - 1
	}
	return uint32(base) + uint32(n)<<group + v>>n, v & (1<<n - 1), n
}
