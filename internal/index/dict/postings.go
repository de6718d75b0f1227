package dict

import (
	"encoding/binary"
	"slices"
)

// Postings are the rows that have a term. Each is four times the distance to the row before it, plus
// one less than how often the term is there; or plus 3, and how often follows.
type Postings []byte

// Posting is a row of a term, and how often it has the term, up to 4,096 times.
type Posting struct{ Row, Count int32 }

const (
	mostRow   = 1 << 30
	mostCount = 1 << 12 // so that sums of some fit 16 bits

	mostBeside = 3 // count that stands beside the distance
)

// All returns all rows, in order.
func (p Postings) All() []Posting { return p.Append(nil, nil) }

// Append appends the rows to a list, in order; only those whose bit is set in among, unless it is nil.
func (p Postings) Append(to []Posting, among []uint64) []Posting {
	n := len(to)
	to = slices.Grow(to, len(p))[:n+len(p)] // each has at least a byte
	for row := 0; len(p) > 0; {
		step := uint64(p[0])
		if p = p[1:]; step >= 0x80 {
			rest, n := binary.Uvarint(p)
			if n <= 0 {
				break
			}
			step, p = step&0x7f|rest<<7, p[n:]
		}
		if row += int(step >> 2); row < 0 || row > mostRow {
			break
		}
		count := step&3 + 1
		if count > mostBeside {
			var n int
			if count, n = uvarint(p); n <= 0 {
				break
			}
			p = p[n:]
		}
		to[n] = Posting{int32(row), int32(min(count, mostCount))}
		if among == nil {
			n++
			continue
		}
		if uint(row)/64 >= uint(len(among)) {
			break
		}
		n += int(among[row/64] >> (row % 64) & 1) // a branch would often be predicted wrongly
	}
	return to[:n]
}

// List collects the postings of a term: there may be millions.
type List struct {
	Postings
	last Posting // added
	from int32   // row before it
	at   int32   // where it is in Postings
}

// Add adds a row, which is the last one or comes after it, and returns how often it has the term now.
func (l *List) Add(p Posting) int32 {
	if l.last.Count > 0 && p.Row == l.last.Row {
		l.Postings = l.Postings[:l.at]
		p.Count += l.last.Count
	} else {
		l.from, l.at = l.last.Row, int32(len(l.Postings))
	}
	step := int(p.Row-l.from) << 2
	if p.Count <= mostBeside {
		l.Postings = AppendInts(l.Postings, step|int(p.Count-1))
	} else {
		l.Postings = AppendInts(l.Postings, step|mostBeside, int(p.Count))
	}
	l.last = p
	return p.Count
}

// Stored returns the postings of a term, in the order of rows, for an index with so many rows: as
// Bits if the term is in many of them. It uses the memory of room.
func Stored(room []byte, all []Posting, rows int) []byte {
	l := List{Postings: room[:0]}
	if !Dense(len(all), rows) {
		for _, p := range all {
			l.Add(p)
		}
		return l.Postings
	}
	l.Postings = nil
	b := make(Bits, (rows+63)/64*8)
	for _, p := range all {
		b[p.Row/8] |= 1 << (p.Row % 8)
		if p.Count > 1 {
			l.Add(Posting{p.Row, p.Count - 1})
		}
	}
	return append(b, l.Postings...)
}

// uvarint is binary.Uvarint, faster for numbers of one byte.
func uvarint(p []byte) (uint64, int) {
	if len(p) > 0 && p[0] < 0x80 {
		return uint64(p[0]), 1
	}
	return binary.Uvarint(p)
}
