package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/index/dict"
)

// Limits of a segment. A part is about so long, unless a single term or row needs more.
const (
	MostRows = 1 << 16

	version     = 3
	partBytes   = 5850 // with one term more, what fills the pages of both databases well
	idsPerPart  = 640  // of a chat, of which each takes up to nine bytes
	bitsPerPart = 4096 // rows of a part of vectors
)

// Builder makes a segment of rows that are added in the order of Compare.
type Builder struct {
	rows     int
	lone     int
	lengths  []int
	attrs    []uint64
	groups   []Group
	postings map[string]*dict.List
	ids      []string
	spaces   map[space]*signs
}

// signs are the bits of all rows of a space.
type signs struct {
	width int // words of a row
	bits  []uint64
}

// fill adds zeros up to row n.
func (s *signs) fill(n int) {
	s.bits = append(s.bits, make([]uint64, max(0, n*s.width-len(s.bits)))...)
}

// Compare is the order of rows in a segment: by group, order and id. Rows that stand alone come
// first, by id.
func Compare(groupA string, orderA int64, idA, groupB string, orderB int64, idB string) int {
	if groupA == "" && groupB == "" {
		return strings.Compare(idA, idB)
	}
	return cmp.Or(strings.Compare(groupA, groupB), cmp.Compare(orderA, orderB), strings.Compare(idA, idB))
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	return &Builder{postings: map[string]*dict.List{}, spaces: map[space]*signs{}}
}

// Rows returns how many rows were added.
func (b *Builder) Rows() int { return b.rows }

// Add adds the next row. A segment has at most MostRows.
func (b *Builder) Add(r *Row) {
	n, terms := b.rows, strings.Fields(r.Terms)
	b.rows++
	b.ids, b.lengths, b.attrs = append(b.ids, r.ID), append(b.lengths, len(terms)), append(b.attrs, r.Attr)
	b.join(r, n)
	for _, t := range terms {
		b.post(t, n, 1)
	}
	for _, c := range characters(terms) {
		b.post(c.key, n, c.count)
	}
	for _, m := range r.Marks {
		b.post(markKey+m, n, 1)
	}
	for _, v := range r.Vectors {
		bits := signsOf(v.Packed.numbers())
		s := b.spaces[v.space()]
		if s == nil {
			s = &signs{width: len(bits)}
			b.spaces[v.space()] = s
		}
		if s.fill(n); len(s.bits) == n*s.width { // of two in one space the first one counts
			s.bits = append(s.bits, bits...)
		}
	}
}

// join enters row n into its group.
func (b *Builder) join(r *Row, n int) {
	if r.Group == "" {
		b.lone++
		return
	}
	last := len(b.groups) - 1
	if last < 0 || b.groups[last].Name != r.Group {
		b.groups = append(b.groups, Group{Name: r.Group, First: n, Lowest: r.Order})
		last++
	}
	g := &b.groups[last]
	g.End, g.Highest = n+1, r.Order
}

func (b *Builder) post(key string, n, count int) {
	p := b.postings[key]
	if p == nil {
		p = &dict.List{}
		b.postings[strings.Clone(key)] = p
	}
	p.Add(uint32(n), uint32(count))
}

// Keys of what is no term.
const (
	markKey      = "\x01"
	characterKey = "\x02"
)

// counted is a key of a row with its count.
type counted struct {
	key   string
	count int
}

// characters returns the keys of the single characters of a row in scripts without spaces: a
// row has one as often as its most common term with it. Korean words begin with their meaning
// and end in particles, so only first syllables count.
func characters(terms []string) []counted {
	var counts map[string]int // of terms
	for _, t := range terms {
		if IsDense(t) {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[t]++
		}
	}
	most := map[string]int{}
	for t, count := range counts {
		for i, r := range t {
			if i > 0 && unicode.Is(unicode.Hangul, r) {
				break
			}
			key := characterKey + string(r)
			most[key] = max(most[key], count)
		}
	}
	all := make([]counted, 0, len(most))
	for _, key := range slices.Sorted(maps.Keys(most)) {
		all = append(all, counted{key, most[key]})
	}
	return all
}

