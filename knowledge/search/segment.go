package search

import (
	"context"
	"strings"

	"nodest/internal/index"
	"nodest/knowledge/chunk"
)

// A segment has a row for each window of the text, for each heading and context line, and for the name
// of the file. The groups are the three kinds of rows.
const (
	windowGroup = "1"
	besideGroup = "2"
	nameGroup   = "3"
)

// blockBytes is about how long a block of the dictionary of a file is: all are in memory, so a short one
// costs no read.
const blockBytes = 512

// Segment is the index of one edition of a file for search by words. Its units are the chunks. It keeps
// its terms compressed as they are stored, and reads those of a question in place.
type Segment = index.Document

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
			b.Add(&index.Row{Group: group, Order: int64(b.Rows()), Attr: index.InUnits(first, last), Terms: strings.Join(index.DocumentTerms(text), " ")})
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
func Decode(data []byte) (*Segment, error) { return index.DecodeDocument(data, windowGroup) }
