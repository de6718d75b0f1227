// Package accent folds the marks and forms of letters that one person writes and the next leaves out: Zoë and Zoe,
// Müller and Muller, أحمد and احمد. It keeps the marks that make another letter, such as those of Japanese,
// Indic and Thai scripts.
package accent

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold returns a text in the form NFKC without accents. A letter may become two (ß is ss), or none.
// Its case stays.
func Fold(text string) string {
	at := strings.IndexFunc(text, folds)
	if at < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	b.WriteString(text[:at])
	for _, r := range text[at:] {
		if form, ok := formOf(r); ok {
			b.WriteString(form)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func folds(r rune) bool {
	_, ok := formOf(r)
	return ok
}

// formOf returns the form of a character that has another one.
func formOf(r rune) (string, bool) {
	if r < 0xC0 || r >= endOfGreek || r >= endOfArabic && r < firstExtended { // no ideograph, kana or Hangul
		return "", false
	}
	form, ok := forms()[r]
	return form, ok
}

const (
	endOfArabic   = '\u0700'
	firstExtended = '\u1E00' // Latin and Greek
	endOfGreek    = '\u2000'
)

// letters have another form that Unicode does not tell by their parts. A space separates pairs.
const letters = "ßss ẞSS æae ÆAE œoe ŒOE øo ØO łl ŁL đd ĐD ðd ÐD þth ÞTH ħh ĦH ŧt ŦT ıi ŋn ŊN ƒf " +
	"ςσ ٱا ىي ةه ءا کك یي ھه ےي ہه"

// own are letters whose mark makes them another one, as that of ñ does not.
const own = "йЙїЇўЎ"

var forms = sync.OnceValue(func() map[rune]string {
	of := map[rune]string{'\u0640': ""} // tatweel
	for r := rune(0xC0); r < endOfGreek; r++ {
		switch {
		case r == endOfArabic:
			r = firstExtended - 1
		case r < '\u0530' && unicode.Is(unicode.Mn, r), unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Inherited) && unicode.Is(unicode.Mn, r):
			of[r] = ""
		case r >= '\u0660' && unicode.Is(unicode.Nd, r) && r < '\u06FA': // Arabic digits
			of[r] = string('0' + (r-'\u0660')%16%10)
		case unicode.IsLetter(r) && !strings.ContainsRune(own, r):
			if parts := norm.NFD.String(string(r)); parts != string(r) {
				base, n := utf8.DecodeRuneInString(parts)
				if strings.TrimFunc(parts[n:], func(r rune) bool { return unicode.Is(unicode.Mn, r) }) == "" {
					of[r] = string(base)
				}
			}
		}
	}
	for pair := range strings.FieldsSeq(letters) {
		r, n := utf8.DecodeRuneInString(pair)
		of[r] = pair[n:]
	}
	for r, form := range of { // ǿ is ø with a mark
		if base, n := utf8.DecodeRuneInString(form); n > 0 {
			if again, ok := of[base]; ok {
				of[r] = again + form[n:]
			}
		}
	}
	return of
})
