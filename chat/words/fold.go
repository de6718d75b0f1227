package words

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"nodest/internal/accent"
)

// Texts are compared by their folded form: NFKC, Unicode case folding, NFKC, no accents. It is
// made piece by piece (a character with its combining marks), so that positions in it
// can be mapped to the text.

// Folder folds texts into a buffer that is used again. It is for one goroutine.
type Folder struct {
	buf []byte
	at  []int // where the piece begins in the text that made a byte of buf
}

// Folded returns the folded form of s; it is valid until the next call.
func (f *Folder) Folded(s string) []byte {
	f.buf = f.fold(f.buf[:0], s, nil)
	return f.buf
}

// Placed is Folded with the position in s of each byte, followed by the length of s.
func (f *Folder) Placed(s string) (form []byte, at []int) {
	f.at = f.at[:0]
	f.buf = f.fold(f.buf[:0], s, func(from, bytes int) {
		for range bytes {
			f.at = append(f.at, from)
		}
	})
	f.at = append(f.at, len(s))
	return f.buf, f.at
}

// fold appends the folded form of s to dst. It calls piece, if not nil, with the start of
// each piece in s and its length in dst.
func (f *Folder) fold(dst []byte, s string, piece func(from, bytes int)) []byte {
	simple := simpleFolds()
	for i := 0; i < len(s); {
		made, from := len(dst), i
		if b := s[i]; b < utf8.RuneSelf && (i+1 == len(s) || s[i+1] < utf8.RuneSelf) {
			if 'A' <= b && b <= 'Z' {
				b += 'a' - 'A'
			}
			dst = append(dst, b)
			if i++; piece != nil {
				piece(from, 1)
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		plain, ok := simple.of(r)
		if ok && i+size < len(s) { // the next rune must not combine with it
			next, _ := utf8.DecodeRuneInString(s[i+size:])
			_, ok = simple.of(next)
		}
		if ok {
			dst = utf8.AppendRune(dst, plain)
			i += size
		} else {
			size = norm.NFKC.NextBoundaryInString(s[i:], true)
			dst = append(dst, foldPiece(s[i:i+size])...)
			i += size
		}
		if piece != nil {
			piece(from, len(dst)-made)
		}
	}
	return dst
}

func foldPiece(s string) string {
	return accent.Fold(norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s))))
}

// simpleForms are the characters that make one character each and combine with
// none of their kind, which is most of what is ever written. At 0x3400 the
// ideographs begin, which fold to themselves.
type simpleForms struct {
	low  [0x3400]rune // 0 = not simple
	wide [0x100]rune  // from 0xFF00 on
}

// of returns the folded form of r; false if r is not simple.
func (t *simpleForms) of(r rune) (rune, bool) {
	switch {
	case r < 0x3400:
		plain := t.low[r]
		return plain, plain != 0
	case r < 0xA000, 0xAC00 <= r && r < 0xD7A4: // ideographs, Hangul syllables
		return r, true
	case 0xFF00 <= r && r < 0x10000:
		plain := t.wide[r-0xFF00]
		return plain, plain != 0
	}
	return 0, false
}

// simpleFolds makes the tables when they are first asked for.
var simpleFolds = sync.OnceValue(func() *simpleForms {
	t := &simpleForms{}
	for r := rune(1); r < rune(len(t.low)); r++ {
		t.low[r] = simpleForm(r)
	}
	for i := range t.wide {
		t.wide[i] = simpleForm(0xFF00 + rune(i))
	}
	return t
})

// simpleForm is the folded form of r if that is one character, and nothing before
// r combines with r; else 0.
func simpleForm(r rune) rune {
	s := string(r)
	form := foldPiece(s)
	plain, size := utf8.DecodeRuneInString(form)
	if form == "" || size != len(form) || !norm.NFKC.PropertiesString(s).BoundaryBefore() || !norm.NFKC.PropertiesString(form).BoundaryBefore() {
		return 0
	}
	return plain
}

// quotes are what people write for quotes, in pairs.
var quotes = strings.NewReplacer("\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\uff02", `"`)

// InQuery splits a query into words and quoted phrases, folded and without duplicates.
// An unclosed quote extends to the end.
func InQuery(query string) [][]byte {
	var f Folder
	var words [][]byte
	add := func(word string) {
		word = strings.TrimSpace(string(f.Folded(word)))
		for _, have := range words {
			if string(have) == word {
				return
			}
		}
		if word != "" {
			words = append(words, []byte(word))
		}
	}
	quoted := false
	for part := range strings.SplitSeq(quotes.Replace(query), `"`) {
		if quoted {
			add(part)
		} else {
			for word := range strings.FieldsSeq(part) {
				add(word)
			}
		}
		quoted = !quoted
	}
	return words
}

// Holds reports whether the text contains all words.
func (f *Folder) Holds(text string, words [][]byte) bool {
	form := f.Folded(text)
	for _, word := range words {
		if !bytes.Contains(form, word) {
			return false
		}
	}
	return true
}
