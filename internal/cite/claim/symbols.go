package claim

import (
	"hash/maphash"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"nodest/internal/cite/script"
	"nodest/internal/index"
)

// A symbol is a character of a dense script, or stands for a word or a number: then it is above all characters. So texts of
// all scripts are compared alike. A clause ends with a line break.
type symbol = rune

var symbolSeed = maphash.MakeSeed()

// symbolFor stands for a word or a number.
func symbolFor(word string) symbol {
	return unicode.MaxRune + 1 + symbol(maphash.String(symbolSeed, word)%(numberSymbol-unicode.MaxRune-1))
}

// numberSymbol is set in symbols that are numbers.
const numberSymbol = 1 << 30

func isNumberSymbol(s symbol) bool { return s >= numberSymbol }

func isWordSymbol(s symbol) bool { return s > unicode.MaxRune }

// symbolsOf returns the symbols of a plain text, words by their terms, and quantities by what they are in the first
// unit of their dimension: 3 km are 3,000 m.
func symbolsOf(text string, amounts []quantity) (out []symbol) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if len(amounts) > 0 && amounts[0].at <= i {
			q := amounts[0]
			amounts = amounts[1:]
			out = append(out, symbolFor(q.canonical())|numberSymbol)
			i = q.end
			if q.unit.convertible() {
				i = max(i, q.unitEnd)
			}
			continue
		}
		switch {
		case script.IsDense(r):
			out = append(out, r)
		case script.IsWord(r):
			end := script.RunOf(text, i, script.IsWord)
			for _, t := range index.Terms(text[i:end]) {
				out = append(out, symbolFor(t))
			}
			n = end - i
		case r == '%':
			out = append(out, r)
		}
		i += n
	}
	return out
}

// canonical is a quantity in a form that it shares with all that are the same.
func (q quantity) canonical() string {
	if q.unit.convertible() {
		return q.unit.dim + strconv.FormatFloat(q.amount*q.unit.factor, 'g', 6, 64)
	}
	return "#" + q.value
}

// run is a row of symbols that two texts have in common, by its place in the first one and its first place in the other.
type run struct{ from, to, at int }

func (r run) in(text []symbol) []symbol { return text[r.from:r.to] }

// runsOf returns the longest rows that both texts have, from the left. A single character is none, a word is.
func runsOf(ours, theirs []symbol) (out []run) {
	for i := 0; i < len(ours); {
		best := run{i, i, -1}
		for at, s := range theirs {
			if s != ours[i] || s == '\n' {
				continue
			}
			n := 1
			for i+n < len(ours) && at+n < len(theirs) && ours[i+n] == theirs[at+n] && ours[i+n] != '\n' {
				n++
			}
			if n > best.to-best.from {
				best = run{i, i + n, at}
			}
		}
		if n := best.to - best.from; n >= 2 || n == 1 && isWordSymbol(ours[i]) {
			out = append(out, best)
			i = best.to
			continue
		}
		i++
	}
	return out
}

// indexOf returns where a row stands in a text from a place on; -1 if it does not.
func indexOf(text, row []symbol, from int) int {
	for i := from; i+len(row) <= len(text); i++ {
		if slices.Equal(text[i:i+len(row)], row) {
			return i
		}
	}
	return -1
}

// at returns a line break outside of a text.
func at(text []symbol, i int) symbol {
	if i < 0 || i >= len(text) {
		return '\n'
	}
	return text[i]
}

// weightOf is the length of symbols in characters of a dense script, of which a word has two. Particles and line breaks do
// not count.
func weightOf(text []symbol) (n int) {
	for _, s := range text {
		n += weight(s)
	}
	return n
}

func weight(s symbol) int {
	switch {
	case isWordSymbol(s):
		return 2
	case s == '\n' || isParticle(s):
		return 0
	}
	return 1
}

func isParticle(s symbol) bool { return !isWordSymbol(s) && particles()[string(s)] }

// isFiller reports whether symbols say little.
func isFiller(text []symbol) bool {
	return !slices.ContainsFunc(text, func(s symbol) bool {
		return isWordSymbol(s) || !isParticle(s) && !carriers()[string(s)]
	})
}

// trimParticles cuts particles off on either side.
func trimParticles(text []symbol) []symbol {
	for len(text) > 0 && weight(text[0]) == 0 {
		text = text[1:]
	}
	for len(text) > 0 && weight(text[len(text)-1]) == 0 {
		text = text[:len(text)-1]
	}
	return text
}
