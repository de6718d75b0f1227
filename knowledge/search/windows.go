package search

import (
	"unicode"
	"unicode/utf8"

	"nodest/knowledge/chunk"
)

// windowSize is the usual length of a window in code points: about two or three sentences.
const windowSize = 250

// window is a range of a text in bytes.
type window struct{ from, to int }

// windowsOf divides a text into windows. Chunks begin and end at their borders: chunk i has the
// windows from first[i] up to, not including, last[i]. Text in no chunk has no window.
func windowsOf(text string, chunks []chunk.Chunk) (windows []window, first, last []int) {
	first, last = make([]int, len(chunks)), make([]int, len(chunks))
	c := cutter{text: text, chunks: chunks}
	begun, ended := 0, 0 // chunks
	for {
		at := c.runes
		for ended < begun && chunks[ended].End <= at {
			last[ended] = len(windows)
			ended++
		}
		for begun < len(chunks) && chunks[begun].Start <= at {
			first[begun] = len(windows)
			begun++
		}
		if begun == len(chunks) && ended == begun {
			return windows, first, last
		}
		next := 1 << 62 // where a chunk begins or ends
		if begun < len(chunks) {
			next = chunks[begun].Start
		}
		if ended < begun {
			next = min(next, chunks[ended].End)
		}
		from := c.bytes
		if !c.forward(next, ended < begun) { // a chunk reaches behind the text
			for ; ended < len(chunks); ended++ {
				last[ended] = len(windows)
			}
			return windows, first, last
		}
		if ended < begun && c.bytes > from {
			windows = append(windows, window{from, c.bytes})
		}
	}
}

// cutter walks over a text.
type cutter struct {
	text         string
	chunks       []chunk.Chunk
	bytes, runes int
}

// forward goes to a position, or, inside a chunk, to the end of a window before it. It reports
// false at the end of the text.
func (c *cutter) forward(to int, inside bool) bool {
	if c.bytes == len(c.text) {
		return false
	}
	end := to
	if inside && to-c.runes > windowSize*3/2 {
		end = c.runes + windowSize
	}
	best, bestBytes, bestRunes := 0, 0, 0
	start := c.runes
	var before rune
	for c.runes < end && c.bytes < len(c.text) {
		r, n := utf8.DecodeRuneInString(c.text[c.bytes:])
		if b := borderBetween(before, r); c.runes-start > windowSize/2 && b > 0 && b >= best {
			best, bestBytes, bestRunes = b, c.bytes, c.runes
		}
		c.bytes, c.runes, before = c.bytes+n, c.runes+1, r
	}
	if end < to && best > 0 {
		c.bytes, c.runes = bestBytes, bestRunes
	}
	return true
}

// borderBetween judges a place between two code points as the end of a window.
func borderBetween(before, r rune) int {
	switch {
	case before == '\n':
		return 4
	case before == '。' || before == '！' || before == '？':
		return 3
	case unicode.IsSpace(r):
		if before == '.' || before == '!' || before == '?' {
			return 3
		}
		return 1
	case before == '，' || before == '；' || before == '、':
		return 2
	}
	return 0
}
