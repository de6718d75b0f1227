package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"

	"nodest/index"
	"nodest/knowledge/chunk"
)

// A segment is stored as
//
//	version      1 byte
//	checksum     4 bytes, of everything behind it
//	numbers      of rows, chunks, blocks and terms
//	rows         for each: its terms; the first chunk that it belongs to, and how many
//	blocks       for each: length in bytes
//	dictionary   blocks of sorted terms, each with its postings
//
// where a row is a window of the text, a heading, what a chunk is about, or the name of the file. Numbers are varints.
// A term is the length that it shares with the term before it in its block, the rest of it, in
// how many chunks it is, and its postings with their length in bytes. A posting is twice the
// distance to the row before it, plus 1 if the term is there more than once; that count follows.
const (
	segmentVersion = 1
	blockTerms     = 16 // terms of a block
	segmentHead    = 5
)

// Segment is the index of one edition of a file for search by words. It is immutable and safe
// for concurrent use. It keeps its terms compressed as they are stored, and reads those of a
// question in place.
type Segment struct {
	rows        []row
	chunks      []chunkInfo
	windows     int // rows before it are windows; then come headings and context lines, and the name last
	windowTerms int
	terms       int      // of all chunks together; what two share counts twice
	blocks      []uint32 // where they begin, and the end
	keys        []uint64 // of their first terms
	dict        []byte
}

// row belongs to the chunks from first to last.
type row struct {
	terms       uint16
	first, last uint32
}

// chunkInfo has how many terms a chunk has, and which windows.
type chunkInfo struct{ terms, first, last uint32 }

// mostDistinct bounds the different terms of a file, and with them the memory that Encode takes.
// Texts of ten million characters that somebody wrote have fewer.
const mostDistinct = 1 << 20

// Encode builds the segment of a file from its text and chunks, as it is stored. Headings,
// context lines and the name are indexed beside the text. Of more than about a million different
// terms those that come last are left out; whole is false then.
//
// It fails only when ctx ends.
func Encode(ctx context.Context, name, text string, chunks []chunk.Chunk) (data []byte, whole bool, err error) {
	e := encoder{postings: map[string]*postings{}, most: mostDistinct, whole: true}
	windows, first, last := windowsOf(text, chunks)
	e.windows(ctx, text, windows, first, last)
	for from := 0; from < len(chunks); {
		to := from + 1
		for to < len(chunks) && chunks[to].Heading == chunks[from].Heading {
			to++
		}
		if chunks[from].Heading != "" {
			e.add(ctx, chunks[from].Heading, from, to)
		}
		from = to
	}
	for i, c := range chunks {
		if c.Context != "" {
			e.add(ctx, c.Context, i, i+1)
		}
	}
	e.most = math.MaxInt // the name is always found
	e.add(ctx, name, 0, len(chunks))
	data = e.encode(ctx, len(chunks))
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	return data, e.whole, nil
}

// encoder collects rows.
type encoder struct {
	rows     []row
	texts    int // windows, which are the first rows
	postings map[string]*postings
	most     int  // different terms
	whole    bool // none was left out
}

func (e *encoder) windows(ctx context.Context, text string, windows []window, first, last []int) {
	begun, ended := 0, 0
	for w, one := range windows {
		for begun < len(first) && first[begun] <= w {
			begun++
		}
		for ended < begun && last[ended] <= w {
			ended++
		}
		e.add(ctx, text[one.from:one.to], ended, begun)
	}
	e.texts = len(windows)
}

// add adds a row of the chunks from first up to, not including, last, unless ctx has ended.
func (e *encoder) add(ctx context.Context, text string, first, last int) {
	if ctx.Err() != nil {
		return
	}
	terms := index.DocumentTerms(text)
	n := uint32(len(e.rows))
	for _, t := range terms {
		p := e.postings[t]
		if p == nil {
			if len(e.postings) >= e.most {
				e.whole = false
				continue
			}
			p = &postings{}
			e.postings[t] = p
		}
		p.add(n)
	}
	e.rows = append(e.rows, row{uint16(min(len(terms), 1<<16-1)), uint32(first), uint32(last)})
}

