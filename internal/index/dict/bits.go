package dict

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Bits are the postings of a term that is in many rows, which take less space and time so than as
// Postings: a bit for each row, in words of eight bytes, and behind them the Postings of the rows
// that have the term more than once, which count it once less.
type Bits []byte

// Dense reports whether the postings of a term that is in some of so many rows are Bits.
func Dense(some, rows int) bool { return some >= 64 && some >= rows/8 }

// Append is Postings.Append for an index with so many rows.
func (b Bits) Append(to []Posting, among []uint64, rows int) []Posting {
	words := (rows + 63) / 64
	if len(b) < 8*words || among != nil && len(among) < words {
		return to
	}
	begin := len(to)
	to = Postings(b[8*words:]).Append(to, among) // for the time being
	end, next := len(to), begin
	for at := range words {
		word := binary.LittleEndian.Uint64(b[8*at:])
		if among != nil {
			word &= among[at]
		}
		first := len(to)
		for rest := word; rest != 0; rest &= rest - 1 {
			to = append(to, Posting{int32(64*at + bits.TrailingZeros64(rest)), 1})
		}
		for ; next < end && int(to[next].Row) < 64*(at+1); next++ {
			if place := first + bits.OnesCount64(word&(1<<(to[next].Row%64)-1)); place < len(to) { // else they are damaged
				to[place].Count = min(to[next].Count+1, mostCount)
			}
		}
	}
	return slices.Delete(to, begin, end)
}
