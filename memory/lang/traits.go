package lang

import (
	"strings"
	"sync"
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

// TraitsOf scans a text once.
func TraitsOf(text string) Traits {
	var s traitScan
	for _, r := range text {
		s.read(r)
	}
	s.endWord()
	end := strings.TrimRight(text, " \n\t\"”」』)）")
	s.Asks = strings.HasSuffix(end, "?") || strings.HasSuffix(end, "？")
	return s.Traits
}

// traitScan is a scan with its present word, in lower case.
type traitScan struct {
	Traits
	word              [24]byte
	length            int
	upper, afterPlace bool
}

func (s *traitScan) read(r rune) {
	switch {
	case 'a' <= r && r <= 'z' || r == '\'':
		s.letter(byte(r))
	case r == '’':
		s.letter('\'')
	case 'A' <= r && r <= 'Z':
		s.upper = s.upper || s.length == 0
		s.letter(byte(r - 'A' + 'a'))
	default:
		s.endWord()
		s.sign(r)
	}
}

func (s *traitScan) letter(c byte) {
	if s.length < len(s.word) {
		s.word[s.length] = c
	}
	s.length++
}

func (s *traitScan) endWord() {
	if s.length == 0 {
		return
	}
	w := s.word[:min(s.length, len(s.word))]
	s.place = s.place || s.afterPlace && s.upper
	s.afterPlace = placeWords()[string(w)]
	s.time = s.time || timeWords()[string(w)]
	s.Self = s.Self || selfWords()[string(w)]
	s.number = s.number || numberWords()[string(w)]
	s.length, s.upper = 0, false
}

// sign notes what a character that is no Latin letter tells.
func (t *Traits) sign(r rune) {
	if r == ' ' {
		return
	}
	told := signs()[r]
	t.name, t.number, t.time = t.name || told.name, t.number || told.number, t.time || told.time
	t.place, t.Self = t.place || told.place, t.Self || told.Self
}

// Fits reports whether a text has what a question asks for.
func (t Traits) Fits(s Sought) bool {
	switch s {
	case SeekTime:
		return t.time
	case SeekPlace:
		return t.place
	case SeekNumber:
		return t.number
	case SeekName:
		return t.name
	}
	return false
}
