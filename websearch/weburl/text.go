package weburl

import (
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// SmartMerge joins two descriptions of one page: the longer one if it contains the other, else
// both with what the end of a and the start of b have in common written once.
func SmartMerge(a, b string) string {
	switch {
	case strings.Contains(a, b):
		return a
	case strings.Contains(b, a):
		return b
	}
	return a + b[overlap(a, b):]
}

// overlap is the length in bytes of the longest end of a that b begins with. It takes linear
// time: match[i] is the longest start of b that ends at b[i], and is not all of it.
func overlap(a, b string) int {
	match := make([]int, len(b))
	step := func(n int, c byte) int {
		for n > 0 && (n == len(b) || b[n] != c) {
			n = match[n-1]
		}
		if b[n] == c {
			n++
		}
		return n
	}
	for i := 1; i < len(b); i++ {
		match[i] = step(match[i-1], b[i])
	}
	n := 0
	for i := range len(a) {
		n = step(n, a[i])
	}
	return n
}

var inText = regexp.MustCompile(`https?://[-a-zA-Z0-9@:%._+~#=]+\.[a-zA-Z0-9()]+[-a-zA-Z0-9()@:%_+.~#?&/=]*`)

// contextUnits is how much text on either side of an address describes it, in UTF-16 units.
const contextUnits = 50

// Extract returns the addresses in a text. Each is described by the text around it, up to 50
// UTF-16 units on both sides, or to the next address.
func Extract(text string) []Hit {
	spans := inText.FindAllStringIndex(text, -1)
	for i, s := range spans {
		spans[i][1] = s[0] + len(withoutPunctuation(text[s[0]:s[1]]))
	}
	hits := make([]Hit, len(spans))
	for i, s := range spans {
		from, to := 0, len(text)
		if i > 0 {
			from = spans[i-1][1]
		}
		if i+1 < len(spans) {
			to = spans[i+1][0]
		}
		hits[i] = Hit{URL: text[s[0]:s[1]], Description: describe(lastUnits(text[from:s[0]]), firstUnits(text[s[1]:to]))}
	}
	return hits
}

// withoutPunctuation removes what belongs to the sentence and not to the address in it.
func withoutPunctuation(address string) string {
	unopened := strings.Count(address, ")") - strings.Count(address, "(")
	for {
		last := address[len(address)-1]
		switch {
		case strings.IndexByte(".,;:!?", last) >= 0:
		case last == ')' && unopened > 0:
			unopened--
		default:
			return address
		}
		address = address[:len(address)-1]
	}
}

func describe(before, after string) string {
	description := "No context available"
	switch {
	case before != "" && after != "":
		description = before + " ... " + after
	case before+after != "":
		description = before + after
	}
	return strings.Join(strings.Fields(description), " ")
}

func firstUnits(s string) string {
	left := contextUnits
	for i, r := range s {
		if left -= utf16.RuneLen(r); left < 0 {
			return s[:i]
		}
	}
	return s
}

func lastUnits(s string) string {
	left, i := contextUnits, len(s)
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if left -= utf16.RuneLen(r); left < 0 {
			break
		}
		i -= n
	}
	return s[i:]
}
