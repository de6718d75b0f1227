// Package chunk cuts the text of a document into overlapping chunks along its structure.
package chunk

import (
	"strings"
	"unicode/utf8"

	"nodest/knowledge/parse"
)

// Rules say how large chunks are, in code points.
type Rules struct {
	Size    int // 100 to 8000
	Overlap int // 0 to Size/2
}

// Default is what a knowledge base starts with.
var Default = Rules{Size: 800, Overlap: 400}

// Chunk is a range of a document's text, in code points.
type Chunk struct {
	Start, End int
	Text       string // the text in that range
	Heading    string // path of the section it begins in, such as "People › Maren Oduya"; see Cut
	Page       int    // where it begins, from 1; 0 = none
	Kind       string // text, code, table, row or entry: what most of it is
	Context    string // says what it is about, for search; Cut leaves it empty
}

// longestHeader bounds the header of a table in Chunk.Heading, in code points.
const longestHeader = 200

// Cut cuts a document. Chunks are in order, cover everything but blanks, and none is contained
// in the one before it. A chunk is at most Size long, and 15 % longer where the rest of a
// section would be shorter than that. It takes time in proportion to the text.
//
// A chunk ends at the best border in its second half: the start of a section, the border of a
// unit, a blank line, a line, a sentence, a clause, a word. A heading does not end a chunk, and
// none reaches over a heading of the top level. The next chunk repeats whole sentences of the
// same section, up to Overlap. No cut is made inside a character with its marks, a fence, or a
// row or table line that a chunk has room for.
//
// Text is always the literal text of its range. So the header of a table is not repeated in the
// chunks that begin behind it: it ends their Heading, which is searched and embedded as well.
// The symbol of code, and the title of an entry, end the Heading too.
func Cut(d *parse.Document, r Rules) []Chunk {
	r = r.within()
	c := newCutter(d, r)
	var chunks []Chunk
	for i, from := range c.hard {
		to := len(c.text)
		if i+1 < len(c.hard) {
			to = c.hard[i+1]
		}
		c.section(from, to, func(start, end int) { chunks = append(chunks, Chunk{Start: start, End: end}) })
	}
	c.describe(d, chunks)
	return chunks
}

func (r Rules) within() Rules {
	r.Size = min(max(r.Size, 100), 8000)
	r.Overlap = min(max(r.Overlap, 0), r.Size/2)
	return r
}

// section cuts the text between two hard borders.
func (c *cutter) section(from, to int, emit func(start, end int)) {
	size := c.rules.Size
	start, done := c.skip(from, to), from
	for start < to {
		end := to
		if to-start > size+size*15/100 {
			end = c.end(start, done, min(start+size, to))
			if end == 0 { // the text that follows fits only without the repeated text
				start = done
				continue
			}
			if c.skip(end, to) == to || to-end < size*15/100 {
				end = to
			}
		}
		emit(start, c.trim(start, end))
		if end == to {
			return
		}
		done = c.skip(end, to)
		start = c.skip(c.repeat(start, end), to)
	}
}

// end chooses where a chunk ends that begins at start: behind done, at most at last. It returns
// 0 if nothing fits, and start is before done.
func (c *cutter) end(start, done, last int) int {
	size := c.rules.Size
	low := max(start+size/2, done+size/8)
	at := c.best(low, last, border(1))
	if at == 0 || c.borders[at] <= insideUnit {
		if early := c.best(max(start+size/8, done+size/8), min(low, last), line); early > 0 {
			return early
		}
	}
	if early := c.best(max(start+size/4, done+size/8), min(low, last), unitBorder); early > 0 && (at == 0 || c.borders[early] > c.borders[at]) {
		return early
	}
	switch {
	case at > 0:
		return at
	case start < done:
		return 0
	}
	if at = c.best(start+1, last, border(1)); at > 0 {
		return at
	}
	return last
}

// best returns the last of the best borders in (low, last] that are at least of a kind; 0 = none.
func (c *cutter) best(low, last int, least border) int {
	best, at := least, 0
	for p := last; p > low; p-- {
		if b := c.borders[p]; b >= least && (at == 0 || b > best) {
			best, at = b, p
		}
	}
	return at
}

// repeat returns where the chunk after start to end begins: at most Overlap before end, at the
// first sentence there.
func (c *cutter) repeat(start, end int) int {
	if c.borders[end] >= section {
		return end
	}
	low := max(end-c.rules.Overlap, start+1)
	best, at := border(0), end
	for p := end - 1; p >= low; p-- {
		b := c.borders[p]
		if b >= section {
			return p
		}
		if b = min(b, sentence); b > 0 && b >= best {
			best, at = b, p
		}
	}
	return at
}

// skip returns the first code point from p on that is not blank.
func (c *cutter) skip(p, to int) int {
	for p < to && isBlank(c.text[p]) {
		p++
	}
	return p
}

// trim returns the end of a range without the blanks there.
func (c *cutter) trim(start, end int) int {
	for end > start && isBlank(c.text[end-1]) {
		end--
	}
	return end
}

// describe adds text, heading, page and kind to ranges in their order.
func (c *cutter) describe(d *parse.Document, chunks []Chunk) {
	starts, ends := cursor{text: d.Text}, cursor{text: d.Text}
	head, page, unit := 0, 0, 0
	for i := range chunks {
		k := &chunks[i]
		k.Text = d.Text[starts.to(k.Start):ends.to(k.End)]
		for head < len(c.heads) && c.heads[head].start <= k.Start {
			head++
		}
		if head > 0 {
			k.Heading = c.heads[head-1].path
		}
		for page < len(d.Pages) && d.Pages[page].End <= k.Start {
			page++
		}
		if page < len(d.Pages) && d.Pages[page].Start <= k.Start {
			k.Page = d.Pages[page].N
		}
		for unit < len(c.units) && c.units[unit].End <= k.Start {
			unit++
		}
		k.ofUnits(c.units[unit:])
	}
}

// ofUnits sets Kind, and ends Heading with what the first unit is called.
func (k *Chunk) ofUnits(units []parse.Unit) {
	k.Kind = "text"
	in := map[string]int{}
	for _, u := range units {
		if u.Start >= k.End {
			break
		}
		in[u.Kind] += min(u.End, k.End) - max(u.Start, k.Start)
		if 2*in[u.Kind] > k.End-k.Start {
			k.Kind = u.Kind
		}
	}
	if len(in) == 0 {
		return
	}
	first := &units[0]
	begun := first.Start <= k.Start
	if (begun || k.Kind == first.Kind) && first.Title != "" && !strings.HasSuffix(k.Heading, first.Title) {
		k.Heading = join(k.Heading, first.Title)
	}
	if begun && first.Header != "" && !strings.Contains(k.Text, first.Header) {
		k.Heading = join(k.Heading, firstRunes(first.Header, longestHeader))
	}
}

func join(path, title string) string {
	if path == "" {
		return title
	}
	return path + " › " + title
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// cursor turns growing positions in code points into positions in bytes.
type cursor struct {
	text        string
	runes, byte int
}

func (c *cursor) to(runes int) int {
	if runes < c.runes { // the start of a chunk is never before the last one's
		c.runes, c.byte = 0, 0
	}
	for c.runes < runes && c.byte < len(c.text) {
		_, n := utf8.DecodeRuneInString(c.text[c.byte:])
		c.byte += n
		c.runes++
	}
	return c.byte
}
