package first

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"

	"nodest/memory"
)

// Memory that was sent for a text was written by rank: the unit, bits that say which signals there
// are, and these, as differences to those of the unit before. What stands before a unit says how it
// is named: by its place among the memory ids of the text, by the bytes of its id, or by a text.
const (
	namedUnit = 0   // before the length of the id, and the id
	knownUnit = 100 // and the place of the unit among the memory ids, from 0
	mostKnown = 100
	idUnit    = 200 // and the number of bytes of the id, before them
	mostID    = 16
)

// Bits of a unit, below those of its signals.
const (
	isExchange = 1 << iota // else it is a fact
	hasOthers              // signals that are not in signalNames
	firstSignal
)

// signalNames are the signals that have bits.
var signalNames = []string{
	"words", "near", "around", "session", "length", "recency", "answer", "vector", "speaker", "day", "kind", "importance", "profile", "spelling",
}

// The layers of units, as memory_uses names them.
const (
	inExchanges = "e"
	inFacts     = "f"
	inProfile   = "p"
)

// use is a unit that was sent, with its signals, by memory.SignalNames, and their sum in ten-thousandths.
type use struct {
	unit, layer string
	score       int64
	signals     []int64
}

var errUses = errors.New("what was recalled cannot be read")

// unitsOf reads memory ids.
func unitsOf(b []byte) (ids []string, err error) {
	r := useReader{left: b}
	for len(r.left) > 0 {
		id := r.unit()
		if r.failed {
			return nil, errUses
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// usesOf reads what was sent for a text with these memory ids, by rank.
func usesOf(b []byte, memoryIDs []string) (all []use, err error) {
	r, before := useReader{left: b, known: memoryIDs}, make([]int64, len(signalNames))
	for len(r.left) > 0 && !r.failed {
		u, sum := use{unit: r.unit(), layer: inFacts, signals: make([]int64, len(memory.SignalNames))}, int64(0)
		signal := func(name string, before int64) int64 {
			x, at := before+r.share(), slices.Index(memory.SignalNames, name)
			if at < 0 {
				r.failed = true
				return 0
			}
			u.signals[at] = x
			sum += x
			return x
		}
		bits := r.number()
		if bits&isExchange != 0 {
			u.layer = inExchanges
		}
		for i, name := range signalNames {
			if bits&(firstSignal<<i) != 0 {
				before[i] = signal(name, before[i])
			}
		}
		if bits&hasOthers != 0 {
			for n := r.number(); n > 0 && !r.failed; n-- {
				signal(r.text(), 0)
			}
		}
		u.score = sum
		all = append(all, u)
	}
	if r.failed {
		return nil, errUses
	}
	return all, nil
}

// useReader reads what is left. After it has failed it reads zeros.
type useReader struct {
	left   []byte
	known  []string // memory ids
	failed bool
}

func (r *useReader) take(n int) []byte {
	if n < 0 || n > len(r.left) || r.failed {
		r.failed = true
		return make([]byte, mostID)
	}
	taken := r.left[:n]
	r.left = r.left[n:]
	return taken
}

func (r *useReader) number() uint64 {
	n, size := binary.Uvarint(r.left)
	r.take(cmp.Or(size, -1))
	return n
}

func (r *useReader) share() int64 {
	x, size := binary.Varint(r.left)
	r.take(cmp.Or(size, -1))
	return x
}

func (r *useReader) text() string {
	return string(r.take(int(min(r.number(), math.MaxInt32)))) //nolint:gosec // checked
}

func (r *useReader) unit() string {
	switch code := int(r.take(1)[0]); {
	case code >= knownUnit && code < knownUnit+min(mostKnown, len(r.known)):
		return r.known[code-knownUnit]
	case code > idUnit && code <= idUnit+mostID:
		return idOf(r.take(code - idUnit))
	case code == namedUnit:
		return r.text()
	}
	r.failed = true
	return ""
}

// idOf is the text of an id; bytes that are missing are zero.
func idOf(stored []byte) string {
	var id [mostID]byte
	copy(id[:], stored)
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