// IsDense reports whether a term is one or two characters of a script without spaces.
func IsDense(term string) bool {
	if term == "" || term[0] < utf8.RuneSelf {
		return false
	}
	first, n := utf8.DecodeRuneInString(term)
	if n == len(term) {
		return isDense(first)
	}
	second, m := utf8.DecodeRuneInString(term[n:])
	return n+m == len(term) && isDense(first) && isDense(second)
}

// Encode returns the parts of the segment; the first one is the head.
func (b *Builder) Encode() [][]byte {
	blocks, firsts := b.blocks()
	head := make([]byte, dict.HeadBytes, dict.HeadBytes+12*b.rows)
	spaces := slices.SortedFunc(maps.Keys(b.spaces), func(x, y space) int {
		return cmp.Or(strings.Compare(x.model, y.model), cmp.Compare(x.dim, y.dim))
	})
	head = dict.AppendInts(head, b.rows, len(b.groups), b.lone, len(blocks), len(spaces))
	head = dict.AppendInts(head, b.lengths...)
	upper := int64(0)
	for _, a := range b.attrs {
		up := int64(int32(a >> 32))
		head = binary.LittleEndian.AppendUint32(binary.AppendVarint(head, up-upper), uint32(a))
		upper = up
	}
	for _, g := range b.groups {
		head = binary.AppendVarint(dict.AppendInts(dict.AppendText(head, g.Name), g.End-g.First), g.Lowest)
		head = dict.AppendInts(head, int(g.Highest-g.Lowest))
	}
	parts := slices.Concat([][]byte{nil}, blocks)
	for ids := range slices.Chunk(b.ids, idsPerPart) {
		parts = append(parts, idsPart(ids))
	}
	for ids := range slices.Chunk(b.ids[:b.lone], idsPerPart) {
		firsts = append(firsts, ids[0])
	}
	if b.lone > 0 {
		firsts = append(firsts, b.ids[b.lone-1])
	}
	for _, text := range firsts {
		head = dict.AppendText(head, text)
	}
	for _, key := range spaces {
		s := b.spaces[key]
		s.fill(b.rows)
		vectors := s.parts()
		head = dict.AppendInts(dict.AppendText(head, key.model), key.dim, s.width, len(vectors))
		parts = append(parts, vectors...)
	}
	dict.Seal(version, head)
	parts[0] = head
	return parts
}

// blocks returns the blocks of the dictionary and their first terms.
func (b *Builder) blocks() (blocks [][]byte, firsts []string) {
	var block dict.Block
	before := ""
	for _, t := range slices.Sorted(maps.Keys(b.postings)) {
		if len(block) >= partBytes {
			blocks, block = append(blocks, block), nil
		}
		if len(block) == 0 {
			firsts, before = append(firsts, t), ""
		}
		p := b.postings[t]
		block, before = block.Append(before, t, p.Rows(), b.stored(p)), t
	}
	if len(block) > 0 {
		blocks = append(blocks, block)
	}
	return blocks, firsts
}

// stored is how the postings of a key are stored.
func (b *Builder) stored(l *dict.List) dict.Postings {
	if dict.Dense(l.Rows(), b.rows) {
		return dict.Postings(l.Bits(b.rows))
	}
	return l.Postings()
}

// parts cuts the bits into parts of bitsPerPart rows.
func (s *signs) parts() (parts [][]byte) {
	for some := range slices.Chunk(s.bits, bitsPerPart*s.width) {
		part := make([]byte, 0, 8*len(some))
		for _, w := range some {
			part = binary.LittleEndian.AppendUint64(part, w)
		}
		parts = append(parts, part)
	}
	return parts
}
