// Package words finds words in texts of any language: it folds texts, so that case and width do not matter, and keeps
// the words of many texts as one short list, which tells whether reading these texts can be worth while.
package words

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// The words of a range of messages are stored as one compressed list, so that a search need not
// read the texts of ranges that cannot have what it looks for. Words are cut out of folded texts.
// They are runs of letters and digits, and pairs of neighbours in scripts without spaces and
// among symbols. A part of a query that is such a run is inside of a word of each text that
// contains it.

const (
	wordPart  = 32           // bytes of a part of a query that are looked for
	wordPiece = 4 * wordPart // bytes of a word; a longer run becomes several, which overlap by wordPart
	mostWords = 16 << 20     // bytes of words of a range; those of one with more are not stored
	wordEnd   = '\n'         // behind each word

	version = "\x02\n" // a list begins with the version of the folded form
)

// Set collects the words of texts. The zero value is empty.
type Set struct {
	folder Folder
	words  map[string]struct{}
	size   int
}

// Add adds the words of a text.
func (w *Set) Add(text string) {
	if w.words == nil {
		w.words = map[string]struct{}{}
	}
	if w.size <= mostWords {
		eachRun(w.folder.Folded(text), w.addRun)
	}
}

func (w *Set) addRun(run []byte, pairs bool) {
	if pairs {
		eachPair(run, w.add)
		return
	}
	for len(run) > wordPiece {
		w.add(run[:wordPiece])
		run = run[wordPiece-wordPart:]
	}
	w.add(run)
}

func (w *Set) add(word []byte) {
	if _, has := w.words[string(word)]; !has {
		w.words[string(word)] = struct{}{}
		w.size += len(word) + 1
	}
}

// Stored is the list as it is stored; empty if there are too many words.
func (w *Set) Stored() []byte {
	if w.size > mostWords {
		return []byte{}
	}
	list := append(make([]byte, 0, len(version)+w.size), version...)
	for _, word := range slices.Sorted(maps.Keys(w.words)) {
		list = append(append(list, word...), wordEnd)
	}
	return wordCoder().encoder.EncodeAll(list, nil)
}

// eachRun calls f with each run of letters and digits of a folded text, and with each run of
// characters that are written without spaces or are symbols (pairs).
func eachRun(form []byte, f func(run []byte, pairs bool)) {
	from, kind := 0, noRun
	for at := 0; at < len(form); {
		r, size := rune(form[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(form[at:])
		}
		if next := runOf(r); next != kind {
			if kind != noRun {
				f(form[from:at], kind == pairRun)
			}
			from, kind = at, next
		}
		at += size
	}
	if kind != noRun {
		f(form[from:], kind == pairRun)
	}
}

// eachPair calls f with each two neighbours of a run, or with the only character.
func eachPair(run []byte, f func(pair []byte)) {
	_, first := utf8.DecodeRune(run)
	if first == len(run) {
		f(run)
		return
	}
	for from := 0; from+first < len(run); {
		_, second := utf8.DecodeRune(run[from+first:])
		f(run[from : from+first+second])
		from, first = from+first, second
	}
}

// runKind is what a character can be in.
type runKind byte

const (
	noRun runKind = iota
	wordRun
	pairRun
)

func runOf(r rune) runKind {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return wordRun
		}
		return noRun
	case r == utf8.RuneError:
		return noRun
	case 0x3041 <= r && r < 0xA000 || 0xAC00 <= r && r < 0xD7A4, unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.S):
		return pairRun
	case unicode.In(r, unicode.L, unicode.M, unicode.N):
		return wordRun
	}
	return noRun
}

// Parts returns the parts of the words of a query that words of a text must contain.
func Parts(words [][]byte) (parts [][]byte) {
	for _, word := range words {
		eachRun(word, func(run []byte, pairs bool) {
			if pairs {
				eachPair(run, func(pair []byte) { parts = append(parts, pair) })
				return
			}
			parts = append(parts, run[:min(len(run), wordPart)])
		})
	}
	slices.SortFunc(parts, func(a, b []byte) int { return len(b) - len(a) }) // the rare ones first
	return parts
}

// ErrDamaged tells that stored words cannot be read: the range must be indexed again.
var ErrDamaged = errors.New("the words of a range are damaged, or of another version")

// MayHold reports whether texts with these stored words may contain all parts. It returns
// ErrDamaged, and true, for what cannot be read. It uses buf.
func MayHold(stored []byte, parts [][]byte, buf *[]byte) (bool, error) {
	if len(stored) == 0 || len(parts) == 0 {
		return true, nil
	}
	list, err := wordCoder().decoder.DecodeAll(stored, (*buf)[:0])
	if err != nil || !bytes.HasPrefix(list, []byte(version)) {
		return true, ErrDamaged
	}
	*buf = list
	for _, part := range parts {
		if !bytes.Contains(list, part) {
			return false, nil
		}
	}
	return true, nil
}

// coder compresses lists of words. It is safe for concurrent use.
type coder struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

var wordCoder = sync.OnceValue(func() coder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		panic(err) // only for options that it does not know
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(2*mostWords))
	if err != nil {
		panic(err)
	}
	return coder{encoder, decoder}
})
