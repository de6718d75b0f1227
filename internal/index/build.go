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

	version     = 3
	blockBytes  = 5850 // with one term more, what fills the pages of both databases well
	idsPerPart  = 640  // of a chat, of which each takes up to nine bytes
	bitsPerPart = 4096 // rows of a part of vectors
)

// Builder is a segment in memory. It is searched as it is, and Encode returns it as it is stored.
type Builder struct {
	BlockBytes int  // about how long a block of the dictionary is
	Characters bool // single characters of scripts without spaces have keys: half as much again in Chinese
	MostKeys   int  // further ones are left out; 0 = there is no bound
	LeftOut    bool // some were

	rows    []*entry              // in the order of Compare
	numbers []int32               // of rows, in the order in which they came; -1 = the row is gone
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
		if s.fill(n); len(s.bits) == n*s.width { // of two in one space the first one counts
			s.bits = append(s.bits, bits...)
		}
	}
}

// post enters the keys of a row, which has no number yet.
func (b *Builder) post(r *Row) *entry {
	all := strings.Fields(r.Terms)
	e := &entry{id: r.ID, version: r.Version, group: r.Group, order: r.Order, attr: r.Attr, terms: len(all), data: r.Data, size: r.Size, came: len(b.numbers)}
	b.numbers = append(b.numbers, -1)
	for _, k := range keysOf(all, r.Marks, b.Characters) {
		l := b.lists[k.key]
		if l == nil && b.MostKeys > 0 && len(b.lists) >= b.MostKeys {
			b.LeftOut = true
			continue
		}
		if l == nil {
			l = &dict.List{}
			b.lists[strings.Clone(k.key)] = l // a part of a row's terms would keep all of them
		}
		l.Add(dict.Posting{Row: int32(e.came), Count: k.count})
	}
	return e
}

// change takes rows out and puts others in, without their vectors. It returns these.
func (b *Builder) change(gone map[string]bool, put []*Row) []*entry {
	b.rows = slices.DeleteFunc(b.rows, func(e *entry) bool {
		if gone[e.id] {
			b.numbers[e.came] = -1
		}
		return gone[e.id]
	})
	slices.SortFunc(put, func(r, o *Row) int { return Compare(r.Group, r.Order, r.ID, o.Group, o.Order, o.ID) })
	entries := make([]*entry, len(put))
	for i, r := range put {
		entries[i] = b.post(r)
		at, _ := slices.BinarySearchFunc(b.rows, entries[i], (*entry).compare)
		b.rows = slices.Insert(b.rows, at, entries[i])
	}
	for n, e := range b.rows {
		b.numbers[e.came] = int32(n)
	}
	if most := len(b.rows) + len(b.rows)/4 + 64; len(b.numbers) > most {
		b.compact()
	}
	return entries
}

// compact forgets rows that are gone.
func (b *Builder) compact() {
	for key := range b.lists {
		fresh := &dict.List{}
		for _, p := range b.find(key) {
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
	l := b.lists[key]
	if l == nil {
		return nil
	}
	all, ordered := l.All(), true
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

// counted is a key of a row with its count.
type counted struct {
	key   string
	count int32
}

// keysOf returns the keys of a row, each once: terms, marks, and perhaps the single characters of
// scripts without spaces. A row has a character as often as its most common term with it. Korean words begin
// with their meaning and end in particles, so only first syllables count.
func keysOf(terms, marks []string, characters bool) []counted {
	for _, m := range marks {
		terms = append(terms, markKey+m)
	}
	slices.Sort(terms)
	keys := make([]counted, 0, len(terms))
	var most map[string]int32
	for i := 0; i < len(terms); {
		k := counted{key: terms[i]}
		for ; i < len(terms) && terms[i] == k.key; i++ {
			k.count++
		}
		keys = append(keys, k)
		if !characters || !isDenseTerm(k.key) {
			continue
		}
		if most == nil {
			most = map[string]int32{}
		}
		for at, r := range k.key {
			if at > 0 && unicode.Is(unicode.Hangul, r) {
				break
			}
			character := characterKey + string(r)
			most[character] = max(most[character], k.count)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(most)) {
		keys = append(keys, counted{key, most[key]})
	}
	return keys
}

// isDenseTerm reports whether a term is one or two characters of a script without spaces.
func isDenseTerm(term string) bool {
	first, n := utf8.DecodeRuneInString(term)
	if n == len(term) {
		return isDense(first)
	}
	second, m := utf8.DecodeRuneInString(term[n:])
	return n+m == len(term) && isDense(first) && isDense(second)
}

// head returns the head of the present rows, which does not know where parts are.
func (b *Builder) head() *Head {
	h := &Head{Rows: len(b.rows), Attrs: make([]uint64, len(b.rows)), before: make([]uint32, len(b.rows)+1)}
	for n, e := range b.rows {
		h.Attrs[n], h.before[n+1] = e.attr, h.before[n]+uint32(e.terms)
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
	return h
}

// Encode returns the parts of the segment; the first one is the head.
func (b *Builder) Encode() [][]byte {
	h, ids := b.head(), make([]string, len(b.rows))
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
	before := ""
	for _, key := range slices.Sorted(maps.Keys(b.lists)) {
		if len(block) >= b.BlockBytes {
			blocks, block = append(blocks, block), nil
		}
		if len(block) == 0 {
			firsts, before = append(firsts, key), ""
		}
		all := b.find(key)
		block, before = block.Append(before, key, len(all), dict.Stored(all, len(b.rows))), key
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
