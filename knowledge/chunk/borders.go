package chunk

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"nodest/knowledge/parse"
)

// border says how good a place before a code point is for a cut; 0 forbids it.
type border uint8

const (
	anywhere   border = iota + 1
	insideUnit        // between words of a unit, or behind a heading
	space
	clause
	sentence
	line
	blankLine
	unitBorder
	section
)

// longestCluster bounds how many marks belong to one character: a text of marks alone is cut too.
const longestCluster = 32

// cutter knows where a text may be cut.
type cutter struct {
	rules   Rules
	text    []rune
	borders []border // before each code point, and at the end
	hard    []int    // starts of ranges that no chunk reaches over
	heads   []head
	units   []parse.Unit // that do not overlap
}

// head is a heading with its path.
type head struct {
	start, level int
	path         string
}

func newCutter(d *parse.Document, r Rules) *cutter {
	c := &cutter{rules: r, text: []rune(d.Text)}
	c.borders = make([]border, len(c.text)+1)
	c.ofText()
	c.units = c.flat(d.Units)
	c.ofUnits()
	c.ofPages(d)
	c.ofHeadings(d.Outline)
	c.ofRows()
	c.hard = slices.Compact(append([]int{0}, c.hardBorders(d)...))
	return c
}

func isBlank(r rune) bool { return unicode.IsSpace(r) }

// ofText finds lines, sentences, clauses and words.
func (c *cutter) ofText() {
	cluster := 0
	for p := 1; p < len(c.text); p++ {
		if joined(c.text, p) && cluster < longestCluster {
			cluster++
			continue
		}
		cluster = 0
		c.borders[p] = between(c.text, p)
	}
	c.borders[len(c.text)] = blankLine
}

// joined reports whether the code point at p belongs to the one before.
func joined(text []rune, p int) bool {
	r, before := text[p], text[p-1]
	if r < 0x300 {
		return before == 0x200D
	}
	flag := func(r rune) bool { return 0x1F1E6 <= r && r <= 0x1F1FF }
	if flag(r) && flag(before) {
		n := 0
		for n < longestCluster && p-1-n >= 0 && flag(text[p-1-n]) {
			n++
		}
		return n%2 == 1
	}
	return r == 0x200D || before == 0x200D || 0x1F3FB <= r && r <= 0x1F3FF || unicode.Is(unicode.M, r)
}

// between judges the place before the code point at p, which belongs behind blanks.
func between(text []rune, p int) border {
	r, before := text[p], text[p-1]
	if isBlank(r) {
		return anywhere
	}
	switch {
	case before == '\n':
		return behindLine(text, p)
	case isBlank(before):
		return behindBlank(text, p)
	case isClosing(r) || isStop(r):
		return anywhere
	}
	q := p - 1
	for q > 0 && p-q < 8 && isClosing(text[q]) {
		q--
	}
	switch text[q] {
	case '。', '！', '？', '…':
		return sentence
	case '；', '，', '、', '：':
		return clause
	}
	return anywhere
}

// behindLine judges a place behind a line break.
func behindLine(text []rune, p int) border {
	q := p - 2
	for q >= 0 && text[q] != '\n' && isBlank(text[q]) {
		q--
	}
	if q < 0 || text[q] == '\n' {
		return blankLine
	}
	return line
}

// behindBlank judges a place behind another blank.
func behindBlank(text []rune, p int) border {
	q := p - 1
	for q > 0 && p-q < 8 && (isBlank(text[q]) || isClosing(text[q])) {
		q--
	}
	switch text[q] {
	case '\n':
		return line
	case '.', '!', '?', '。', '！', '？', '…':
		return sentence
	case ';', ',', ':', '；', '，', '、', '：':
		return clause
	}
	return space
}

func isClosing(r rune) bool { return strings.ContainsRune(`"'”’」』）》〉】)]}`, r) }

func isStop(r rune) bool { return strings.ContainsRune("。！？…；，、：.,;:!?", r) }

