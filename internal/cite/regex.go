package cite

import (
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"nodest/internal/cite/script"
	"nodest/internal/fault"
)

const (
	maxPattern  = 1 << 10                // bytes
	patternTime = 200 * time.Millisecond // for a text
)

// splitRegex cuts text like String.prototype.split of JavaScript: groups of the pattern are
// pieces too.
func splitRegex(text, pattern string) (spans []Span, err error) {
	defer func() {
		if recover() != nil { // the engine gives up on some patterns this way
			spans, err = nil, fault.New(fault.Invalid, "invalid regex pattern")
		}
	}()
	if pattern == "" || len(pattern) > maxPattern {
		return nil, fault.New(fault.Invalid, "regex chunking needs a pattern of at most %d bytes", maxPattern)
	}
	re, err := regexp2.Compile(pattern, regexp2.ECMAScript)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "invalid regex pattern")
	}
	deadline := time.Now().Add(patternTime)
	re.MatchTimeout = patternTime
	runes, offsets := decode(text)
	var pieces []Span // in runes
	end := 0          // end of the last separator
	m, err := re.FindRunesMatch(runes)
	for m != nil && err == nil && m.Index < len(runes) {
		if after := m.Index + m.Length; after > end {
			pieces = append(pieces, Span{end, m.Index})
			for _, g := range m.Groups()[1:] {
				if len(g.Captures) > 0 {
					pieces = append(pieces, Span{g.Index, g.Index + g.Length})
				}
			}
			end = after
		}
		if time.Now().After(deadline) {
			return nil, errPatternTime()
		}
		m, err = re.FindNextMatch(m)
	}
	if err != nil {
		return nil, errPatternTime()
	}
	return inOrder(text, append(pieces, Span{end, len(runes)}), offsets), nil
}

func errPatternTime() error { return fault.New(fault.Invalid, "the regex pattern took too long") }

// decode returns the runes of text, and the byte offsets of all of them and of its end.
func decode(text string) ([]rune, []int) {
	n := utf8.RuneCountInString(text)
	runes, offsets := make([]rune, 0, n), make([]int, 0, n+1)
	for i, r := range text {
		runes, offsets = append(runes, r), append(offsets, i)
	}
	return runes, append(offsets, len(text))
}

// inOrder turns pieces into byte ranges. It leaves out blank ones, and groups that are inside
// what is already covered.
func inOrder(text string, pieces []Span, offsets []int) []Span {
	var spans []Span
	covered := 0
	for _, p := range pieces {
		s := Span{offsets[p[0]], offsets[p[1]]}
		if s[0] < covered || script.IsBlank(text[s[0]:s[1]]) {
			continue
		}
		spans = append(spans, s)
		covered = s[1]
	}
	return spans
}
