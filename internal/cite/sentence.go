package cite

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"nodest/internal/cite/script"
)

// sentence is a sentence of a text, or a row of a table.
type sentence struct {
	Span     // bytes, without white space around it
	mark int // where its mark goes: before the closing punctuation
}

// bullet is what stands before the text of a line: quotes, bullets, numbers.
var bullet = regexp.MustCompile(`^(?:\s|>)*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?`)

// sentencesOf returns the sentences of text that can get a mark. safe has the ranges that no
// sentence ends in.
func sentencesOf(text string, in []line, safe []Span) []sentence {
	var out []sentence
	for _, l := range in {
		content := text[l.start:l.end]
		switch l.kind {
		case unmarked:
		case tableRow:
			start := l.start + len(content) - len(strings.TrimLeft(content, "| \t"))
			end := l.start + len(strings.TrimRight(content, "| \t"))
			if start < end {
				out = append(out, newSentence(text, start, end, safe))
			}
		default:
			out = appendSentences(out, text, l.start+len(bullet.FindString(content)), l.end, safe)
		}
	}
	return out
}

// plainSentences are the sentences of a source.
func plainSentences(text string) []sentence {
	in := linesOf(text)
	return sentencesOf(text, in, protected(text, in))
}

func appendSentences(out []sentence, text string, start, end int, safe []Span) []sentence {
	add := func(to int) {
		piece := text[start:to]
		from := start + len(piece) - len(strings.TrimLeftFunc(piece, script.IsSpace))
		if until := start + len(strings.TrimRightFunc(piece, script.IsSpace)); from < until {
			out = append(out, newSentence(text, from, until, safe))
		}
		start = to
	}
	for i := start; i < end; {
		r, n := utf8.DecodeRuneInString(text[i:end])
		i += n
		if !script.IsStop(r) {
			continue
		}
		if s, ok := within(safe, i); ok {
			i = s[1]
			continue
		}
		from := i - n
		i += len(text[i:end]) - len(strings.TrimLeftFunc(text[i:end], script.IsStop))
		closed := i + len(text[i:end]) - len(strings.TrimLeftFunc(text[i:end], isCloser))
		if r == '.' && !endsSentence(text[start:from], text[closed:end]) {
			continue
		}
		i = closed
		add(i)
	}
	add(end)
	return out
}

// newSentence finds the place of the mark: before the closing punctuation, outside of links
// and code.
func newSentence(text string, start, end int, safe []Span) sentence {
	s := sentence{Span: Span{start, end}, mark: end}
	body := strings.TrimRightFunc(text[start:end], isCloser)
	if stripped := strings.TrimRightFunc(body, script.IsStop); stripped != body && stripped != "" {
		s.mark = start + len(stripped)
	}
	if p, ok := within(safe, s.mark); ok {
		s.mark = min(p[1], end)
	}
	return s
}

// isCloser reports whether r can follow the punctuation of its sentence.
func isCloser(r rune) bool { return strings.ContainsRune("\"'”’」』）)】》*_~", r) }

var titles = data.Set("titles", "en") // abbreviations before a name

// endsSentence reports whether a full stop between two texts ends a sentence: white space or
// nothing follows, and it belongs to no initial, title or number.
func endsSentence(before, after string) bool {
	rest := strings.TrimLeftFunc(after, script.IsSpace)
	if rest == "" {
		return true
	}
	next, _ := utf8.DecodeRuneInString(rest)
	if len(rest) == len(after) || unicode.IsLower(next) {
		return false
	}
	word := before[strings.LastIndexFunc(before, script.IsSpace)+1:]
	first, n := utf8.DecodeRuneInString(word)
	initial := n == len(word) && unicode.IsUpper(first)
	return !initial && !titles()[strings.ToLower(word)]
}

// weight is a length in which a character of a dense script counts 2.5 units, in halves.
func weight(s string) int {
	n := 0
	for _, r := range s {
		if script.IsDense(r) {
			n += 5
		} else {
			n += 2 * utf16.RuneLen(r)
		}
	}
	return n
}
