package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// Analyser turns text into terms, the same for rows and queries: compatibility form
// (NFKC) and lower case; English words without stop words, by their stem, with the
// commonest irregular forms led back to the word; runs of scripts that write without
// blanks as overlapping pairs, a lone character as itself; digits as they are, those
// of an ordinal without its ending. Words of other scripts stay whole.
//
// A term holds no blank, so rows keep theirs as one string joined by blanks
// (Join, strings.Fields). The zero value is ready to use.
type Analyser struct {
	KeepStopWords bool // English ones
	Identifiers   bool // also the parts of camelCase and snake_case words
}

// Longest word that is indexed, in bytes: longer ones are keys, hashes and pictures
// in letters, and are cut.
const longestTerm = 64

// Join returns the terms of text, joined by blanks.
func (a Analyser) Join(text string) string { return strings.Join(a.Terms(text), " ") }

// Terms returns the terms of text in their order, repeated ones repeatedly.
func (a Analyser) Terms(text string) []string {
	if !isASCII(text) {
		text = norm.NFKC.String(text)
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
			end := wordEnd(text, from)
			terms = a.appendWord(terms, text[from:end])
			from = end
		default:
			from += n
		}
	}
	return terms
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isDense reports whether r is of a script whose words cannot be told by blanks; of
// Korean, whose words carry endings, pairs find more as well.
func isDense(r rune) bool {
	return r >= 0x0E00 && (r == 'ー' || r == '々' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

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

// wordEnd lets an apostrophe or an underscore stand between two letters.
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

// appendPairs adds the overlapping pairs of a run of letters, or its only letter.
// Marks stay with the letter before them.
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

func (a Analyser) appendWord(terms []string, word string) []string {
	if a.Identifiers {
		terms = a.appendParts(terms, word)
	}
	for part := range strings.SplitSeq(word, "_") {
		terms = a.appendPlain(terms, strings.ToLower(part))
	}
	return terms
}

// appendParts adds the parts of an identifier where it has more than one.
func (a Analyser) appendParts(terms []string, word string) []string {
	from, before, parts := 0, rune(0), []string{}
	for i, r := range word {
		upper := unicode.IsUpper(r) && (unicode.IsLower(before) || startsWord(word[i:], before))
		digit := i > 0 && unicode.IsDigit(r) != unicode.IsDigit(before)
		if r == '_' || upper || digit {
			if from < i {
				parts = append(parts, word[from:i])
			}
			from = i
			if r == '_' {
				from = i + 1
			}
		}
		before = r
	}
	if from == 0 {
		return terms
	}
	if from < len(word) {
		parts = append(parts, word[from:])
	}
	if strings.Contains(word, "_") { // its parts come as words of their own
		whole := strings.ToLower(strings.ReplaceAll(word, "_", ""))
		if len(whole) <= longestTerm {
			terms = append(terms, whole)
		}
		parts = parts[:0]
	}
	for _, part := range parts {
		terms = a.appendPlain(terms, strings.ToLower(part))
	}
	return terms
}

// startsWord reports whether an upper-case run ends here: the S of HTTPServer.
func startsWord(rest string, before rune) bool {
	_, n := utf8.DecodeRuneInString(rest)
	next, _ := utf8.DecodeRuneInString(rest[n:])
	return unicode.IsUpper(before) && unicode.IsLower(next)
}

// appendPlain adds one lower-case word unless it says nothing.
func (a Analyser) appendPlain(terms []string, word string) []string {
	if i := strings.IndexFunc(word, isApostrophe); i >= 0 {
		word = a.withoutEnding(word, i)
	}
	if word == "" || !a.KeepStopWords && isStop(word) {
		return terms
	}
	return append(terms, Stem(word))
}

// withoutEnding takes the ending off a contraction: "caroline's", "we'll". What
// ends in n't is a stop word.
func (a Analyser) withoutEnding(word string, i int) string {
	_, n := utf8.DecodeRuneInString(word[i:])
	stem, ending := word[:i], word[i+n:]
	switch {
	case ending == "t" && strings.HasSuffix(stem, "n"):
		if !a.KeepStopWords {
			return ""
		}
		return stem
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

func isStop(word string) bool {
	if len(word) == 1 {
		return word[0] < '0' || word[0] > '9'
	}
	return english.IsStopWord(word) || moreStopWords[word]
}

// moreStopWords are missing in the list of the stemmer.
var moreStopWords = set("also could cannot dont didnt doesnt im ive id isnt wasnt cant couldnt would wouldnt shall may might must ought" +
	" us yes oh ok okay hey hi let lets upon whose else ever etc")

// Stem returns the term of one lower-case word: its stem if it is written in Latin
// letters. An irregular form gives the stem of its word ("went": "go").
func Stem(word string) string {
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
		if r >= 0x250 {
			return word
		}
	}
	return english.Stem(word, true)
}

// ordinalRest returns the letters behind a number unless they make it an ordinal.
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
