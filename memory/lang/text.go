package lang

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/accent"
	"nodest/internal/index"
)

func IsCJK(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func HasCJK(s string) bool { return strings.ContainsFunc(s, IsCJK) }

// MostlyCJK counts a character of these scripts as three letters.
func MostlyCJK(s string) bool {
	cjk, other := 0, 0
	for _, r := range s {
		switch {
		case IsCJK(r):
			cjk++
		case unicode.IsLetter(r):
			other++
		}
	}
	return cjk*3 > other
}

// Plain returns the form of a text in which it is read: NFKC in lower case, without accents.
func Plain(text string) string { return strings.ToLower(accent.Fold(norm.NFKC.String(text))) }

func countDense(s string) (n int) {
	for _, r := range s {
		if r >= 0x2e80 {
			n++
		}
	}
	return n
}

func stems(words []string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words {
		m[index.Stem(w)] = true
	}
	return m
}

// ContainsWord reports whether one of words is in folded: as a whole word in scripts that are written with spaces.
func ContainsWord(folded string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return wordAt(folded, w) >= 0 })
}

func wordAt(folded, w string) int {
	for from := 0; ; {
		i := strings.Index(folded[from:], w)
		if i < 0 || w == "" {
			return -1
		}
		i += from
		end := i + len(w)
		before, _ := utf8.DecodeLastRuneInString(folded[:i])
		next, _ := utf8.DecodeRuneInString(folded[end:])
		if isDenseTerm(w) || !inWord(before) && !inWord(next) {
			return i
		}
		from = i + 1
	}
}

// inWord reports whether a character is a part of words that stand between spaces.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiWord(byte(r)) && r != '_'
	}
	return r < 0x1100 && unicode.In(r, unicode.Letter, unicode.Digit, unicode.M)
}

func Tidy(s string) string { return strings.Join(strings.Fields(s), " ") }

// Truncate returns at most the first n code points of s, and a mark if there are more.
func Truncate(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// IsVisible reports whether a character has a shape.
func IsVisible(r rune) bool {
	return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && !isFiller(r)
}

// IsPlausible reports whether RFC 3339 can write the year in UTC.
func IsPlausible(t time.Time) bool { return t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 }

// Fillers have no shape but are no format characters, and the joiners.
const Fillers = `[\x{200c}\x{200d}\x{34f}\x{115f}\x{1160}\x{3164}\x{ffa0}\x{fe00}-\x{fe0f}]`

var filler = regexp.MustCompile(Fillers)

func isFiller(r rune) bool { return filler.MatchString(string(r)) }

var Narration = data.Rule("narration")

var markup = regexp.MustCompile("```|</?[a-zA-Z][^>]*>|^[\\[{]")

// LooksLikeMarkup reports whether a text is no statement of a person.
func LooksLikeMarkup(s string) bool { return markup.MatchString(s) }

var curly = strings.NewReplacer("’", "'", "‘", "'")

// withoutMark has the endings of contractions by how they are typed in a hurry.
var withoutMark = sync.OnceValue(func() map[string]string {
	endings := map[string]string{}
	for _, w := range contractions() {
		at := strings.Index(w, "'")
		if strings.HasSuffix(w, "n't") {
			at--
		}
		endings[strings.Replace(w, "'", "", 1)] = w[at:]
	}
	return endings
})

var contractions = data.Words("contractions")

const longestWithoutMark = len("shouldnt")

// Contracted writes contractions as the patterns of this package expect them: with a plain
// apostrophe, also if there is none ("im", "dont").
func Contracted(text string) string {
	text = curly.Replace(text)
	var out strings.Builder
	written := 0
	for from := 0; from < len(text); from++ {
		begin := from
		if from = wordEnd(text, from); from == begin || from-begin > longestWithoutMark {
			continue
		}
		if ending, ok := withoutMark()[strings.ToLower(text[begin:from])]; ok {
			out.WriteString(text[written : from-len(ending)+1])
			out.WriteString(ending)
			written = from
		}
	}
	if written == 0 {
		return text
	}
	return out.String() + text[written:]
}
