package index

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index/dict"
)

// Limits of a segment.
const (
	MostRows = 1 << 16

	version     = 6    // changes with the form, and with what rows say of themselves
	blockBytes  = 5850 // with one term more, what fills the pages of both databases well
	idsPerPart  = 640  // a chat's ids, of which each takes up to nine bytes
	bitsPerPart = 4096 // rows of a part of vectors
)

// Builder is a segment in memory. It is searched as it is, and Encode returns it as it is stored.
type Builder struct {
	BlockBytes int  // about how long a block of the dictionary is
	Characters bool // single characters of scripts without spaces have keys: half as much again in Chinese
	MostKeys   int  // further ones are left out; 0 = there is no bound
	LeftOut    bool // some were

	rows    []*entry              // in the order of Compare
	numbers []int32               // numbers of rows, in the order in which they came; -1 = the row is gone
	lists   map[string]*dict.List // by key; rows are places in numbers
	spaces  map[space]*signs
}

// entry is what a Builder keeps of a row.
type entry struct {
	id      string
	version int64
	group   string
	order   int64
	attr    uint64
	terms   int
	data    any
	size    int
	came    int // place in numbers
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

func (e *entry) compare(o *entry) int { return Compare(e.group, e.order, e.id, o.group, o.order, o.id) }

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	return &Builder{BlockBytes: blockBytes, Characters: true, lists: map[string]*dict.List{}, spaces: map[space]*signs{}}
}

// Rows returns how many rows there are.
func (b *Builder) Rows() int { return len(b.rows) }

// Add adds a row after all others, in the order of Compare. A segment that is stored has at most
// MostRows.
func (b *Builder) Add(r *Row) {
	e, n := b.post(r), len(b.rows)
	b.rows, b.numbers[e.came] = append(b.rows, e), int32(n)
	for _, v := range r.Vectors {
		bits := signsOf(v.Packed.numbers())
		s := b.spaces[v.space()]
		if s == nil {
			s = &signs{width: len(bits)}
			b.spaces[v.space()] = s
		}
		if s.fill(n); len(s.bits) == n*s.width { // the first one of two in one space counts
			s.bits = append(s.bits, bits...)
		}
	}
}

// post enters the keys of a row, which has no number yet: its terms, its marks, and perhaps the single
// characters of scripts without spaces. A row has a character as often as its most common term with it.
// Korean words begin with their meaning and end in particles, so only first syllables count.
func (b *Builder) post(r *Row) *entry {
	e := &entry{id: r.ID, version: r.Version, group: r.Group, order: r.Order, attr: r.Attr, data: r.Data, size: r.Size, came: len(b.numbers)}
	b.numbers = append(b.numbers, -1)
	most := map[string]int32{}
	for term := range strings.FieldsSeq(r.Terms) {
		e.terms++
		count := b.enter(term, e.came, 1)
		if !b.Characters || !isDenseTerm(term) {
			continue
		}
		for at, c := range term {
			if at > 0 && unicode.Is(unicode.Hangul, c) {
				break
			}
			character := characterKey + string(c)
			most[character] = max(most[character], count)
		}
	}
	for character, count := range most {
		b.enter(character, e.came, count)
	}
	for _, m := range r.Marks {
		b.enter(markKey+m, e.came, 1)
	}
	return e
}

// enter adds a key to the newest row, and returns how often it has it now.
func (b *Builder) enter(key string, came int, count int32) int32 {
	l := b.lists[key]
	if l == nil {
		if b.MostKeys > 0 && len(b.lists) >= b.MostKeys {
			b.LeftOut = true
			return 0
		}
		l = &dict.List{}
		b.lists[strings.Clone(key)] = l // a part of a row's terms would keep all of them
	}
	return l.Add(dict.Posting{Row: int32(came), Count: count})
}

// change takes rows out and puts others in, without their vectors, and brings the head up to date. It
// returns the new ones.
func (b *Builder) change(h *Head, gone []*entry, put []*Row) []*entry {
	first := len(b.rows) // number that changes
	for _, e := range gone {
		at, _ := slices.BinarySearchFunc(b.rows, e, (*entry).compare)
		b.rows, b.numbers[e.came] = slices.Delete(b.rows, at, at+1), -1
		first = min(first, at)
	}
	slices.SortFunc(put, func(r, o *Row) int { return Compare(r.Group, r.Order, r.ID, o.Group, o.Order, o.ID) })
	entries := make([]*entry, len(put))
	for i, r := range put {
		entries[i] = b.post(r)
		at, _ := slices.BinarySearchFunc(b.rows, entries[i], (*entry).compare)
		b.rows = slices.Insert(b.rows, at, entries[i])
		first = min(first, at)
	}
	for n := first; n < len(b.rows); n++ {
		b.numbers[b.rows[n].came] = int32(n)
	}
	b.extend(h, first)
	if most := len(b.rows) + len(b.rows)/4 + 64; len(b.numbers) > most {
		b.compact()
	}
	return entries
}

// compact forgets rows that are gone.
func (b *Builder) compact() {
	for key, l := range b.lists {
		fresh := &dict.List{}
		for _, p := range b.numbered(nil, l) {
			fresh.Add(p)
		}
		if b.lists[key] = fresh; fresh.Postings == nil {
			delete(b.lists, key)
		}
	}
	b.numbers = b.numbers[:len(b.rows)]
	for n, e := range b.rows {
		e.came, b.numbers[n] = n, int32(n)
	}
}

