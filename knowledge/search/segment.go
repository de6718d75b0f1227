package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"nodest/index"
	"nodest/index/dict"
	"nodest/knowledge/chunk"
)

// A segment is stored as
//
//	version      1 byte
//	checksum     4 bytes, of everything behind it
//	numbers      of rows, chunks, windows and blocks
//	rows         for each: its terms; the first chunk that it belongs to, and how many
//	blocks       for each: length in bytes
//	dictionary   blocks of terms (package dict)
//
// where a row is a window of the text, a heading, what a chunk is about, or the name of the file. Numbers are varints.
// The number of a term in the dictionary is of how many chunks a window has it.
const (
	segmentVersion = 2
	blockTerms     = 16 // terms of a block
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
	e := encoder{postings: map[string]*dict.List{}, most: mostDistinct, whole: true}
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
	postings map[string]*dict.List
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
	counts := map[string]int32{}
	for _, t := range terms {
		counts[t]++
	}
	for t, count := range counts {
		p := e.postings[t]
		if p == nil {
			if len(e.postings) >= e.most {
				e.whole = false
				continue
			}
			p = &dict.List{}
			e.postings[t] = p
		}
		p.Add(dict.Posting{Row: int32(len(e.rows)), Count: count})
	}
	e.rows = append(e.rows, row{uint16(min(len(terms), 1<<16-1)), uint32(first), uint32(last)})
}

// encode returns the segment, and something else when ctx has ended.
func (e *encoder) encode(ctx context.Context, chunks int) []byte {
	var blocks []dict.Block
	before, size := "", 0
	for i, t := range slices.Sorted(maps.Keys(e.postings)) {
		if i%blockTerms == 0 {
			if ctx.Err() != nil {
				return nil
			}
			blocks, before = append(blocks, nil), ""
		}
		at, postings := &blocks[len(blocks)-1], e.postings[t].Postings
		size -= len(*at)
		*at, before = at.Append(before, t, e.chunksOf(postings), postings), t
		size += len(*at)
	}
	out := make([]byte, dict.HeadBytes, dict.HeadBytes+size+8*len(e.rows)+2*len(blocks))
	out = dict.AppendInts(out, len(e.rows), chunks, e.texts, len(blocks))
	firstBefore := uint32(0)
	for _, r := range e.rows {
		out = binary.AppendVarint(dict.AppendInts(out, int(r.terms)), int64(r.first)-int64(firstBefore))
		out = dict.AppendInts(out, int(r.last-r.first))
		firstBefore = r.first
	}
	for _, b := range blocks {
		out = dict.AppendInts(out, len(b))
	}
	for _, b := range blocks {
		out = append(out, b...)
	}
	dict.Seal(segmentVersion, out)
	return out
}

// chunksOf counts the chunks whose text has a term.
func (e *encoder) chunksOf(postings dict.Postings) (n int) {
	counted := uint32(0) // chunks before it
	for _, p := range postings.All() {
		if int(p.Row) >= e.texts {
			break
		}
		r := e.rows[p.Row]
		if from := max(r.first, counted); from < r.last {
			n += int(r.last - from)
			counted = r.last
		}
	}
	return n
}

// Decode reads what Encode wrote, and keeps data: it must not be changed. The error is
// dict.ErrDamaged: the segment must be built again.
func Decode(data []byte) (*Segment, error) {
	r, err := dict.Open(segmentVersion, data)
	if err != nil {
		return nil, err
	}
	rows, chunks, windows, blocks := r.Int(), r.Int(), r.Int(), r.Int()
	if rows > len(data) || blocks > len(data) || chunks > len(data) || windows > rows { // not of ours, with a right checksum
		return nil, dict.ErrDamaged
	}
	s := &Segment{rows: make([]row, rows), chunks: make([]chunkInfo, chunks), windows: windows, blocks: make([]uint32, blocks+1)}
	first := 0
	for i := range s.rows {
		terms := r.Int()
		first += int(r.Signed())
		last := first + r.Int()
		if first < 0 || first > chunks || last > chunks {
			return nil, dict.ErrDamaged
		}
		s.rows[i] = row{uint16(terms), uint32(first), uint32(last)}
		s.count(i)
	}
	for i := range blocks {
		s.blocks[i+1] = s.blocks[i] + uint32(r.Int())
	}
	s.dict = r.Data
	if r.Failed || int(s.blocks[blocks]) != len(s.dict) {
		return nil, dict.ErrDamaged
	}
	s.keys = make([]uint64, blocks)
	for i := range s.keys {
		s.keys[i] = keyOf(s.block(i).First())
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
	postings dict.Postings // nil = it is not there
}

// find looks a term up.
func (s *Segment) find(term string) entry {
	key := keyOf(term)
	low, high := 0, len(s.keys) // the term can only be in the block before the first one that begins behind it
	for low < high {
		middle := (low + high) / 2
		if s.keys[middle] < key || s.keys[middle] == key && s.block(middle).First() <= term {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return entry{}
	}
	chunks, postings := s.block(low - 1).Find(term)
	return entry{chunks, postings}
}

// keyOf returns the first eight bytes of a term as a number, in the order of the terms.
func keyOf(term string) (key uint64) {
	for i := range min(8, len(term)) {
		key |= uint64(term[i]) << (56 - 8*i)
	}
	return key
}

// block returns the n-th block of the dictionary.
func (s *Segment) block(n int) dict.Block { return s.dict[s.blocks[n]:s.blocks[n+1]] }

// firstDense is the first of the characters that texts are indexed by in pairs.
const firstDense = '\u0E00'

// around returns, for each of some characters, the entries whose term has it: a lone character
// is found inside the pairs that texts are indexed by. It reads all of the dictionary that may
// have pairs.
func (s *Segment) around(characters []term) [][]entry {
	found := make([][]entry, len(characters))
	from, _ := slices.BinarySearch(s.keys, keyOf(string(firstDense))) // some may be in the block before it
	for n := max(0, from-1); n < len(s.keys); n++ {
		for t := s.block(n).Terms(); t.Next(); {
			for i := range characters {
				if bytes.Contains(t.Term, []byte(characters[i].text)) {
					found[i] = append(found[i], entry{t.Number, t.Postings})
				}
			}
		}
	}
	return found
}
