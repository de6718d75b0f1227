package index

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"nodest/internal/index/dict"
)

// Head is what is held in memory of a segment. It is immutable and safe for concurrent use.
type Head struct {
	Rows   int
	Lone   int     // rows that stand alone; they come first
	Groups []Group // by name, and by their rows
	Attrs  []uint64

	before []uint32 // terms of all rows before each row, and of all
	firsts []string // first terms of the blocks
	lone   []string // first ids of the parts with rows that stand alone, and the last id of those
	spaces []Space
}

func emptyHead() *Head { return &Head{before: []uint32{0}} }

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

// Decode reads part 0. The error is dict.ErrDamaged: the segment must be built again.
func Decode(data []byte) (*Head, error) {
	r, err := dict.Open(version, data)
	if err != nil {
		return nil, err
	}
	rows, groups, lone, blocks, spaces := r.Int(), r.Int(), r.Int(), r.Int(), r.Int()
	if max(rows, blocks, spaces) > len(data) || max(groups, lone) > rows {
		return nil, dict.ErrDamaged
	}
	h := &Head{Rows: rows, Lone: lone, Attrs: make([]uint64, rows), Groups: make([]Group, groups), before: make([]uint32, rows+1)}
	for i := range rows {
		h.before[i+1] = h.before[i] + uint32(r.Int())
	}
	upper := int64(0)
	for i := range h.Attrs {
		upper += r.Signed()
		h.Attrs[i] = uint64(uint32(int32(upper)))<<32 | uint64(r.Uint32())
	}
	at := lone
	for i := range h.Groups {
		g := Group{Name: r.Text(), First: at, End: at + r.Int(), Lowest: r.Signed()}
		g.Highest = g.Lowest + int64(r.Int())
		h.Groups[i], at = g, g.End
	}
	h.firsts = r.Texts(blocks)
	if lone > 0 {
		h.lone = r.Texts(idParts(lone) + 1)
	}
	part := 1 + blocks + idParts(rows)
	for range spaces {
		s := Space{Model: r.Text(), Dim: r.Int(), Width: r.Int(), first: part, parts: r.Int()}
		h.spaces, part = append(h.spaces, s), part+s.parts
	}
	if r.Failed || at != rows {
		return nil, dict.ErrDamaged
	}
	return h, nil
}

// Bytes estimates the memory that h takes.
func (h *Head) Bytes() int {
	n := 300 + 12*h.Rows + 56*len(h.Groups) + 16*(len(h.firsts)+len(h.lone))
	for _, g := range h.Groups {
		n += len(g.Name)
	}
	for _, texts := range [][]string{h.firsts, h.lone} {
		for _, t := range texts {
			n += len(t)
		}
	}
	return n
}

// Terms returns how many terms the rows from a to before b have.
func (h *Head) Terms(a, b int) int { return int(h.before[b] - h.before[a]) }

// Before returns how many terms all rows before each row have, and at last all. It must not be changed.
func (h *Head) Before() []uint32 { return h.before }

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
	if isDenseTerm(term) && singleRune(term) {
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

// Postings are the rows of a key, as they are stored.
type Postings struct {
	Rows   int
	stored dict.Postings
}

// Append appends the rows of a key to a list, in order; only those whose bit is set in among, unless it
// is nil.
func (h *Head) Append(to []dict.Posting, p Postings, among []uint64) []dict.Posting {
	if dict.Dense(p.Rows, h.Rows) {
		return dict.Bits(p.stored).Append(to, among, h.Rows)
	}
	return p.stored.Append(to, among)
}

// find looks a key up in a part with a block of the dictionary.
func find(part []byte, key string) Postings {
	rows, stored := dict.Block(part).Find(key)
	return Postings{rows, stored}
}

// IDPart returns the part with the id of row n.
func (h *Head) IDPart(n int) int { return 1 + len(h.firsts) + n/idsPerPart }

// FirstOf returns the first row of the part of ids that row n is in.
func (h *Head) FirstOf(n int) int { return n / idsPerPart * idsPerPart }

// NextIDs returns the first row of the part of ids after that of row n.
func (h *Head) NextIDs(n int) int { return h.FirstOf(n) + idsPerPart }

// idParts returns how many parts have the ids of so many rows.
func idParts(rows int) int { return (rows + idsPerPart - 1) / idsPerPart }

// LonePart returns the part that the id of a row that stands alone is in if it is there at all,
// and the first row in it; 0 = it is not.
func (h *Head) LonePart(id string) (part, first int) {
	last := len(h.lone) - 1
	if last < 0 || id > h.lone[last] {
		return 0, 0
	}
	at := sort.Search(last, func(i int) bool { return h.lone[i] > id })
	if at == 0 {
		return 0, 0
	}
	return len(h.firsts) + at, (at - 1) * idsPerPart
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
