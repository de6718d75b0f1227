package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"slices"
	"sort"
)

// Head is what is held in memory of a segment. It is immutable and safe for concurrent use.
type Head struct {
	Rows   int
	Lone   int     // rows that stand alone; they come first
	Groups []Group // by name, and by their rows
	Attrs  []uint64

	before   []uint32 // terms of all rows before each row, and of all
	firsts   []string // first terms of the blocks
	firstIDs []string
	lastLone string // id
	spaces   []Space
}

// Group is the rows of a segment from First to before End.
type Group struct {
	Name            string
	First, End      int
	Lowest, Highest int64 // order
}

// Space is where the vectors of a model are.
type Space struct {
	Model string
	Dim   int
	Width int // words of a row
	first int // part
	parts int
}

// ErrDamaged tells that bytes are not a segment of this version: it must be built again.
var ErrDamaged = errors.New("segment: damaged, or of another version")

// Decode reads part 0.
func Decode(data []byte) (*Head, error) {
	if len(data) < headBytes || data[0] != version || binary.LittleEndian.Uint32(data[1:]) != crc32.ChecksumIEEE(data[headBytes:]) {
		return nil, ErrDamaged
	}
	r := reader{data: data[headBytes:]}
	rows, groups, lone, blocks, ids, spaces := r.int(), r.int(), r.int(), r.int(), r.int(), r.int()
	if rows > MostRows || max(groups, lone) > rows || max(blocks, ids, spaces) > len(data) {
		return nil, ErrDamaged
	}
	h := &Head{Rows: rows, Lone: lone, Attrs: make([]uint64, rows), Groups: make([]Group, groups), before: make([]uint32, rows+1), lastLone: r.text()}
	for i := range rows {
		h.before[i+1] = h.before[i] + uint32(r.int())
	}
	upper := int64(0)
	for i := range h.Attrs {
		upper += r.signed()
		h.Attrs[i] = uint64(uint32(int32(upper)))<<32 | uint64(r.uint32())
	}
	at := lone
	for i := range h.Groups {
		g := Group{Name: r.text(), First: at, End: at + r.int(), Lowest: r.signed()}
		g.Highest = g.Lowest + int64(r.int())
		h.Groups[i], at = g, g.End
	}
	h.firsts, h.firstIDs = r.texts(blocks), r.texts(ids)
	part := 1 + blocks + ids
	for range spaces {
		s := Space{Model: r.text(), Dim: r.int(), Width: r.int(), first: part, parts: r.int()}
		h.spaces, part = append(h.spaces, s), part+s.parts
	}
	if r.failed || at != rows || ids != (rows+idsPerBlock-1)/idsPerBlock {
		return nil, ErrDamaged
	}
	return h, nil
}

// Bytes estimates the memory that h takes.
func (h *Head) Bytes() int {
	n := 300 + 12*h.Rows + 56*len(h.Groups) + 16*(len(h.firsts)+len(h.firstIDs))
	for _, g := range h.Groups {
		n += len(g.Name)
	}
	for _, texts := range [][]string{h.firsts, h.firstIDs} {
		for _, t := range texts {
			n += len(t)
		}
	}
	return n
}

// Terms returns how many terms the rows from a to before b have.
func (h *Head) Terms(a, b int) int { return int(h.before[b] - h.before[a]) }

// GroupOf returns the group of row n; nil = it stands alone.
func (h *Head) GroupOf(n int) *Group {
	if n < h.Lone {
		return nil
	}
	at := sort.Search(len(h.Groups), func(i int) bool { return h.Groups[i].End > n })
	return &h.Groups[at]
}

