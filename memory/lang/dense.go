package lang

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
)

// Chinese, Japanese and Korean are indexed by pairs of characters, which are no words. A
// question is split at characters that mean little by themselves; what remains between two of
// them is a word, of one character (狗 车 家 茶) or several.

var (
	// These end a word of a question: common verbs, measure words, and question words.
	functionCharacters = characters("function-characters")
	littleCharacters   = characters("little-characters")

	everydayCharacters = characters("everyday-characters") // weak evidence alone

	wholeWords  = data.Set("whole") // common words with such a character in them
	emptyWords  = data.Set("empty")
	hardlyWords = data.Set("hardly")
)

// characters returns the characters of a name.
func characters(name string) func() string {
	list := data.Words(name)
	return sync.OnceValue(func() string { return strings.Join(list(), "") })
}

// beginsWith returns the length in bytes of the word that text begins with.
func beginsWith(text string, words map[string]bool) int {
	for _, n := range [...]int{9, 6} { // bytes: three characters, two
		if len(text) >= n && words[text[:n]] {
			return n
		}
	}
	return 0
}

var (
	particles  = data.Words("particles") // particles of Korean words, the longest first
	predicates = data.Set("predicates")
)

// denseWords are the words in a folded text without spaces.
type denseWords struct {
	proof map[string]float32
	extra []index.Term // single characters
	some  bool         // there is a character of these scripts
}

// How much a single character counts: as a word, between two that mean little, or in one.
const (
	loneWeight = 1
	partWeight = 0.15
)

// weight is that of a pair in a question.
func (d *denseWords) weight(t string) float32 {
	r, n := utf8.DecodeRuneInString(t)
	second, _ := utf8.DecodeRuneInString(t[n:])
	_, whole := d.proof[t]
	switch {
	case unicode.Is(unicode.Hangul, r) && !whole, unicode.Is(unicode.Hiragana, r) && unicode.Is(unicode.Hiragana, second) && !whole:
		return functionTerm
	case unicode.Is(unicode.Hiragana, r) != unicode.Is(unicode.Hiragana, second) && !whole:
		return weakTerm
	}
	return denseWeight(t)
}

func denseWordsOf(folded string) denseWords {
	d := denseWords{proof: map[string]float32{}}
	var word []rune
	hangul, whole, empty := false, 0, 0 // where a whole word and an empty one end
	end := func() {
		d.enter(word, hangul)
		word = word[:0]
	}
	for at, r := range folded {
		if at >= max(whole, empty) && r >= 0x2e80 {
			if empty = at + beginsWith(folded[at:], emptyWords()); empty == at {
				if n := wholeWord(folded[at:]); n > 0 || at == whole {
					end()
					whole = at + n
				}
			}
		}
		isHangul := unicode.Is(unicode.Hangul, r)
		dense := isDense(r)
		d.some = d.some || dense
		cut := !dense || at < empty || !isHangul && at >= whole && meansLittle(r, len(word))
		if cut || isHangul != hangul {
			end()
		}
		if hangul = isHangul; !cut {
			word = append(word, r)
		}
	}
	end()
	return d
}

func wholeWord(text string) int {
	return max(beginsWith(text, wholeWords()), beginsWith(text, hardlyWords()))
}

// isDenseTerm reports whether a term is of characters, not a word.
func isDenseTerm(t string) bool {
	r, _ := utf8.DecodeRuneInString(t)
	return isDense(r)
}

func isDense(r rune) bool { return IsCJK(r) || r == 'ー' }

func (d *denseWords) enter(word []rune, hangul bool) {
	if hangul {
		d.korean(word)
	} else {
		d.add(word)
	}
}

// meansLittle reports whether a character ends a word. The long mark ends none that has begun.
func meansLittle(r rune, begun int) bool {
	if r == 'ー' {
		return begun == 0
	}
	return strings.ContainsRune(functionCharacters(), r) || strings.ContainsRune(littleCharacters(), r)
}

// add enters a word. Its pairs and characters together are as much evidence as a word.
func (d *denseWords) add(word []rune) {
	switch n := len(word); n {
	case 0:
		return
	case 1:
		if unicode.In(word[0], unicode.Hiragana, unicode.Katakana) {
			return
		}
		t := index.Term{Text: string(word), Weight: loneWeight, Evidence: 1}
		if strings.ContainsRune(everydayCharacters(), word[0]) {
			t.Weight, t.Evidence = weakTerm, provesHardly
		}
		d.extra = append(d.extra, t)
	default:
		if hardlyWords()[string(word)] {
			d.proof[string(word[:2])] = provesHardly
			return
		}
		parts := float32(0) // the proof of the characters that the pairs are made of
		for _, r := range word {
			if unicode.Is(unicode.Han, r) {
				parts += partWeight
				d.extra = append(d.extra, index.Term{Text: string(r), Weight: partWeight, Evidence: partWeight, Extra: true})
			}
		}
		for i := range n - 1 {
			d.proof[string(word[i:i+2])] = (float32(n)/2 - parts) / float32(n-1)
		}
	}
}

// korean enters a word without its particle.
func (d *denseWords) korean(word []rune) {
	text := string(word)
	if len(word) == 0 || predicates()[text] {
		return
	}
	for _, p := range particles() {
		if rest, ok := strings.CutSuffix(text, p); ok {
			text = rest // nothing, where it stood behind a date
			break
		}
	}
	if !predicates()[text] {
		d.add([]rune(text))
	}
}

// addTo adds the single characters to terms, in place of equal ones.
func (d *denseWords) addTo(terms []index.Term, names map[string]bool) []index.Term {
	for _, t := range d.extra {
		at := slices.IndexFunc(terms, func(o index.Term) bool { return o.Text == t.Text })
		switch {
		case names[t.Text]:
		case at < 0:
			terms = append(terms, t)
		case t.Evidence > terms[at].Evidence:
			terms[at] = t
		}
	}
	return terms
}
