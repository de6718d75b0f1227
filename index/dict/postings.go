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
	data   Postings // without the last one
	before uint32   // row of the last one in data
	row    uint32   // of the last one
	count  uint32   // of the last one
	rows   int
}

// Add counts the term in a row, which is not before the last one. count is at least 1.
func (l *List) Add(row, count uint32) {
	if l.rows == 0 || l.row != row {
		if l.rows > 0 {
			l.data, l.before, l.count = l.Postings(), l.row, 0
		}
		l.rows++
		l.row = row
	}
	l.count += count
}

// Rows returns how many rows have the term.
func (l *List) Rows() int { return l.rows }

// Postings returns them all, in memory that the next call of Add may change.
func (l *List) Postings() Postings {
	step := int(l.row-l.before) << 2
	if l.count <= mostBeside {
		return AppendInts(l.data, step|int(l.count-1))
	}
	return AppendInts(l.data, step|mostBeside, int(l.count))
}

// uvarint is binary.Uvarint, faster for numbers of one byte.
func uvarint(p []byte) (uint64, int) {
	if len(p) > 0 && p[0] < 0x80 {
		return uint64(p[0]), 1
	}
	return binary.Uvarint(p)
}
