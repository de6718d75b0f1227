package cite

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Span is a range [start, end) of a text; its owner states the unit.
type Span [2]int

// Chunk is a piece of a text and where it is.
type Chunk struct {
	Text   string
	Bytes  Span
	Units  Span // UTF-16 code units
	Points Span // code points
}

// Len16 is the length of s in UTF-16 code units. An invalid byte counts as one.
func Len16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// locate returns the chunks at the given byte ranges, which must be in order and not overlap.
func locate(text string, spans []Span) []Chunk {
	chunks := make([]Chunk, 0, len(spans))
	var at ruler
	for _, s := range spans {
		at.advance(text, s[0])
		start := at
		at.advance(text, s[1])
		chunks = append(chunks, Chunk{
			Text: text[s[0]:s[1]], Bytes: s,
			Units: Span{start.units, at.units}, Points: Span{start.points, at.points},
		})
	}
	return chunks
}

// ruler is a position in a text in all three units.
type ruler struct{ bytes, units, points int }

// advance moves to a later byte offset.
func (at *ruler) advance(text string, to int) {
	for _, r := range text[at.bytes:to] {
		at.units += utf16.RuneLen(r)
		at.points++
	}
	at.bytes = to
}

// advanceUnits moves on by n units, or to the end of text. It never stops between the two
// halves of a surrogate pair, but after them.
func (at *ruler) advanceUnits(text string, n int) {
	for to := at.units + n; at.units < to && at.bytes < len(text); {
		r, size := utf8.DecodeRuneInString(text[at.bytes:])
		at.bytes += size
		at.units += utf16.RuneLen(r)
		at.points++
	}
}