// flat returns units in order, of overlapping ones the outer unless it is too long for a chunk.
func (c *cutter) flat(units []parse.Unit) []parse.Unit {
	units = slices.Clone(units)
	slices.SortStableFunc(units, func(a, b parse.Unit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	var flat []parse.Unit
	for _, u := range units {
		u.Start, u.End = max(u.Start, 0), min(u.End, len(c.text))
		if u.Start >= u.End {
			continue
		}
		if n := len(flat); n > 0 && u.Start < flat[n-1].End {
			if outer := &flat[n-1]; outer.End-outer.Start <= c.rules.Size || u.Start == outer.Start && u.End == outer.End {
				continue
			} else if outer.End = u.Start; outer.Start == outer.End {
				flat = flat[:n-1]
			}
		}
		flat = append(flat, u)
	}
	return flat
}

// ofUnits makes the edges of units good places, and those inside bad ones.
func (c *cutter) ofUnits() {
	for _, u := range c.units {
		c.raise(u.Start, unitBorder)
		c.raise(u.End, unitBorder)
		if u.End-u.Start > c.rules.Size {
			continue
		}
		for p := u.Start + 1; p < u.End; p++ {
			if u.Kind == "row" {
				c.borders[p] = 0
			}
			c.borders[p] = min(c.borders[p], insideUnit)
		}
	}
}

func (c *cutter) raise(p int, b border) {
	if p > 0 && p < len(c.text) && c.borders[p] > 0 {
		c.borders[p] = max(c.borders[p], b)
	}
}

// ofPages makes slides good places. A page of a PDF is only where the paper ended.
func (c *cutter) ofPages(d *parse.Document) {
	for _, p := range d.Pages {
		if d.Type != "pdf" {
			c.raise(p.Start, section)
		}
	}
}

// ofHeadings makes the starts of sections good places, and the places behind headings bad ones.
func (c *cutter) ofHeadings(outline []parse.Heading) {
	var open []head
	var titles []string
	for _, h := range outline {
		if h.Start < 0 || h.Start >= len(c.text) || len(c.heads) > 0 && h.Start < c.heads[len(c.heads)-1].start {
			continue
		}
		for len(open) > 0 && open[len(open)-1].level >= h.Level {
			open, titles = open[:len(open)-1], titles[:len(titles)-1]
		}
		titles = append(titles, strings.TrimSpace(h.Title))
		n := head{h.Start, h.Level, strings.Join(titles, " › ")}
		open, c.heads = append(open, n), append(c.heads, n)
		c.raise(h.Start, section)
	}
	for _, h := range c.heads {
		for p, end := h.start+1, c.behind(h.start); p <= end && p < len(c.text); p++ {
			c.borders[p] = min(c.borders[p], insideUnit)
		}
	}
}

// behind returns where the text after a heading line begins.
func (c *cutter) behind(start int) int {
	p := start
	for p < len(c.text) && c.text[p] != '\n' && p-start < c.rules.Size/2 {
		p++
	}
	return c.skip(p, len(c.text))
}

// ofRows forbids cuts inside fences and table lines of Markdown that a chunk has room for.
func (c *cutter) ofRows() {
	for from := 0; from < len(c.text); {
		to := from
		for to < len(c.text) && c.text[to] != '\n' {
			to++
		}
		first := c.skip(from, to)
		whole := first < to && to-first <= c.rules.Size && (c.text[first] == '|' || isFence(c.text[first:to]))
		for p := first + 1; whole && p <= to && p < len(c.text); p++ {
			c.borders[p] = 0
		}
		from = to + 1
	}
}

func isFence(line []rune) bool {
	return len(line) >= 3 && (line[0] == '`' || line[0] == '~') && line[1] == line[0] && line[2] == line[0]
}

// hardBorders returns the headings of the top level, and the chapters and sheets. A heading
// with nothing below it goes with the next one.
func (c *cutter) hardBorders(d *parse.Document) (hard []int) {
	top := 0
	for _, h := range c.heads {
		if top == 0 || h.level < top {
			top = h.level
		}
	}
	for _, h := range c.heads {
		if h.level == top {
			hard = append(hard, h.start)
		}
	}
	if d.Type == "epub" || d.Type == "xlsx" {
		for _, p := range d.Pages {
			if p.Start >= 0 && p.Start < len(c.text) {
				hard = append(hard, p.Start)
			}
		}
	}
	slices.Sort(hard)
	empty, begin := 0, c.skip(0, len(c.text))
	return slices.DeleteFunc(hard, func(at int) bool {
		joined := empty > 0 && at <= empty
		if i, ok := slices.BinarySearchFunc(c.heads, at, func(h head, at int) int { return cmp.Compare(h.start, at) }); ok {
			empty = c.behind(c.heads[i].start)
		}
		return joined || at <= begin
	})
}
