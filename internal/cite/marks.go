package cite

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"nodest/internal/cite/script"
)

// placed is a mark and the byte offset it goes to.
type placed struct{ at, marker int }

// insert returns text with marks, which must be in the order of their offsets.
func insert(text string, marks []placed) string {
	var b strings.Builder
	from := 0
	for _, m := range marks {
		b.WriteString(text[from:m.at])
		b.WriteString("[^" + strconv.Itoa(m.marker) + "]")
		from = m.at
	}
	b.WriteString(text[from:])
	return b.String()
}

// A mark as models write it: [1], [^1], [1, 2], 【1†source】. Plain brackets take two digits:
// [2024] is text.
var (
	mark       = regexp.MustCompile(`[\[【［]\s?(\^\d{1,3}(?:\s?[,，、;]\s?\^?\d{1,3})*|\d{1,2}(?:\s?[,，、;]\s?\^?\d{1,2})*)(?:†[^\[\]【】\n]{0,60})?\s?[\]】］]`)
	numeral    = regexp.MustCompile(`\d+`)
	definition = regexp.MustCompile(`^\s*[\[【]\^?\d{1,3}[\]】]\s?[:：]`)
)

// written is a mark that was found in a text.
type written struct {
	at      int // in the text without marks
	numbers []int
}

// readMarks takes the marks and the trailing definitions of footnotes out of a reply. Plain
// brackets are marks only if there are sources, and never if they have a zero.
func readMarks(reply string, sources int) (string, []written) {
	reply = withoutDefinitions(reply)
	if !strings.ContainsAny(reply, "[【［") {
		return reply, nil
	}
	in := linesOf(reply)
	safe := protected(reply, in)
	var b strings.Builder
	var found []written
	from := 0
	for _, m := range mark.FindAllStringSubmatchIndex(reply, -1) {
		if touches(safe, m[0], m[1]) || !isMark(reply, m, sources) {
			continue
		}
		before := reply[from:m[0]]
		if trimmed := strings.TrimRight(before, " "); endsPhrase(reply[m[1]:]) && !strings.HasSuffix(trimmed, "\n") && trimmed != "" {
			before = trimmed
		}
		b.WriteString(before)
		from = m[1]
		w := written{at: b.Len()}
		for _, n := range numeral.FindAllString(reply[m[2]:m[3]], -1) {
			number, _ := strconv.Atoi(n) // three digits
			w.numbers = append(w.numbers, number)
		}
		found = append(found, w)
	}
	b.WriteString(reply[from:])
	return b.String(), found
}

// isMark tells a mark from text in plain brackets: an index (x[1]), an interval ([0, 1]).
func isMark(reply string, m []int, sources int) bool {
	inside := reply[m[2]:m[3]]
	if strings.HasPrefix(inside, "^") {
		return true
	}
	if sources == 0 || strings.HasPrefix(reply[m[1]:], "(") {
		return false
	}
	known := false
	for _, n := range numeral.FindAllString(inside, -1) {
		number, _ := strconv.Atoi(n)
		if number == 0 {
			return false
		}
		known = known || number <= sources
	}
	word := reply[:m[0]]
	word = word[len(strings.TrimRightFunc(word, func(r rune) bool { return script.IsWord(r) || r == ')' || r == ']' })):]
	letter, n := utf8.DecodeRuneInString(word)
	index := n > 0 && n == len(word) && script.IsLetter(letter) || strings.Contains(word, "_") || strings.HasSuffix(word, "()")
	return !index && (known || !strings.ContainsAny(inside, ",，、;"))
}

func touches(spans []Span, start, end int) bool {
	i, _ := slices.BinarySearchFunc(spans, start, func(s Span, at int) int { return cmp.Compare(s[1], at+1) })
	return i < len(spans) && spans[i][0] < end
}

// endsPhrase reports whether a text goes on with a space, punctuation or another mark.
func endsPhrase(rest string) bool {
	r, n := utf8.DecodeRuneInString(rest)
	return n == 0 || script.IsSpace(r) || script.IsStop(r) || strings.ContainsRune(",，、;；:：[【", r)
}

// withoutDefinitions removes footnotes and blank lines from the end of a reply.
func withoutDefinitions(reply string) string {
	in := linesOf(reply)
	end := len(reply)
	for _, l := range slices.Backward(in) {
		content := reply[l.start:l.end]
		switch {
		case l.kind == prose && definition.MatchString(content):
			end = l.start
		case !script.IsBlank(content):
			if end < len(reply) {
				return strings.TrimRightFunc(reply[:end], script.IsSpace)
			}
			return reply
		}
	}
	return reply[:min(end, len(reply))]
}

// StripMarks removes marks of the form [^n], outside of code and links, and the definitions of
// footnotes at the end. What a removal joins to a mark goes too.
func StripMarks(text string) string {
	if !strings.Contains(text, "[^") {
		return text
	}
	text = withoutDefinitions(text)
	safe := protected(text, linesOf(text))
	out := make([]byte, 0, len(text))
	kept := 0 // the start of what was written since the last protected range
	for i := 0; i < len(text); {
		if len(safe) > 0 && i == safe[0][0] {
			out = append(out, text[i:safe[0][1]]...)
			i, kept, safe = safe[0][1], len(out), safe[1:]
			continue
		}
		out = append(out, text[i])
		if text[i] == ']' {
			out = out[:len(out)-trailingMark(out[kept:])]
		}
		i++
	}
	return string(out)
}

// trailingMark is the length of the mark at the end of b, or 0.
func trailingMark(b []byte) int {
	i := len(b) - 1
	for i > 0 && len(b)-i <= 4 && '0' <= b[i-1] && b[i-1] <= '9' {
		i--
	}
	if n := len(b) - i; n >= 2 && n <= 4 && i >= 2 && b[i-1] == '^' && b[i-2] == '[' {
		return n + 2
	}
	return 0
}
