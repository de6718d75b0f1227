package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/op"
	"nodest/memory/lang"
)

// Length of a sentence that can be quoted, in code points.
const (
	shortestSentence = 4
	longestSentence  = 200
)

// sentences splits text into trimmed sentences and lines. Those under shortestSentence are left
// out; longer ones than longestSentence are split at commas, else at spaces, else anywhere.
func sentences(text string) []string {
	var found []string
	for _, s := range lang.SentencesOf(text) {
		for _, piece := range fitting(s) {
			if piece = withoutHalfQuotes(piece); runes(piece) >= shortestSentence {
				found = append(found, piece)
			}
		}
	}
	return found
}

// withoutHalfQuotes removes a quotation mark whose other half is in another sentence.
func withoutHalfQuotes(s string) string {
	for _, pair := range [][2]string{{"“", "”"}, {"「", "」"}, {"『", "』"}} {
		if rest, ok := strings.CutPrefix(s, pair[0]); ok && !strings.Contains(rest, pair[1]) {
			s = strings.TrimSpace(rest)
		}
		if rest, ok := strings.CutSuffix(s, pair[1]); ok && !strings.Contains(rest, pair[0]) {
			s = strings.TrimSpace(rest)
		}
	}
	return s
}

// fitting splits s into pieces of at most longestSentence.
func fitting(s string) []string {
	var pieces []string
	for runes(s) > longestSentence {
		head := op.Truncate(s, longestSentence)
		cut := lastAfter(head, "，,、：:")
		if cut <= len(head)/4 {
			cut = lastAfter(head, " \t　")
		}
		if cut <= len(head)/4 {
			cut = len(head)
		}
		pieces = append(pieces, strings.TrimSpace(head[:cut]))
		s = strings.TrimSpace(s[cut:])
	}
	return append(pieces, s)
}

// lastAfter returns the position after the last of signs in s, or 0.
func lastAfter(s, signs string) int {
	at := strings.LastIndexAny(s, signs)
	if at < 0 {
		return 0
	}
	_, n := utf8.DecodeRuneInString(s[at:])
	return at + n
}

// cutAtSentence returns the longest beginning of text that has at most limit code points and
// ends with a sentence. If more than half would be lost, text is cut at a space or anywhere.
func cutAtSentence(text string, limit int) string {
	text = strings.TrimSpace(text)
	if runes(text) <= limit {
		return text
	}
	head := op.Truncate(text, limit)
	cut := 0
	for rest := text; len(rest) > 0; {
		end := lang.SentenceEnd(rest)
		kept := len(strings.TrimRightFunc(rest[:end], unicode.IsSpace))
		if at := len(text) - len(rest); at+kept > len(head) {
			break
		} else if kept > 0 {
			cut = at + kept
		}
		rest = rest[end:]
	}
	if cut < len(head)/2 {
		if cut = lastAfter(head, " \n　"); cut < len(head)/2 {
			cut = len(head)
		}
	}
	return strings.TrimSpace(head[:cut])
}
