package markdown

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"nodest/internal/cite"
	"nodest/websearch/weburl"
)

// piece is a part of a text: a mark [^n], or the text between marks.
type piece struct {
	n    int    // number of a mark; 0 = text
	text string // content of a piece that is no mark
	sep  bool   // the text only separates two marks
}

var (
	anyMark   = regexp.MustCompile(`\[(?:\^\d+(?:\s*[,，、]\s*\^?\d+)*|\d+\^|[1-9]\d?)\]`)
	number    = regexp.MustCompile(`\d+`)
	separator = regexp.MustCompile(`^[,，、][ \t]*$`)
)

// pieces divides a text at its marks: [^1], groups such as [^1, 2], [1^], and [1] up to 99, which
// models write as well. Code and links have none.
func pieces(md string) (out []piece) {
	code := codeSpans(md)
	at := 0
	for _, m := range anyMark.FindAllStringIndex(md, -1) {
		var inside bool
		if _, code, inside = spanAt(code, m[0]); inside {
			continue
		}
		if strings.HasPrefix(md[m[1]:], "(") || strings.HasSuffix(md[:m[0]], `\`) {
			continue
		}
		text := md[at:m[0]]
		out = append(out, piece{text: text, sep: at > 0 && separator.MatchString(text)})
		for i, digits := range number.FindAllString(md[m[0]:m[1]], -1) {
			if i > 0 {
				out = append(out, piece{text: ", ", sep: true})
			}
			n, err := strconv.Atoi(digits)
			if err != nil || n == 0 {
				n = math.MaxInt // a source that never exists
			}
			out = append(out, piece{n: n})
		}
		at = m[1]
	}
	return append(out, piece{text: md[at:]})
}

// upTo leaves out the marks above a number, and what separated them from others.
func upTo(most int, all []piece) (kept []piece, marks []int) {
	skip := false
	for _, p := range all {
		if skip && p.sep {
			skip = false
			continue
		}
		skip = false
		switch {
		case p.n <= most:
			kept = append(kept, p)
			if p.n > 0 {
				marks = append(marks, p.n)
			}
		case len(kept) > 0 && kept[len(kept)-1].sep:
			kept = kept[:len(kept)-1]
		default:
			skip = true
		}
	}
	return kept, marks
}

func write(all []piece) string {
	var b strings.Builder
	for _, p := range all {
		if p.n > 0 {
			b.WriteString(mark(p.n))
		}
		b.WriteString(p.text)
	}
	return b.String()
}

func mark(n int) string { return "[^" + strconv.Itoa(n) + "]" }

// Footnotes makes the marks of an answer agree with its references and appends their list; refs[n-1]
// is what [^n] stands for. Marks without a reference are removed, references without a mark are
// marked behind the answer, after "⁜". Without references all marks are removed.
func Footnotes(md string, refs []cite.Reference) string {
	return footnotes(pieces(md), refs)
}

func footnotes(all []piece, refs []cite.Reference) string {
	kept, marks := upTo(len(refs), all)
	if len(refs) == 0 {
		return write(kept)
	}
	if len(marks) == len(refs) && len(slices.Compact(slices.Clone(marks))) == 1 { // a model that knows only one
		n := 0
		for i := range kept {
			if kept[i].n > 0 {
				n++
				kept[i].n = n
			}
		}
	}
	var b strings.Builder
	b.WriteString(write(kept))
	if len(refs) > len(marks) {
		if len(marks) > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("\n\n⁜")
		marked := map[int]bool{}
		for _, n := range marks {
			marked[n] = true
		}
		for n := 1; n <= len(refs); n++ {
			if !marked[n] {
				b.WriteString(mark(n))
			}
		}
	}
	for i, ref := range refs {
		b.WriteString("\n\n" + mark(i+1) + ": " + footnote(ref))
	}
	return strings.TrimSpace(b.String())
}

// footnote is a reference as Markdown. The host stands for a missing title.
func footnote(ref cite.Reference) string {
	quote := strings.TrimSpace(plain(ref.ExactQuote))
	title := linkText(cmp.Or(ref.Title, weburl.Hostname(ref.URL), ref.URL))
	if ref.URL == "" {
		return strings.TrimSpace(quote + " " + title)
	}
	address := strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "\n", "%0A").Replace(ref.URL)
	return strings.TrimSpace(quote + " [" + title + "](" + address + ")")
}

var (
	wrapper    = regexp.MustCompile("(?m)```(?:markdown|html)[ \t\r]*\n((?s:.*?))\n[ \t]*```[ \t\r]*$")
	definition = regexp.MustCompile(`(?m)^\[\^(\d+)\]:`)
	nextNote   = regexp.MustCompile(`(?m)^\[\^`)
	source     = regexp.MustCompile(`(?:\[((?:\\.|[^\]\\])*)\]\(((?:[^()\s]|\([^()\s]*\))+)\)|<?(https?://[^\s<>]+)>?)\s*$`)
)

// unwrap takes the fences off parts that a model has fenced as markdown or html.
func unwrap(md string) string {
	code := codeSpans(md)
	var b strings.Builder
	at := 0
	for _, m := range wrapper.FindAllStringSubmatchIndex(md, -1) {
		var span cite.Span
		var inside bool
		if span, code, inside = spanAt(code, m[0]); inside && strings.TrimLeft(md[span[0]:m[0]], " \t") != "" {
			continue
		}
		b.WriteString(md[at:m[0]] + md[m[2]:m[3]])
		at = m[1]
	}
	return b.String() + md[at:]
}

// splitNotes divides an answer at its first definition of a footnote.
func splitNotes(md string) (body, notes string) {
	code := codeSpans(md)
	for _, m := range definition.FindAllStringIndex(md, -1) {
		var inside bool
		if _, code, inside = spanAt(code, m[0]); !inside {
			return md[:m[0]], md[m[0]:]
		}
	}
	return md, ""
}

// references reads definitions of footnotes, and the place of each number in their list. Without
// any address there are none.
func references(notes string) (refs []cite.Reference, place map[int]int) {
	place = map[int]int{}
	named := false
	starts := append(nextNote.FindAllStringIndex(notes, -1), []int{len(notes)})
	for i, start := range starts[:len(starts)-1] {
		entry := notes[start[0]:starts[i+1][0]]
		m := definition.FindStringSubmatchIndex(entry)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(entry[m[2]:m[3]])
		if err != nil || n == 0 || place[n] > 0 {
			continue
		}
		ref := cite.Reference{ExactQuote: strings.TrimSpace(entry[m[1]:])}
		if s := source.FindStringSubmatch(entry[m[1]:]); s != nil {
			ref.ExactQuote = strings.TrimSpace(strings.TrimSuffix(entry[m[1]:], s[0]))
			ref.Title = strings.NewReplacer(`\[`, "[", `\]`, "]", `\\`, `\`).Replace(s[1])
			ref.URL = cmp.Or(s[2], s[3])
			named = true
		}
		if ref == (cite.Reference{}) {
			continue
		}
		refs = append(refs, ref)
		place[n] = len(refs)
	}
	if !named {
		return nil, nil
	}
	return refs, place
}
