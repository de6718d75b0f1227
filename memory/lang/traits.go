package lang

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"nodest/internal/accent"
)

// Traits are what the ranking needs to know of a text besides its terms.
type Traits struct {
	Asks   bool // it ends in a question
	time   bool // it tells a time
	number bool
	place  bool
	name   bool // something is in quotation marks
	Self   bool // in the first person
}

var (
	timeWords   = data.Set("tells-time")
	numberWords = data.Set("tells-number")
	placeWords  = data.Set("before-place")
	selfWords   = data.Set("tells-self")

	timeCharacters   = data.Words("time-characters")
	numberCharacters = data.Words("number-characters")
	placeCharacters  = data.Words("place-characters")
	selfCharacters   = data.Words("self-characters")
)

// signs are the characters, besides Latin letters, that tell something alone.
var signs = sync.OnceValue(func() map[rune]Traits {
	signs := map[rune]Traits{}
	for _, of := range []struct {
		characters []string
		tell       Traits
	}{
		{[]string{"\"《“「『"}, Traits{name: true}}, {[]string{"0123456789"}, Traits{number: true}},
		{timeCharacters(), Traits{time: true}}, {numberCharacters(), Traits{number: true}},
		{placeCharacters(), Traits{place: true}}, {selfCharacters(), Traits{Self: true}},
	} {
		for _, r := range strings.Join(of.characters, "") {
			signs[r] = of.tell
		}
	}
	return signs
})

// TellsTime reports whether a word in lower case tells a time.
func TellsTime(word string) bool { return timeWords()[word] }

// TraitsOf reads a text: its words, and the characters that are no part of one.
func TraitsOf(text string) (t Traits) {
	for _, r := range text {
		if !wordLetter(r) && r != ' ' {
			t.add(signs()[r])
		}
	}
	afterPlace := false
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !wordLetter(r) }) {
		first, _ := utf8.DecodeRuneInString(w)
		t.place = t.place || afterPlace && unicode.IsUpper(first)
		w = accent.Fold(strings.ToLower(strings.ReplaceAll(w, "’", "'")))
		afterPlace = placeWords()[w]
		t.time, t.number, t.Self = t.time || timeWords()[w], t.number || numberWords()[w], t.Self || selfWords()[w]
	}
	end := strings.TrimRight(text, " \n\t\"”」』)）")
	t.Asks = strings.HasSuffix(end, "?") || strings.HasSuffix(end, "？")
	return t
}

// add adds what another text tells.
func (t *Traits) add(told Traits) {
	t.name, t.number, t.time = t.name || told.name, t.number || told.number, t.time || told.time
	t.place, t.Self = t.place || told.place, t.Self || told.Self
}

func wordLetter(r rune) bool { return (r < '0' || r > '9') && inWord(r) || r == '\'' || r == '’' }

// Fits reports whether a text has what a question asks for.
func (t Traits) Fits(s Sought) bool {
	return [...]bool{SeekAny: false, SeekTime: t.time, SeekPlace: t.place, SeekNumber: t.number, SeekName: t.name}[s]
}
