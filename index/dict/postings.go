package dict

import "encoding/binary"

// Postings are the rows that have a term. Each is twice the distance to the row before it, plus 1
// if the term is there more than once; that count follows.
type Postings []byte

// Each calls f for each row, in order, with the count of the term.
func (p Postings) Each(f func(row int, count uint32)) {
	row := 0
	for len(p) > 0 {
		step, n := uvarint(p)
		if n <= 0 {
			return
		}
		p, row = p[n:], row+int(step>>1)
		count := uint64(1)
		if step&1 == 1 {
			if count, n = uvarint(p); n <= 0 {
				return
			}
			p = p[n:]
		}
		f(row, uint32(count))
	}
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
	if l.count == 1 {
		return AppendInts(l.data, int(l.row-l.before)<<1)
	}
	return AppendInts(l.data, int(l.row-l.before)<<1|1, int(l.count))
}

// uvarint is binary.Uvarint, faster for numbers of one byte.
func uvarint(p []byte) (uint64, int) {
	if len(p) > 0 && p[0] < 0x80 {
		return uint64(p[0]), 1
	}
	return binary.Uvarint(p)
}
