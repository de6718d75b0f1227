package claim

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/index"
)

// side is one of some words of which none stands for another, such as opposites, and the terms beside it.
type side struct {
	line, column int
	beside       []string
}

// against reports whether two sides exclude each other.
func (s side) against(other side) bool { return s.line == other.line && s.column != other.column }

func (s side) same(other side) bool { return s.line == other.line && s.column == other.column }

// opposing are words by the line of the data that they are on, and on which side of "<>" there.
type opposing struct {
	of      map[string][]side
	longest int // in bytes
}

func readOpposing(list func() []string) func() *opposing {
	return sync.OnceValue(func() *opposing {
		o := &opposing{of: map[string][]side{}}
		for line, text := range list() {
			for column, words := range strings.Split(text, " <> ") {
				for w := range strings.SplitSeq(words, "/") {
					o.of[w] = append(o.of[w], side{line: line, column: column})
					o.longest = max(o.longest, len(w))
					if t := stemOf(w); t != w {
						o.of[t] = append(o.of[t], side{line: line, column: column})
					}
				}
			}
		}
		return o
	})
}

// stemOf is the stem of a single word of a script with spaces.
func stemOf(word string) string {
	r, _ := utf8.DecodeRuneInString(word)
	if script.IsDense(r) || strings.Contains(word, " ") {
		return word
	}
	return index.Stem(word)
}

// maxBeside is how many terms next to a word tell what it is said of.
const maxBeside = 4

var (
	plainList = data.Words("opposites")
	opposites = readOpposing(func() []string { return append(plainList(), graded()...) })
	bounds    = readOpposing(data.Words("bounds"))
	kindsOf   = readOpposing(data.Words("kinds"))
)

var (
	grades  = data.Words("graded")
	degrees = data.Words("degrees")
)

// graded are the opposites behind each word of degree.
func graded() (lines []string) {
	for _, line := range grades() {
		var columns []string
		for column := range strings.SplitSeq(line, " <> ") {
			var words []string
			for w := range strings.SplitSeq(column, "/") {
				for _, degree := range degrees() {
					words = append(words, degree+w)
				}
			}
			columns = append(columns, strings.Join(words, "/"))
		}
		lines = append(lines, strings.Join(columns, " <> "))
	}
	return lines
}

// sidesIn finds which of some opposites a text in lower case has.
func sidesIn(text string, o *opposing) (out []side) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		sides, end := o.at(text, i, r)
		if sides == nil {
			i += n
			if script.IsLetter(r) {
				i = script.RunOf(text, i-n, script.IsWord)
			}
			continue
		}
		beside := scopeOf(text[end:])
		beside = beside[:min(maxBeside, len(beside))]
		if script.IsDense(r) {
			before := index.Terms(text[:i])
			beside = append(slices.Clone(beside), before[max(0, len(before)-maxBeside):]...)
		}
		for _, s := range sides {
			out = append(out, side{s.line, s.column, beside})
		}
		i = end
	}
	return out
}

// at returns the sides of the longest entry at a position, and where it ends.
func (o *opposing) at(text string, i int, r rune) ([]side, int) {
	if script.IsLetter(r) {
		end := script.RunOf(text, i, script.IsWord)
		long := end
		for range 2 { // phrases of up to three words
			if long >= len(text) || text[long] != ' ' {
				break
			}
			long = script.RunOf(text, long+1, script.IsWord)
		}
		for ; long > end; long = strings.LastIndexByte(text[:long], ' ') {
			if sides := o.of[text[i:long]]; sides != nil {
				return sides, long
			}
		}
		if sides := o.of[text[i:end]]; sides != nil {
			return sides, end
		}
		return o.of[index.Stem(text[i:end])], end
	}
	if !script.IsDense(r) {
		return nil, i
	}
	if sides, end := o.besideNumber(text, i, r); sides != nil {
		return sides, end
	}
	for end := min(len(text), i+o.longest); end > i; end-- {
		if sides := o.of[text[i:end]]; sides != nil {
			return sides, end
		}
	}
	return nil, i
}

// besideNumber returns the sides of a character before or behind a number, for which "@" stands in the data: 多2天, 400多人.
func (o *opposing) besideNumber(text string, i int, r rune) ([]side, int) {
	end := i + utf8.RuneLen(r)
	next, _ := utf8.DecodeRuneInString(text[end:])
	last, _ := utf8.DecodeLastRuneInString(text[:i])
	switch {
	case script.IsDigit(next) && o.of[string(r)+"@"] != nil:
		return o.of[string(r)+"@"], end
	case script.IsDigit(last) && o.of["@"+string(r)] != nil:
		return o.of["@"+string(r)], end
	}
	return nil, i
}