// encode returns the segment, and something else when ctx has ended.
func (e *encoder) encode(ctx context.Context, chunks int) []byte {
	terms := make([]string, 0, len(e.postings))
	for t := range e.postings {
		terms = append(terms, t)
	}
	slices.Sort(terms)
	var dict []byte
	var blocks []int
	before := ""
	for i, t := range terms {
		if i%blockTerms == 0 {
			if ctx.Err() != nil {
				return nil
			}
			blocks, before = append(blocks, len(dict)), ""
		}
		shared := sharedLen(before, t)
		dict = appendInts(dict, shared, len(t)-shared)
		dict = append(dict, t[shared:]...)
		stored := e.postings[t].stored()
		dict = appendInts(dict, e.chunksOf(stored), len(stored))
		dict = append(dict, stored...)
		before = t
	}
	out := make([]byte, segmentHead, segmentHead+len(dict)+8*len(e.rows)+2*len(blocks))
	out = appendInts(out, len(e.rows), chunks, e.texts, len(blocks))
	firstBefore := uint32(0)
	for _, r := range e.rows {
		out = binary.AppendVarint(appendInts(out, int(r.terms)), int64(r.first)-int64(firstBefore))
		out = appendInts(out, int(r.last-r.first))
		firstBefore = r.first
	}
	for i, from := range blocks {
		to := len(dict)
		if i+1 < len(blocks) {
			to = blocks[i+1]
		}
		out = appendInts(out, to-from)
	}
	out = append(out, dict...)
	out[0] = segmentVersion
	binary.LittleEndian.PutUint32(out[1:], crc32.ChecksumIEEE(out[segmentHead:]))
	return out
}

// chunksOf counts the chunks whose text has a term.
func (e *encoder) chunksOf(postings []byte) (n int) {
	counted := uint32(0) // chunks before it
	at := 0
	for p := (reader{data: postings}); len(p.data) > 0; {
		step := p.int()
		if at += step >> 1; at >= e.texts {
			break
		}
		if step&1 == 1 {
			p.int()
		}
		r := e.rows[at]
		if from := max(r.first, counted); from < r.last {
			n += int(r.last - from)
			counted = r.last
		}
	}
	return n
}

// postings are those of one term: a text may have millions.
type postings struct {
	data   []byte // as they are stored, without the last one
	before uint32 // row of the last one in data
	row    uint32 // of the last one
	count  uint32 // of the last one; 0 = there is none
}

// add counts the term in a row, which is not before the last one.
func (p *postings) add(row uint32) {
	if p.count > 0 && p.row != row {
		p.data, p.before, p.count = p.stored(), p.row, 0
	}
	p.row = row
	p.count++
}

// stored returns all postings.
func (p *postings) stored() []byte {
	if p.count == 1 {
		return appendInts(p.data, int(p.row-p.before)<<1)
	}
	return appendInts(p.data, int(p.row-p.before)<<1|1, int(p.count))
}

