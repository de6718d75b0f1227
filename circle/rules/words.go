package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxWords bounds how many words and pairs of one text are compared.
const maxWords = 2_000

// small returns r in lower case and in its usual width.
func small(r rune) rune {
	switch {
	case r >= '！' && r <= '～': // full width
		r -= '！' - '!'
	case r == '’':
		r = '\''
	}
	return unicode.ToLower(r)
}

// dense tells whether r belongs to a script that is written without spaces.
func dense(r rune) bool {
	return r >= '\u0e00' && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) || r == 'ー'
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// tokens calls yield with the small words of a text in order. Scripts without spaces give
// one rune each.
func tokens(text string, yield func(word string, dense bool) bool) {
	start := -1
	text = strings.Map(small, text)
	for i, r := range text {
		word := inWord(r) && !dense(r) || r == '\'' && start >= 0
		if word && start < 0 {
			start = i
		}
		if !word && start >= 0 {
			if !yield(strings.Trim(text[start:i], "'"), false) {
				return
			}
			start = -1
		}
		if dense(r) && !yield(string(r), true) {
			return
		}
	}
	if start >= 0 {
		yield(strings.Trim(text[start:], "'"), false)
	}
}

// topics returns the words that say what a text is about; in scripts without spaces, pairs
// of neighbouring characters.
func topics(text string) map[string]bool {
	set := map[string]bool{}
	last, seen := "", 0
	tokens(text, func(word string, dense bool) bool {
		switch {
		case dense:
			if last != "" && !fillers()[last+word] && !fillers()[last] && !fillers()[word] {
				set[last+word] = true
			}
			last = word
		default:
			last = ""
			if w := stem(word); len(w) > 2 && !fillers()[word] {
				set[w] = true
			}
		}
		seen++
		return seen < maxWords
	})
	return set
}

// stem makes the usual forms of an English word one.
func stem(word string) string {
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if w, found := strings.CutSuffix(word, end); found && len(w) > 3 {
			return strings.TrimSuffix(w, "e")
		}
	}
	if len(word) > 4 {
		return strings.TrimSuffix(word, "e")
	}
	return word
}

// overlap returns from 0 to 1 how much of what a text is about is in another one. For a
// short text, two or three common words are the maximum.
func overlap(text, other map[string]bool) float64 {
	common := 0
	for w := range text {
		if other[w] {
			common++
		}
	}
	return min(float64(common)/(2+float64(len(text))/12), 1)
}

var (
	fillers = data.Set("fillers") // words that say nothing about the topic of a text
	titles  = data.Set("titles")  // words before a name that are no part of it
	common  = data.Set("names")   // common words that are also names
)

// Mentions returns the names that a text mentions, in the order of names. Names are matched
// as whole words, in scripts without spaces anywhere. A first name is enough, as is the
// given name of three or four Han characters. A name that is also a common word must be
// capitalised as in names. A single letter is never a name. Longer names match first, so
// that "Mary Ann" does not mention Mary.
func Mentions(text string, names []string) []string {
	full, short := map[string][]int{}, map[string][]int{}
	for i, name := range names {
		name = strings.TrimSpace(name)
		full[name] = append(full[name], i)
		if s := shortForm(name); s != "" {
			short[s] = append(short[s], i)
		}
	}
	t := newNamed(text)
	found := make([]bool, len(names))
	for _, forms := range []map[string][]int{full, short} {
		longest := func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }
		for _, form := range slices.SortedFunc(maps.Keys(forms), longest) {
			if t.take(form) {
				for _, i := range forms[form] {
					found[i] = true
				}
			}
		}
	}
	var out []string
	for i, name := range names {
		if found[i] {
			out = append(out, name)
		}
	}
	return out
}

// named is a text in which names are looked for.
type named struct{ written, small []rune }

func newNamed(text string) *named {
	return &named{[]rune(text), []rune(strings.Map(small, text))}
}

// take finds a name and removes it wherever it is.
func (t *named) take(name string) bool {
	written, folded := []rune(name), []rune(strings.Map(small, name))
	if n := len(folded); n < 2 || n > len(t.small) {
		return false
	}
	exact := fillers()[string(folded)] || common()[string(folded)]
	found := false
	for i := 0; i+len(folded) <= len(t.small); i++ {
		end := i + len(folded)
		if t.small[i] != folded[0] || !slices.Equal(t.small[i:end], folded) || exact && t.written[i] != written[0] ||
			!t.edge(i) || !t.edge(end) {
			continue
		}
		found = true
		for ; i < end; i++ {
			t.small[i] = 0
		}
		i--
	}
	return found
}

// edge tells whether no word continues from before i to i.
func (t *named) edge(i int) bool {
	if i == 0 || i == len(t.small) {
		return true
	}
	before, after := t.small[i-1], t.small[i]
	return !inWord(before) || !inWord(after) || attached(before) || attached(after)
}

// attached tells whether names in the script of r stand in a sentence without spaces, or
// with endings.
func attached(r rune) bool { return dense(r) || unicode.Is(unicode.Hangul, r) }

// shortForm returns the first or given name in a full name; "" = there is none.
func shortForm(name string) string {
	runes := []rune(name)
	if len(runes) == 3 || len(runes) == 4 {
		if !slices.ContainsFunc(runes, func(r rune) bool { return !unicode.Is(unicode.Han, r) }) {
			return string(runes[len(runes)-2:])
		}
	}
	parts := strings.Fields(name)
	if len(parts) < 2 {
		return ""
	}
	for _, w := range parts[:len(parts)-1] {
		if w = strings.Trim(w, ".,"); !titles()[strings.ToLower(w)] && len([]rune(w)) > 2 {
			return w
		}
	}
	return parts[len(parts)-1] // behind a title
}
