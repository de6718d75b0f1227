package cli

import (
	"fmt"
	"slices"
	"strings"
)

// UsageError is a command line that the program cannot act on: exit code 2.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

func Usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// DidYouMean is the end of a message that suggests words, "" for none.
func DidYouMean(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(words, ", ") + "?"
}

// Near returns at most three words that a mistyped word may have meant, the closest
// first: few letters differ, or one is part of the other.
func Near(word string, words []string) []string {
	type candidate struct {
		word string
		far  int
	}
	var found []candidate
	asked := strings.ToLower(word)
	for _, w := range words {
		if w == "" { // something without a name
			continue
		}
		lower := strings.ToLower(w)
		family, _, _ := strings.Cut(lower, ":") // models have a family: qwen3:8b
		far := min(editDistance(asked, lower), editDistance(asked, family))
		if strings.Contains(lower, asked) || strings.Contains(asked, lower) {
			far = min(far, 1)
		}
		if far <= max(1, 2*min(len([]rune(asked)), len([]rune(family)))/5) {
			found = append(found, candidate{w, far})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.far - b.far })
	var near []string
	for _, c := range found[:min(3, len(found))] {
		near = append(near, c.word)
	}
	return near
}

// editDistance counts the letters to insert, delete, replace or swap with the
// next one that turn a into b.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range t {
		rows[0][j+1] = j + 1
	}
	for i := range s {
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			best := min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				best = min(best, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = best
		}
	}
	return rows[len(s)][len(t)]
}
