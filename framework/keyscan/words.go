package keyscan

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hit is a key that occurs in a text: its number, and whether it occurs as a whole word somewhere.
type Hit uint32

// Key returns the number of the key.
func (h Hit) Key() int32 { return int32(h >> 1) }

// Whole reports that the key occurs between two characters that are no ASCII letters, digits or _, or at
// an end of the text. Chinese characters are such characters.
func (h Hit) Whole() bool { return h&1 != 0 }

// Finder looks for the keys of an automaton in one text after the other. It is not safe for
// concurrent use.
type Finder struct {
	a          *Automaton
	any, whole Set
	found      []int32
}

// Finder returns a finder.
func (a *Automaton) Finder() *Finder { return &Finder{a: a, any: a.newSet(), whole: a.newSet()} }

// ID distinguishes the automaton in a Memo.
func (a *Automaton) ID() uint64 { return a.id }

// Find returns the keys that occur in a text, except the empty one.
func (f *Finder) Find(text string) []Hit {
	a := f.a
	if len(a.labels) == 1 {
		return nil
	}
	if !a.exact {
		text = Fold(text)
	}
	at := int32(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if !a.exact && c-'A' < 26 {
			c |= 0x20
		}
		if at == 0 {
			at = a.root[c]
		} else {
			at = a.step(at, c)
		}
		if at != 0 && (a.states[at].key >= 0 || a.states[at].out != 0) {
			f.mark(at, i+1, text)
		}
	}
	hits := make([]Hit, len(f.found))
	for i, k := range f.found {
		hits[i] = Hit(k) << 1
		if f.whole.Has(k) {
			hits[i] |= 1
		}
	}
	for _, k := range f.found {
		f.any[k/64], f.whole[k/64] = 0, 0
	}
	f.found = f.found[:0]
	return hits
}

// mark notes the keys that end before end, the longest of which is at a state or behind it.
func (f *Finder) mark(at int32, end int, text string) {
	a := f.a
	border := end == len(text) || !isWord(text[end])
	for ; at != 0; at = a.states[at].out {
		k := a.states[at].key
		if k < 0 {
			continue
		}
		if !f.any.Has(k) {
			f.any.Add(k)
			f.found = append(f.found, k)
		} else if !border {
			return // where a key is marked, all keys that it ends in are
		}
		if start := end - int(a.states[at].depth); border && (start == 0 || !isWord(text[start-1])) {
			f.whole.Add(k)
		}
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// Fold returns a text in lower case as JavaScript writes it, capitals of ASCII excepted. It differs from
// strings.ToLower in two letters: İ and, at the end of a word, Σ. It is our own because
// golang.org/x/text/cases takes the end of its buffer for that of a word.
func Fold(text string) string {
	if isLower(text) {
		return text
	}
	if !strings.Contains(text, "İ") && !strings.Contains(text, "Σ") {
		return strings.ToLower(text)
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == 'Σ' && endsWord(text[:i], text[i+len("Σ"):]):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// endsWord is the condition Final_Sigma of Unicode: a cased letter before, and none behind, wherein
// marks and apostrophes count for nothing; letters that are both, as ʰ, are marks, as in ICU.
func endsWord(before, after string) bool {
	before = strings.TrimRightFunc(before, isIgnorable)
	after = strings.TrimLeftFunc(after, isIgnorable)
	r, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	return isCased(r) && !isCased(next)
}

func isCased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func isIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a", r)
}
