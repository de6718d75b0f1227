package parse

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pdfLine is a line of a page.
type pdfLine struct {
	text   string
	hyphen bool // a word goes on in the next line
	width  int  // in half-width columns
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "ft", "ﬆ", "st",
	"\u0002\r\n", "\ufffe\n", "\u0002", "\ufffe")

// pdfLines cuts the text of a page. PDFium writes U+0002 or U+FFFE for the hyphen of a word
// that goes on in the next line.
func pdfLines(text string) []pdfLine {
	var out []pdfLine
	for line := range strings.Lines(ligatures.Replace(strings.ReplaceAll(text, "\r\n", "\n"))) {
		line = strings.TrimRight(line, " \n\r\t")
		bare, hyphen := strings.CutSuffix(line, "\ufffe")
		bare = strings.TrimSpace(clean(strings.ReplaceAll(bare, "\ufffe", "-")))
		if bare == "" {
			continue
		}
		out = append(out, pdfLine{bare, hyphen, columns(bare)})
	}
	return out
}

// columns is the width of a text: two for a character of East Asia, else one.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n++
		if isWide(r) {
			n++
		}
	}
	return n
}

// isWide reports whether r belongs to a script that is written without spaces.
func isWide(r rune) bool {
	return r >= 0x2e80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff60)
}

// headZone is how many lines at the top and bottom of a page may be running heads.
const headZone = 3

// shape is what running heads have in common: the line without its numbers.
func shape(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) || unicode.IsSpace(r) {
			return -1
		}
		return r
	}, line)
}

func inHeadZone(i, n int) bool { return i < headZone || i >= n-headZone }

// runningHeads returns the shapes of lines that stand at the top or bottom of more than 60 %
// of the pages.
func runningHeads(pages [][]pdfLine) map[string]bool {
	counts := map[string]int{}
	for _, lines := range pages {
		seen := map[string]bool{}
		for i, l := range lines {
			if s := shape(l.text); inHeadZone(i, len(lines)) && !seen[s] && len(s) < 200 {
				seen[s] = true
				counts[s]++
			}
		}
	}
	heads := map[string]bool{}
	for s, n := range counts {
		if len(pages) >= 4 && n*10 > len(pages)*6 {
			heads[s] = true
		}
	}
	return heads
}

func withoutHeads(lines []pdfLine, heads map[string]bool) []pdfLine {
	if len(heads) == 0 {
		return lines
	}
	out := make([]pdfLine, 0, len(lines))
	for i, l := range lines {
		if !inHeadZone(i, len(lines)) || !heads[shape(l.text)] {
			out = append(out, l)
		}
	}
	return out
}

// joinLines joins the lines of paragraphs: words that are hyphenated, lines of East Asian text
// without a space, and others with one.
func joinLines(lines []pdfLine) string {
	full := fullWidth(lines)
	var out strings.Builder
	for i, l := range lines {
		out.WriteString(l.text)
		if i+1 == len(lines) {
			break
		}
		out.WriteString(between(l, lines[i+1], full))
	}
	return clean(out.String())
}

// fullWidth is the width of the lines that fill the page.
func fullWidth(lines []pdfLine) int {
	if len(lines) == 0 {
		return 0
	}
	widths := make([]int, len(lines))
	for i, l := range lines {
		widths[i] = l.width
	}
	slices.Sort(widths)
	return widths[len(widths)*9/10]
}

// between returns what stands between two lines of a page.
func between(l, next pdfLine, full int) string {
	last, _ := utf8.DecodeLastRuneInString(l.text)
	first, _ := utf8.DecodeRuneInString(next.text)
	switch {
	case l.hyphen && unicode.IsLower(first):
		return ""
	case l.hyphen:
		return "-"
	case l.width*4 < full*3 || full < 40: // the last line of a paragraph, a heading, a list or code
		return "\n"
	case strings.ContainsRune("。！？.!?:：;；", last) || !unicode.IsLetter(first) && !unicode.IsDigit(first) && !strings.ContainsRune("（(“‘《「", first):
		return "\n"
	case isWide(last) && isWide(first):
		return ""
	case unicode.IsUpper(first) && !isWide(last) || unicode.IsDigit(first):
		return "\n"
	}
	return " "
}

// finder finds headings in the text of a page.
type finder struct {
	pages []Page
	text  []rune
	last  int // where the heading before was found
}

func newFinder(b *builder) *finder { return &finder{pages: b.pages, text: []rune(b.text.String())} }

// find returns where a title stands on a page, or else where the page begins.
func (f *finder) find(title string, page int) int {
	if page < 0 || page >= len(f.pages) {
		return f.last
	}
	at := f.pages[page]
	want := []rune(shapeOfTitle(title))
	from := at.Start
	if f.last > from && f.last < at.End {
		from = f.last
	}
	for i := from; i < at.End && len(want) > 0; i++ {
		if i > at.Start && f.text[i-1] != '\n' {
			continue
		}
		if matches(f.text[i:at.End], want) {
			f.last = i
			return i
		}
	}
	f.last = from
	return from
}

func shapeOfTitle(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, oneLine(s, maxTitle))
}

// matches reports whether a text begins with want, with a number before it perhaps.
func matches(text, want []rune) bool {
	text = text[:min(len(text), 400)]
	for skipped := 0; ; {
		if startsWith(text, want) {
			return true
		}
		if len(text) == 0 || skipped > 12 || !unicode.IsDigit(text[0]) && !unicode.IsSpace(text[0]) && text[0] != '.' {
			return false
		}
		text = text[1:]
		skipped++
	}
}

func startsWith(text, want []rune) bool {
	i := 0
	for _, r := range text {
		if unicode.IsSpace(r) {
			continue
		}
		if i == len(want) {
			return true
		}
		if unicode.ToLower(r) != want[i] {
			return false
		}
		i++
	}
	return i == len(want)
}