// find returns the postings of a key, by number.
func (b *Builder) find(key string) []dict.Posting {
	if l := b.lists[key]; l != nil {
		return b.numbered(nil, l)
	}
	return nil
}

// numbered returns postings by number, in the memory of to.
func (b *Builder) numbered(to []dict.Posting, l *dict.List) []dict.Posting {
	all, ordered := l.Append(to[:0], nil), true
	kept, last := all[:0], int32(-1)
	for _, p := range all {
		if p.Row = b.numbers[p.Row]; p.Row >= 0 {
			kept, ordered, last = append(kept, p), ordered && p.Row > last, p.Row
		}
	}
	if !ordered {
		slices.SortFunc(kept, func(p, q dict.Posting) int { return int(p.Row - q.Row) })
	}
	return kept
}

// Sizes in bytes of a row and of a key in memory besides their texts.
const (
	rowBytes = 200
	keyBytes = 120
)

// bytes estimates the memory that b takes without signs.
func (b *Builder) bytes() (n int) {
	for _, e := range b.rows {
		n += rowBytes + len(e.id) + e.size
	}
	for key, l := range b.lists {
		n += keyBytes + len(key) + cap(l.Postings)
	}
	return n
}

// Keys of what is no term.
const (
	markKey      = "\x01"
	characterKey = "\x02"
)

// isDenseTerm reports whether a term is one or two characters of a script without spaces.
func isDenseTerm(term string) bool {
	first, n := utf8.DecodeRuneInString(term)
	if n == len(term) {
		return isDense(first)
	}
	second, m := utf8.DecodeRuneInString(term[n:])
	return n+m == len(term) && isDense(first) && isDense(second)
}

// extend makes h, whose rows before one stay, the head of the present rows, which does not know where
// parts are.
func (b *Builder) extend(h *Head, from int) {
	h.Rows, h.Lone, h.Attrs, h.before = len(b.rows), min(h.Lone, from), h.Attrs[:from], h.before[:from+1]
	for len(h.Groups) > 0 && h.Groups[len(h.Groups)-1].First >= from {
		h.Groups = h.Groups[:len(h.Groups)-1]
	}
	if last := len(h.Groups) - 1; last >= 0 {
		g := &h.Groups[last]
		g.End = min(g.End, from)
		g.Highest = b.rows[g.End-1].order
	}
	for n, e := range b.rows[from:] {
		n += from
		h.Attrs, h.before = append(h.Attrs, e.attr), append(h.before, h.before[n]+uint32(e.terms))
		if e.group == "" {
			h.Lone++
			continue
		}
		last := len(h.Groups) - 1
		if last < 0 || h.Groups[last].Name != e.group {
			h.Groups = append(h.Groups, Group{Name: e.group, First: n, Lowest: e.order})
			last++
		}
		h.Groups[last].End, h.Groups[last].Highest = n+1, e.order
	}
}

// Encode returns the parts of the segment; the first one is the head.
func (b *Builder) Encode() [][]byte {
	h, ids := emptyHead(), make([]string, len(b.rows))
	b.extend(h, 0)
	blocks, firsts := b.blocks()
	head := make([]byte, dict.HeadBytes, dict.HeadBytes+12*h.Rows)
	spaces := slices.SortedFunc(maps.Keys(b.spaces), func(x, y space) int {
		return cmp.Or(strings.Compare(x.model, y.model), cmp.Compare(x.dim, y.dim))
	})
	head = dict.AppendInts(head, h.Rows, len(h.Groups), h.Lone, len(blocks), len(spaces))
	for n, e := range b.rows {
		head, ids[n] = dict.AppendInts(head, e.terms), e.id
	}
	upper := int64(0)
	for _, a := range h.Attrs {
		up := int64(int32(a >> 32))
		head = binary.LittleEndian.AppendUint32(binary.AppendVarint(head, up-upper), uint32(a))
		upper = up
	}
	for _, g := range h.Groups {
		head = binary.AppendVarint(dict.AppendInts(dict.AppendText(head, g.Name), g.End-g.First), g.Lowest)
		head = dict.AppendInts(head, int(g.Highest-g.Lowest))
	}
	parts := slices.Concat([][]byte{nil}, blocks)
	for some := range slices.Chunk(ids, idsPerPart) {
		parts = append(parts, idsPart(some))
	}
	for some := range slices.Chunk(ids[:h.Lone], idsPerPart) {
		firsts = append(firsts, some[0])
	}
	if h.Lone > 0 {
		firsts = append(firsts, ids[h.Lone-1])
	}
	for _, text := range firsts {
		head = dict.AppendText(head, text)
	}
	for _, key := range spaces {
		s := b.spaces[key]
		s.fill(h.Rows)
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
	var all []dict.Posting
	var stored []byte
	before := ""
	for _, key := range slices.Sorted(maps.Keys(b.lists)) {
		if len(block) >= b.BlockBytes {
			blocks, block = append(blocks, block), nil
		}
		if len(block) == 0 {
			firsts, before = append(firsts, key), ""
		}
		all = b.numbered(all, b.lists[key])
		stored = dict.Stored(stored, all, len(b.rows))
		block, before = block.Append(before, key, len(all), stored), key
	}
	if len(block) > 0 {
		blocks = append(blocks, block)
	}
	return blocks, firsts
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
