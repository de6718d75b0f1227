package jsregex

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Characters that are equal without regard to case, as Canonicalize of ECMA-262 has it: with the
// flag u by simple case folding, else by upper case, where a character with an upper case of several
// characters is equal to itself alone, and none outside of ASCII is equal to one in it. The
// engine's own flag compares lower case, which is neither.

// alike lists the characters, in their order, that are equal to others; by those the others.
type alike struct {
	runes  []rune
	others map[rune][]rune
}

var foldings = sync.OnceValue(func() (byMode [2]alike) {
	upper := cases.Upper(language.Und)
	byMode[0].others, byMode[1].others = map[rune][]rune{}, map[rune][]rune{}
	for r := rune(0); r < 0x20000; r++ {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			byMode[1].add(r, other)
			if r <= 0xffff && other <= 0xffff && unitUpper(upper, r) == unitUpper(upper, other) {
				byMode[0].add(r, other)
			}
		}
	}
	return byMode
})

func (a *alike) add(r, other rune) {
	if a.others[r] == nil {
		a.runes = append(a.runes, r)
	}
	a.others[r] = append(a.others[r], other)
}

// unitUpper is the upper case of a character of one UTF-16 unit, in the rules without the flag u.
func unitUpper(upper cases.Caser, r rune) rune {
	s := upper.String(string(r))
	u, size := utf8.DecodeRuneInString(s)
	if size != len(s) || u > 0xffff || r >= utf8.RuneSelf && u < utf8.RuneSelf {
		return r
	}
	return u
}

func (t *translator) alike() alike {
	if t.unicode {
		return foldings()[1]
	}
	return foldings()[0]
}

// cased writes a character outside of classes: with the flag i, all that are equal to it.
func (t *translator) cased(r rune) {
	var others []rune
	if t.ignoreCase {
		others = t.alike().others[r]
	}
	if others == nil {
		t.literal(r)
		return
	}
	t.out.WriteByte('[')
	t.literal(r)
	for _, other := range others {
		t.literal(other)
	}
	t.out.WriteByte(']')
}

// casedRange writes a range of a class: with the flag i, also what is equal to a character in it.
func (t *translator) casedRange(lo, hi rune) {
	t.plainRange(lo, hi)
	if !t.ignoreCase {
		return
	}
	a := t.alike()
	from, _ := slices.BinarySearch(a.runes, lo)
	var more []rune
	for _, r := range a.runes[from:] {
		if r > hi {
			break
		}
		for _, other := range a.others[r] {
			if other < lo || other > hi {
				more = append(more, other)
			}
		}
	}
	slices.Sort(more)
	for i := 0; i < len(more); {
		j := i
		for j+1 < len(more) && more[j+1] <= more[j]+1 {
			j++
		}
		t.plainRange(more[i], more[j])
		i = j + 1
	}
}

func (t *translator) plainRange(lo, hi rune) {
	t.literal(lo)
	if hi > lo {
		t.out.WriteByte('-')
		t.literal(hi)
	}
}

// The cased letters of Latin words that are no ASCII: \w has them with the flags i and u.
const casedWord = "\u017f\u212a"

// set returns a class escape as the flags have it.
func (t *translator) set(s charSet) charSet {
	switch {
	case !t.ignoreCase:
	case s.inside == jsWordSet && t.unicode:
		s.inside += casedWord
	case s.inside == `\p{Lu}`, s.inside == `\p{Ll}`, s.inside == `\p{Lt}`:
		s.inside = `\p{Lu}\p{Ll}\p{Lt}`
	}
	return s
}
