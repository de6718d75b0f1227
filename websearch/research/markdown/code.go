package markdown

import (
	"regexp"
	"strings"

	"nodest/internal/cite"
)

// fenceLine is a line that begins or ends a fenced block of code: indent, fence, the rest.
var fenceLine = regexp.MustCompile("^([ \t]*)(`{3,}|~{3,})([^\n]*)")

// fence is an open block of code.
type fence struct{ indent, mark string }

// step reads a line. It returns the block that is open after it, and whether the line begins or
// ends one. The zero fence is none.
func (f fence) step(line string) (next fence, isFence bool) {
	m := fenceLine.FindStringSubmatch(line)
	switch {
	case m == nil:
		return f, false
	case f.mark == "":
		if m[2][0] == '`' && strings.Contains(m[3], "`") { // code within a line
			return f, false
		}
		return fence{m[1], m[2]}, true
	case m[2][0] == f.mark[0] && len(m[2]) >= len(f.mark) && strings.TrimSpace(m[3]) == "":
		return fence{}, true
	}
	return f, false
}

// codeSpans returns where a Markdown text has code, in bytes and in order: fenced blocks and code
// within paragraphs.
func codeSpans(md string) (spans []cite.Span) {
	var open fence
	at, from, paragraph := 0, 0, 0
	for line := range strings.Lines(md) {
		was := open.mark != ""
		next, isFence := open.step(line)
		open = next
		switch {
		case isFence && !was:
			spans = append(spans, inlineCode(md, paragraph, at)...)
			from = at
		case isFence:
			spans = append(spans, cite.Span{from, at + len(line)})
			paragraph = at + len(line)
		case !was && strings.TrimSpace(line) == "":
			spans = append(spans, inlineCode(md, paragraph, at)...)
			paragraph = at
		}
		at += len(line)
	}
	if open.mark != "" {
		return append(spans, cite.Span{from, len(md)})
	}
	return append(spans, inlineCode(md, paragraph, len(md))...)
}

var backticks = regexp.MustCompile("`+")

// inlineCode returns the code within the paragraph md[from:to]: from a run of backticks to the
// next one of the same length.
func inlineCode(md string, from, to int) (spans []cite.Span) {
	runs := backticks.FindAllStringIndex(md[from:to], -1)
	closing, last := make([]int, len(runs)), map[int]int{}
	for i := len(runs) - 1; i >= 0; i-- {
		n := runs[i][1] - runs[i][0]
		closing[i] = last[n] // 0: none, since the first run closes nothing
		last[n] = i
	}
	for i := 0; i < len(runs); i++ {
		if c := closing[i]; c > 0 {
			spans = append(spans, cite.Span{from + runs[i][0], from + runs[c][1]})
			i = c
		}
	}
	return spans
}

// spanAt returns the first of the spans that ends after the byte at, and the rest.
func spanAt(spans []cite.Span, at int) (cite.Span, []cite.Span, bool) {
	for len(spans) > 0 && spans[0][1] <= at {
		spans = spans[1:]
	}
	if len(spans) == 0 || spans[0][0] > at {
		return cite.Span{}, spans, false
	}
	return spans[0], spans, true
}

// outside applies change to what is between the spans.
func outside(md string, spans []cite.Span, change func(string) string) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s[0] < at {
			continue
		}
		b.WriteString(change(md[at:s[0]]))
		b.WriteString(md[s[0]:s[1]])
		at = s[1]
	}
	b.WriteString(change(md[at:]))
	return b.String()
}