// Group returns a group by its name; nil = there is none.
func (h *Head) Group(name string) *Group {
	at, ok := slices.BinarySearchFunc(h.Groups, name, func(g Group, name string) int { return compare(g.Name, name) })
	if !ok {
		return nil
	}
	return &h.Groups[at]
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// GroupAfter returns how many groups after group from the one is that has row n.
func (h *Head) GroupAfter(from, n int) int {
	rest := h.Groups[from:]
	for reach := 1; ; reach *= 2 {
		if reach >= len(rest) || rest[reach].End > n {
			low := reach / 2
			return low + sort.Search(min(reach, len(rest))-low, func(i int) bool { return rest[low+i].End > n })
		}
	}
}

// Key returns the key of a term in the parts of the dictionary: single characters of scripts
// without spaces are found inside of words.
func Key(term string) string {
	if IsDense(term) && singleRune(term) {
		return characterKey + term
	}
	return term
}

// MarkKey returns the key of a mark.
func MarkKey(mark string) string { return markKey + mark }

func singleRune(s string) bool {
	for i := range s {
		if i > 0 {
			return false
		}
	}
	return true
}

// TermPart returns the part that a key is in if it is there at all; 0 = it is not.
func (h *Head) TermPart(key string) int {
	at := sort.Search(len(h.firsts), func(i int) bool { return h.firsts[i] > key })
	return at // block at-1, behind the head
}

// Find looks a key up in its part. postings is nil without it.
func Find(part []byte, key string) (rows int, postings Postings) {
	r := reader{data: part}
	same := 0 // bytes that the terms so far, which come before it, have in common with it
	for len(r.data) > 0 {
		shared, rest := r.int(), r.take(r.int())
		rows, list := r.int(), r.take(r.int())
		switch {
		case r.failed || shared < same:
			return 0, nil
		case shared > same: // it differs from the key where the one before it does
			continue
		}
		n := 0
		for n < len(rest) && same+n < len(key) && rest[n] == key[same+n] {
			n++
		}
		same += n
		switch {
		case n == len(rest) && same == len(key):
			return rows, list
		case n < len(rest) && (same == len(key) || rest[n] > key[same]):
			return 0, nil
		}
	}
	return 0, nil
}

// Postings are the rows of a term.
type Postings []byte

// Posting is a row of a term, and how often it has the term.
type Posting struct{ Row, Count int32 }

// Append appends the rows to a list, in order; of those from row from on, only those whose bit is set
// in among. Bit n is of row n-at. Without among, all rows are appended.
func (p Postings) Append(to []Posting, among []uint64, at, from int) []Posting {
	for row := 0; len(p) > 0; {
		step := uint64(p[0])
		if p = p[1:]; step >= 0x80 {
			rest, n := binary.Uvarint(p)
			if n <= 0 {
				return to
			}
			step, p = step&0x7f|rest<<7, p[n:]
		}
		if row += int(step >> 1); row < 0 || row >= MostRows {
			return to
		}
		count := uint64(1)
		if step&1 == 1 {
			var n int
			if count, n = uvarint(p); n <= 0 {
				return to
			}
			p = p[n:]
		}
		if among != nil && row >= from {
			if n := row + at; n/64 >= len(among) || among[n/64]&(1<<(n%64)) == 0 {
				continue
			}
		}
		to = append(to, Posting{int32(row), int32(min(count, maxCount))})
	}
	return to
}

// maxCount bounds counts, so that sums of them fit 16 bits.
const maxCount = 1 << 12

// uvarint is binary.Uvarint, faster for numbers of one byte.
func uvarint(p []byte) (uint64, int) {
	if len(p) > 0 && p[0] < 0x80 {
		return uint64(p[0]), 1
	}
	return binary.Uvarint(p)
}

// IDPart returns the part with the id of row n.
func (h *Head) IDPart(n int) int { return 1 + len(h.firsts) + n/idsPerBlock }

// FirstOf returns the first row of the part of ids that row n is in.
func (h *Head) FirstOf(n int) int { return n / idsPerBlock * idsPerBlock }

// NextIDs returns the first row of the part of ids after that of row n.
func (h *Head) NextIDs(n int) int { return h.FirstOf(n) + idsPerBlock }

// LonePart returns the part that the id of a row that stands alone is in if it is there at all,
// and the first row in it; 0 = it is not.
func (h *Head) LonePart(id string) (part, first int) {
	if id > h.lastLone {
		return 0, 0
	}
	lone := h.firstIDs[:(h.Lone+idsPerBlock-1)/idsPerBlock]
	at := sort.Search(len(lone), func(i int) bool { return lone[i] > id })
	if at == 0 {
		return 0, 0
	}
	return len(h.firsts) + at, (at - 1) * idsPerBlock
}

// EachID calls f for the rows of a part, by their place in it, until it returns false. The id is
// valid during the call only.
func EachID(part []byte, f func(at int, id []byte, order int64) bool) {
	r := reader{data: part}
	var id []byte
	for at := 0; len(r.data) > 0; at++ {
		shared := r.int()
		id = append(id[:min(shared, len(id))], r.take(r.int())...)
		if order := r.signed(); r.failed || !f(at, id, order) {
			return
		}
	}
}

// IDAt returns the id of row n, which is in the part.
func IDAt(part []byte, n int) (found string) {
	EachID(part, func(at int, id []byte, _ int64) bool {
		if at == n%idsPerBlock {
			found = string(id)
		}
		return at < n%idsPerBlock
	})
	return found
}

// Space returns where the vectors of a model and length are; nil = there are none.
func (h *Head) Space(model string, dim int) *Space {
	for i := range h.spaces {
		if h.spaces[i].Model == model && h.spaces[i].Dim == dim {
			return &h.spaces[i]
		}
	}
	return nil
}

// Parts returns the parts of a space.
func (s *Space) Parts() []int {
	parts := make([]int, s.parts)
	for i := range parts {
		parts[i] = s.first + i
	}
	return parts
}

// Differ writes to a list, by row, one more than the number of bits in which the vectors of the at-th
// part of a space differ from q. Rows without a vector keep what they have.
func (s *Space) Differ(part []byte, at int, q []uint64, to []uint16) {
	size := 8 * s.Width
	if len(q) != s.Width || size == 0 || len(part)%size != 0 {
		return
	}
	to = to[min(len(to), at*bitsPerPart):]
	ones := difference(q, make([]byte, size))
	for i := 0; i < len(to) && len(part) >= size; i++ {
		differ := difference(q, part[:size])
		if differ != ones || bytes.Count(part[:size], []byte{0}) < size { // else it may have no vector
			to[i] = uint16(differ + 1)
		}
		part = part[size:]
	}
}

// difference is in how many bits a vector and its stored form differ.
func difference(q []uint64, stored []byte) (n int) {
	for len(q) >= 4 && len(stored) >= 32 {
		n += bits.OnesCount64(q[0]^binary.LittleEndian.Uint64(stored)) + bits.OnesCount64(q[1]^binary.LittleEndian.Uint64(stored[8:])) +
			bits.OnesCount64(q[2]^binary.LittleEndian.Uint64(stored[16:])) + bits.OnesCount64(q[3]^binary.LittleEndian.Uint64(stored[24:]))
		q, stored = q[4:], stored[32:]
	}
	for i, w := range q {
		n += bits.OnesCount64(w ^ binary.LittleEndian.Uint64(stored[8*i:]))
	}
	return n
}

// reader reads numbers; after a failure it gives zeros.
type reader struct {
	data   []byte
	failed bool
}

func (r *reader) int() int {
	if len(r.data) > 0 && r.data[0] < 0x80 {
		n := int(r.data[0])
		r.data = r.data[1:]
		return n
	}
	n, k := binary.Uvarint(r.data)
	if k <= 0 || n > 1<<40 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[k:]
	return int(n)
}

func (r *reader) signed() int64 {
	n, k := binary.Varint(r.data)
	if k <= 0 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[k:]
	return n
}

func (r *reader) uint32() uint32 {
	b := r.take(4)
	if len(b) < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.failed, r.data = true, nil
		return nil
	}
	part := r.data[:n]
	r.data = r.data[n:]
	return part
}

func (r *reader) text() string { return string(r.take(r.int())) }

func (r *reader) texts(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = r.text()
	}
	return all
}