func sharedLen[A, B string | []byte](a A, b B) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func appendInts(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// errSegment tells that bytes are not a segment of this version.
var errSegment = errors.New("search: not a segment of this version")

// Decode reads what Encode wrote, and keeps data: it must not be changed. An error means that
// the segment must be built again.
func Decode(data []byte) (*Segment, error) {
	if len(data) < segmentHead || data[0] != segmentVersion || binary.LittleEndian.Uint32(data[1:]) != crc32.ChecksumIEEE(data[segmentHead:]) {
		return nil, errSegment
	}
	r := reader{data: data[segmentHead:]}
	rows, chunks, windows, blocks := r.int(), r.int(), r.int(), r.int()
	if rows > len(data) || blocks > len(data) || chunks > len(data) || windows > rows { // not of ours, with a right checksum
		return nil, errSegment
	}
	s := &Segment{rows: make([]row, rows), chunks: make([]chunkInfo, chunks), windows: windows, blocks: make([]uint32, blocks+1)}
	first := 0
	for i := range s.rows {
		terms := r.int()
		first += r.signed()
		last := first + r.int()
		if first < 0 || last > chunks {
			return nil, errSegment
		}
		s.rows[i] = row{uint16(terms), uint32(first), uint32(last)}
		s.count(i)
	}
	for i := range blocks {
		s.blocks[i+1] = s.blocks[i] + uint32(r.int())
	}
	s.dict = r.data
	if r.failed || int(s.blocks[blocks]) != len(s.dict) {
		return nil, errSegment
	}
	s.keys = make([]uint64, blocks)
	for i := range s.keys {
		s.keys[i] = keyOf(s.first(i))
	}
	return s, nil
}

// count adds a row to its chunks.
func (s *Segment) count(i int) {
	r := s.rows[i]
	if i >= s.windows {
		return
	}
	s.windowTerms += int(r.terms)
	for c := r.first; c < r.last; c++ {
		k := &s.chunks[c]
		if k.last == 0 {
			k.first = uint32(i)
		}
		k.last = uint32(i + 1)
		k.terms += uint32(r.terms)
		s.terms += int(r.terms)
	}
}

// Bytes estimates the memory that a segment takes.
func (s *Segment) Bytes() int {
	return 200 + 12*len(s.rows) + 12*len(s.chunks) + 4*len(s.blocks) + 8*len(s.keys) + cap(s.dict)
}

// Chunks returns how many chunks the file has.
func (s *Segment) Chunks() int { return len(s.chunks) }

// entry is what a dictionary knows of a term.
type entry struct {
	chunks   int
	postings []byte
}

// find looks a term up.
func (s *Segment) find(term string) (entry, bool) {
	key := keyOf(term)
	low, high := 0, len(s.keys) // the term can only be in the block before the first one that begins behind it
	for low < high {
		middle := (low + high) / 2
		if s.keys[middle] < key || s.keys[middle] == key && s.first(middle) <= term {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return entry{}, false
	}
	r := reader{data: s.dict[s.blocks[low-1]:s.blocks[low]]}
	same := 0 // bytes that the terms so far, which come before it, have in common with it
	for len(r.data) > 0 {
		shared, rest := r.int(), r.take(r.int())
		e := entry{r.int(), r.take(r.int())}
		switch {
		case shared > same: // it differs from the term where the one before it does
			continue
		case shared < same:
			return entry{}, false
		}
		n := sharedLen(rest, term[same:])
		same += n
		switch {
		case n == len(rest) && same == len(term):
			return e, !r.failed
		case n < len(rest) && (same == len(term) || rest[n] > term[same]):
			return entry{}, false
		}
	}
	return entry{}, false
}

// keyOf returns the first eight bytes of a term as a number, in the order of the terms.
func keyOf(term string) (key uint64) {
	for i := range min(8, len(term)) {
		key |= uint64(term[i]) << (56 - 8*i)
	}
	return key
}

// first returns the first term of a block.
func (s *Segment) first(n int) string {
	r := reader{data: s.dict[s.blocks[n]:]}
	r.int()
	return string(r.take(r.int()))
}

// block reads the terms of a block in their order.
type block struct {
	reader
	term  []byte
	room  [4 * longestTerm]byte // of term
	entry entry
}

// longestTerm is about the longest term of package index, in bytes; longer ones work as well.
const longestTerm = 64

func (s *Segment) block(n int) *block {
	b := &block{reader: reader{data: s.dict[s.blocks[n]:s.blocks[n+1]]}}
	b.term = b.room[:0]
	return b
}

// next goes to the next term; false = there is none.
func (b *block) next() bool {
	if len(b.data) == 0 {
		return false
	}
	shared := b.int()
	b.term = append(b.term[:min(shared, len(b.term))], b.take(b.int())...)
	b.entry.chunks = b.int()
	b.entry.postings = b.take(b.int())
	return !b.failed
}

// firstDense is the first of the characters that texts are indexed by in pairs.
const firstDense = '\u0E00'

// around returns, for each of some characters, the entries whose term has it: a lone character
// is found inside the pairs that texts are indexed by. It reads all of the dictionary that may
// have pairs.
func (s *Segment) around(characters []term) [][]entry {
	found := make([][]entry, len(characters))
	from, _ := slices.BinarySearch(s.keys, keyOf(string(firstDense))) // some may be in the block before it
	for n := max(0, from-1); n < len(s.keys); n++ {
		for b := s.block(n); b.next(); {
			for i := range characters {
				if bytes.Contains(b.term, []byte(characters[i].text)) {
					found[i] = append(found[i], b.entry)
				}
			}
		}
	}
	return found
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
	if k <= 0 || n > 1<<31 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[k:]
	return int(n)
}

func (r *reader) signed() int {
	n, k := binary.Varint(r.data)
	if k <= 0 || n > 1<<31 || n < -1<<31 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[k:]
	return int(n)
}

func (r *reader) take(n int) []byte {
	if n > len(r.data) {
		r.failed, r.data = true, nil
		return nil
	}
	part := r.data[:n]
	r.data = r.data[n:]
	return part
}
