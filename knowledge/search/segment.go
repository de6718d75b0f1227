package search

import (
	"context"
	"strings"

	"nodest/internal/index"
	"nodest/internal/index/dict"
	"nodest/knowledge/chunk"
)

// A segment has a row for each window of the text, for each heading and context line, and for the name
// of the file. Its attribute is the first chunk that it belongs to, in the upper half, and how
// many. The groups are the three kinds of rows.
const (
	windowGroup = "1"
	besideGroup = "2"
	nameGroup   = "3"
)

// blockBytes is about how long a block of the dictionary of a file is: all are in memory, so a short one
// costs no read.
const blockBytes = 512

// Segment is the index of one edition of a file for search by words. It is immutable and safe
// for concurrent use. It keeps its terms compressed as they are stored, and reads those of a
// question in place.
type Segment struct {
	*index.Whole
	chunks      []chunkInfo
	windows     int // rows before it are windows; then come headings and context lines, and the name last
	windowTerms int
	terms       int // of all chunks together; what two share counts twice
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
	b := index.NewBuilder()
	b.BlockBytes, b.MostKeys, b.Characters = blockBytes, mostDistinct, false
	add := func(group, text string, first, last int) {
		if ctx.Err() == nil {
			b.Add(&index.Row{Group: group, Order: int64(b.Rows()), Attr: uint64(first)<<32 | uint64(last-first), Terms: strings.Join(index.DocumentTerms(text), " ")})
		}
	}
	windows, first, last := windowsOf(text, chunks)
	begun, ended := 0, 0
	for w, one := range windows {
		for begun < len(first) && first[begun] <= w {
			begun++
		}
		for ended < begun && last[ended] <= w {
			ended++
		}
		add(windowGroup, text[one.from:one.to], ended, begun)
	}
	for from := 0; from < len(chunks); {
		to := from + 1
		for to < len(chunks) && chunks[to].Heading == chunks[from].Heading {
			to++
		}
		if chunks[from].Heading != "" {
			add(besideGroup, chunks[from].Heading, from, to)
		}
		from = to
	}
	for i, c := range chunks {
		if c.Context != "" {
			add(besideGroup, c.Context, i, i+1)
		}
	}
	b.MostKeys = 0 // the name is always found
	add(nameGroup, name, 0, len(chunks))
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	return b.EncodeWhole(), !b.LeftOut, nil
}

// Decode reads what Encode wrote, and keeps data: it must not be changed. The error is
// dict.ErrDamaged: the segment must be built again.
func Decode(data []byte) (*Segment, error) {
	whole, err := index.DecodeWhole(data)
	if err != nil {
		return nil, err
	}
	s := &Segment{Whole: whole}
	if s.Rows == 0 || s.Group(nameGroup) == nil {
		return nil, dict.ErrDamaged
	}
	if g := s.Group(windowGroup); g != nil {
		s.windows = g.End
	}
	_, chunks := s.belongs(s.Rows - 1)
	if int(chunks) > len(data) {
		return nil, dict.ErrDamaged
	}
	s.chunks = make([]chunkInfo, chunks)
	for i := range s.Rows {
		if first, last := s.belongs(i); first > last || last > chunks {
			return nil, dict.ErrDamaged
		}
	}
	for i := range s.windows {
		s.count(i)
	}
	return s, nil
}

// belongs returns the chunks that a row belongs to, from first to before last.
func (s *Segment) belongs(row int) (first, last uint32) {
	a := s.Attrs[row]
	return uint32(a >> 32), uint32(a>>32) + uint32(a)
}

// count adds a window to its chunks.
func (s *Segment) count(i int) {
	terms := s.Terms(i, i+1)
	s.windowTerms += terms
	first, last := s.belongs(i)
	for c := first; c < last; c++ {
		k := &s.chunks[c]
		if k.last == 0 {
			k.first = uint32(i)
		}
		k.last = uint32(i + 1)
		k.terms += uint32(terms)
		s.terms += terms
	}
}

// Bytes estimates the memory that a segment takes.
func (s *Segment) Bytes() int { return s.Whole.Bytes() + 12*len(s.chunks) }

// Chunks returns how many chunks the file has.
func (s *Segment) Chunks() int { return len(s.chunks) }

// having counts the chunks whose text has a term, by its postings.
func (s *Segment) having(all []index.Postings) (n int) {
	var rows []dict.Posting
	for _, p := range all {
		rows = s.Append(rows[:0], p, nil)
		counted := uint32(0) // chunks before it
		for _, r := range rows {
			if int(r.Row) >= s.windows {
				break
			}
			first, last := s.belongs(int(r.Row))
			if first = max(first, counted); first < last {
				n += int(last - first)
				counted = last
			}
		}
	}
	return min(n, len(s.chunks))
}
