package parse

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds that keep the structure of a hostile file smaller than its text.
const (
	maxHeadings = 10_000
	maxUnits    = 200_000
	maxTitle    = 200 // code points
	maxHeader   = 500 // code points
)

// builder collects the text of a document and its structure. Positions are code points.
type builder struct {
	text  strings.Builder
	n     int // code points written
	limit int // bounds n
	full  bool
	last  [2]byte // the end of the text, for breaks

	title   string
	outline []Heading
	pages   []Page
	units   []Unit
}

func newBuilder(limit int) *builder { return &builder{limit: limit} }

// write adds text that is clean.
func (b *builder) write(s string) {
	if s == "" || b.full {
		return
	}
	n := utf8.RuneCountInString(s)
	if b.n+n > b.limit {
		b.full = true
		return
	}
	b.text.WriteString(s)
	b.n += n
	if len(s) > 1 {
		b.last = [2]byte{s[len(s)-2], s[len(s)-1]}
	} else {
		b.last = [2]byte{b.last[1], s[0]}
	}
}

// newline ends the line, if there is one.
func (b *builder) newline() {
	if b.n > 0 && b.last[1] != '\n' {
		b.write("\n")
	}
}

// blank puts an empty line before what follows.
func (b *builder) blank() {
	b.newline()
	if b.n > 0 && b.last[0] != '\n' {
		b.write("\n")
	}
}

// heading says that a section begins at start.
func (b *builder) heading(level int, title string, start int) {
	title = oneLine(title, maxTitle)
	if title == "" || len(b.outline) >= maxHeadings || b.full {
		return
	}
	b.outline = append(b.outline, Heading{Level: max(level, 1), Title: title, Start: start})
}

// unit says that what was written since start belongs together.
func (b *builder) unit(u Unit) {
	u.End = b.n
	if u.Start >= u.End || len(b.units) >= maxUnits || b.full {
		return
	}
	u.Header, u.Title = oneLine(u.Header, maxHeader), oneLine(u.Title, maxTitle)
	b.units = append(b.units, u)
}

// page says that what was written since start is the next page.
func (b *builder) page(title string, start int) {
	b.pages = append(b.pages, Page{N: len(b.pages) + 1, Title: oneLine(title, maxTitle), Start: start, End: b.n})
}

func (b *builder) document() *Document {
	text := strings.TrimRight(b.text.String(), " \t\n")
	end := b.n - (b.text.Len() - len(text)) // the trimmed text is ASCII
	slices.SortStableFunc(b.outline, func(x, y Heading) int { return x.Start - y.Start })
	slices.SortStableFunc(b.units, func(x, y Unit) int { return x.Start - y.Start })
	for i := range b.units {
		b.units[i].End = min(b.units[i].End, end)
	}
	for i := range b.pages {
		b.pages[i].Start, b.pages[i].End = min(b.pages[i].Start, end), min(b.pages[i].End, end)
	}
	b.outline = slices.DeleteFunc(b.outline, func(h Heading) bool { return h.Start >= end })
	b.units = slices.DeleteFunc(b.units, func(u Unit) bool { return u.Start >= u.End })
	return &Document{Title: oneLine(b.title, maxTitle), Text: text, Outline: b.outline, Pages: b.pages, Units: b.units}
}

// oneLine makes s a clean line of at most limit code points.
func oneLine(s string, limit int) string {
	if s == "" {
		return ""
	}
	n := 0
	for i := range s {
		if n++; n > 4*limit { // more than that is never shown
			s = s[:i]
			break
		}
	}
	s = strings.Join(strings.Fields(clean(s)), " ")
	n = 0
	for i := range s {
		if n++; n > limit {
			return strings.TrimSpace(s[:i])
		}
	}
	return s
}

// clean makes s UTF-8 in NFC without terminal escapes, without control characters other
// than tab and newline, and without characters that only say where a line may break.
// Every kind of line end becomes a newline.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexFunc(s, isUnclean) >= 0 {
		s = stripControls(s)
	}
	return norm.NFC.String(s)
}

// isUnclean keeps the joiners U+200C and U+200D: they spell words of Persian and Hindi, and
// make emoji.
func isUnclean(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u00ad', '\u200b', '\u2060', '\ufeff': // soft hyphen, zero-width space, word joiner, byte order mark
		return true
	}
	return unicode.IsControl(r)
}

func stripControls(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0x1b:
			size = escapeLength(s[i:])
		case r == '\r':
			if !strings.HasPrefix(s[i+1:], "\n") {
				out.WriteByte('\n')
			}
		case r == '\f' || r == '\v' || r == 0x85:
			out.WriteByte('\n')
		case !isUnclean(r):
			out.WriteString(s[i : i+size])
		}
		i += size
	}
	return out.String()
}

// escapeLength returns how many bytes the terminal escape at the start of s has.
func escapeLength(s string) int {
	const longest = 256
	if len(s) < 2 {
		return 1
	}
	end := min(len(s), longest)
	switch s[1] {
	case '[': // ESC [ parameters, then one letter
		for i := 2; i < end; i++ {
			if s[i] >= '@' && s[i] <= '~' {
				return i + 1
			}
			if s[i] < ' ' || s[i] > '~' {
				return i
			}
		}
		return 2
	case ']': // ESC ] title, then BEL or ESC \
		for i := 2; i < end && s[i] != '\n'; i++ {
			if s[i] == 7 {
				return i + 1
			}
			if s[i] == 0x1b {
				return min(i+2, len(s))
			}
		}
		return 2
	}
	if s[1] >= '@' && s[1] <= '_' {
		return 2
	}
	return 1
}

func count(n int) string { return strconv.Itoa(n) }
