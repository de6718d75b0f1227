package index

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/russian"
	"golang.org/x/text/unicode/norm"

	"nodest/internal/accent"
)

// longestTerm is the maximum length of a term in bytes: longer words are keys and hashes, and
// are cut.
const longestTerm = 64

// Join returns the terms of text as a row keeps them. A term has no space.
func Join(text string) string { return strings.Join(Terms(text), " ") }

// Terms returns the terms of text in their order, the same for rows and queries:
// compatibility form (NFKC) without accents and invisible characters, and lower case; English words without stop words, by their stem,
// with common irregular forms led back to the word; scripts without spaces as overlapping
// pairs, a lone character as itself; digits, ordinals without their ending; Cyrillic words by their stem
// in Russian. Words of other scripts stay whole.
func Terms(text string) []string { return terms(text, appendWord) }

// DocumentTerms is Terms for documents and the questions about them: identifiers give their
// parts and, as a further term, their whole: getUserName, user_name, net.http. So do numbers
// with dots, such as versions.
func DocumentTerms(text string) []string { return terms(text, appendIdentifier) }

func terms(text string, appendWord func(terms []string, text string, from int) ([]string, int)) []string {
	if !isASCII(text) {
		text = accent.Fold(norm.NFKC.String(text))
		if strings.ContainsFunc(text, isInvisible) {
			text = strings.Map(visible, text)
		}
	}
	terms := make([]string, 0, len(text)/7)
	for from := 0; from < len(text); {
		r, n := utf8.DecodeRuneInString(text[from:])
		switch {
		case isDense(r):
			end := runEnd(text, from, isDense)
			terms = appendPairs(terms, text[from:end])
			from = end
		case isWord(r):
			terms, from = appendWord(terms, text, from)
		default:
			from += n
		}
	}
	return terms
}

// isInvisible reports whether r stands within words and is no part of them: a soft hyphen, a
// zero-width space, a word joiner, or a mark of direction.
func isInvisible(r rune) bool {
	switch r {
	case '\u00ad', '\u200b', '\u200e', '\u200f', '\u2060', '\ufeff':
		return true
	}
	return false
}

func visible(r rune) rune {
	if isInvisible(r) {
		return -1
	}
	return r
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isDense reports whether the words of a script cannot be told by spaces; Korean words carry
// endings, so pairs find more there too.
func isDense(r rune) bool {
	return r >= firstDense && (r == 'ー' || r == '々' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// firstDense is the first character of such a script.
const firstDense = '\u0E00'

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)) && !isDense(r)
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == '‘' || r == '‛' }

func runEnd(text string, from int, of func(rune) bool) int {
	for i, r := range text[from:] {
		if !of(r) {
			return from + i
		}
	}
	return len(text)
}

// wordEnd accepts an apostrophe or an underscore between two letters.
func wordEnd(text string, from int) int {
	for {
		from = runEnd(text, from, isWord)
		r, n := utf8.DecodeRuneInString(text[from:])
		next, _ := utf8.DecodeRuneInString(text[from+n:])
		if (!isApostrophe(r) && r != '_') || !isWord(next) {
			return from
		}
		from += n
	}
}

// appendPairs adds the overlapping pairs of a run of letters, or its only letter. Marks stay
// with the letter before them.
func appendPairs(terms []string, run string) []string {
	previous, start := -1, 0
	for i, r := range run {
		if i == 0 || unicode.Is(unicode.M, r) {
			continue
		}
		if previous >= 0 {
			terms = append(terms, run[previous:i])
		}
		previous, start = start, i
	}
	if previous < 0 {
		previous = 0
	}
	return append(terms, run[previous:])
}

// appendWord adds the terms of the word that begins at from, and returns its end.
func appendWord(terms []string, text string, from int) ([]string, int) {
	end := wordEnd(text, from)
	for part := range strings.SplitSeq(text[from:end], "_") {
		terms = appendPlain(terms, strings.ToLower(part))
	}
	return terms, end
}

// appendPlain adds a lower-case word unless it is a stop word.
func appendPlain(terms []string, word string) []string {
	if i := strings.IndexFunc(word, isApostrophe); i >= 0 {
		word = withoutEnding(word, i)
	}
	if word == "" || isStop(word) {
		return terms
	}
	return append(terms, Stem(word))
}

// withoutEnding removes the ending of a contraction: "caroline's", "we'll", and what is elided before
// a word: "l'amie". Those in n't are stop words.
func withoutEnding(word string, i int) string {
	_, n := utf8.DecodeRuneInString(word[i:])
	stem, ending := word[:i], word[i+n:]
	switch {
	case ending == "t" && strings.HasSuffix(stem, "n"):
		return ""
	case elided[stem] && len(ending) > 1:
		return ending
	case len(ending) <= 2:
		return stem
	}
	return stem + strings.Map(func(r rune) rune {
		if isApostrophe(r) {
			return -1
		}
		return r
	}, ending) // o'clock
}

// elided are articles, pronouns and prepositions that lose their vowel before another.
var elided = set("l d j m t s n c qu un dell nell sull dall all quest")

func isStop(word string) bool {
	if len(word) == 1 {
		return word[0] < '0' || word[0] > '9'
	}
	return english.IsStopWord(word) || moreStopWords[word]
}

var moreStopWords = set("also could cannot dont didnt doesnt im ive id isnt wasnt cant couldnt would wouldnt shall may might must ought" +
	" us yes oh ok okay hey hi let lets upon whose else ever etc")

// Stem returns the term of one lower-case word: its stem if it is in Latin or Cyrillic letters, without accents. An
// irregular form gives the stem of its word ("went": "go").
func Stem(word string) string {
	if !isASCII(word) {
		word = accent.Fold(word)
	}
	if word == "" {
		return ""
	}
	if len(word) > longestTerm {
		cut := longestTerm
		for !utf8.RuneStart(word[cut]) {
			cut--
		}
		return word[:cut]
	}
	if c := word[0]; '0' <= c && c <= '9' {
		return strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyz") + ordinalRest(word)
	}
	if base, ok := irregular[word]; ok {
		word = base
	}
	for _, r := range word {
		if r >= 0x250 && !unicode.Is(unicode.Cyrillic, r) {
			return word
		}
	}
	return stems.of(word)
}

// stemCache keeps stems of words that were asked for lately: texts are mostly words that were
// there before, and making a stem takes longer than everything else about a word. A place in it
// has the last word that fell there, so it never grows: it takes at most about 3 MB.
type stemCache [1 << 14]atomic.Pointer[stemmed]

type stemmed struct{ word, stem string }

var (
	stems    stemCache
	stemSeed = maphash.MakeSeed()
)

func (c *stemCache) of(word string) string {
	place := &c[maphash.String(stemSeed, word)%uint64(len(c))]
	if s := place.Load(); s != nil && s.word == word {
		return s.stem
	}
	s := &stemmed{word: strings.Clone(word)} // a part of a text would keep all of it
	if first, _ := utf8.DecodeRuneInString(word); unicode.Is(unicode.Cyrillic, first) {
		s.stem = russian.Stem(s.word, true)
	} else {
		s.stem = english.Stem(s.word, true)
	}
	place.Store(s)
	return s.stem
}

func ordinalRest(word string) string {
	rest := strings.TrimLeft(word, "0123456789")
	letters := word[len(strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyz")):]
	if rest == "st" || rest == "nd" || rest == "rd" || rest == "th" {
		return ""
	}
	return letters
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
