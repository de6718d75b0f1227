package cite

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// lineKind is what a line of Markdown is.
type lineKind int

const (
	prose lineKind = iota
	tableRow
	unmarked // heading, code, or head of a table: it never gets a mark
)

// line is one line without its end.
type line struct {
	start, end int
	kind       lineKind
}

var (
	tableRule = regexp.MustCompile(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$|^[ \t]*\|[ \t]*:?-+:?[ \t]*\|[ \t]*$`)
	heading   = regexp.MustCompile(`^ {0,3}#{1,6}(?:[ \t]|$)`)
	// Code, images, links and addresses within a line.
	inline = regexp.MustCompile("`+[^`]+`+" + `|!?\[[^\[\]]*\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+"[^"]*")?\)|https?://[^\s\[\]\p{Han}，。！？；、）】」]+`)
)

// linesOf splits text into lines of their kind; a line ends before "\n" or "\r\n".
func linesOf(text string) []line {
	var out []line
	fence := ""
	for start := 0; start <= len(text); {
		end, next := len(text), len(text)+1
		if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
			end, next = start+i, start+i+1
		}
		l := line{start: start, end: start + len(strings.TrimSuffix(text[start:end], "\r"))}
		content := text[l.start:l.end]
		l.kind, fence = kindOf(content, fence)
		if fence == "" && strings.Contains(content, "-") && tableRule.MatchString(content) {
			l.kind = unmarked
			if n := len(out); n > 0 && out[n-1].kind == tableRow {
				out[n-1].kind = unmarked // the head
			}
		}
		out = append(out, l)
		start = next
	}
	return out
}

// kindOf returns the kind of a line, and the code fence that is open after it.
func kindOf(content, fence string) (lineKind, string) {
	trimmed := strings.TrimLeft(content, " \t>")
	marker := fenceOf(trimmed)
	switch {
	case fence != "":
		if strings.HasPrefix(marker, fence) && strings.TrimSpace(trimmed) == marker {
			fence = ""
		}
		return unmarked, fence
	case marker != "":
		return unmarked, marker
	case heading.MatchString(content):
		return unmarked, ""
	case strings.HasPrefix(trimmed, "|"):
		return tableRow, ""
	}
	return prose, ""
}

// fenceOf is the run of characters that opens or closes a code block, or "".
func fenceOf(content string) string {
	for _, c := range []string{"`", "~"} {
		run := content[:len(content)-len(strings.TrimLeft(content, c))]
		if len(run) >= 3 && !(c == "`" && strings.Contains(content[len(run):], c)) {
			return run
		}
	}
	return ""
}

// protected returns the ranges of text that marks must not touch, in order: blocks of code
// with their fences, and within other lines code, links, images and addresses.
func protected(text string, in []line) []Span {
	var spans []Span
	fence := ""
	for _, l := range in {
		content := text[l.start:l.end]
		before := fence
		_, fence = kindOf(content, fence)
		if before != "" || fence != "" {
			spans = append(spans, Span{l.start, l.end})
			continue
		}
		if !strings.ContainsAny(content, "`[") && !strings.Contains(content, "://") {
			continue // faster than the pattern
		}
		for _, m := range inline.FindAllStringIndex(content, -1) {
			spans = append(spans, Span{l.start + m[0], l.start + m[1]})
		}
	}
	return spans
}

// within returns the span that has position at inside it, not at its edge.
func within(spans []Span, at int) (Span, bool) {
	i, _ := slices.BinarySearchFunc(spans, at, func(s Span, at int) int {
		if s[1] <= at {
			return -1
		}
		return 1
	})
	if i < len(spans) && spans[i][0] < at {
		return spans[i], true
	}
	return Span{}, false
}

// endsAddress reports whether a plain address ends at a position: a mark would become a part of it.
func endsAddress(text string, spans []Span, at int) bool {
	i, found := slices.BinarySearchFunc(spans, at, func(s Span, at int) int { return cmp.Compare(s[1], at) })
	return found && strings.HasPrefix(text[spans[i][0]:], "http")
}
