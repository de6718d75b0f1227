package lang

import "strings"

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
	TimeWords = WordSet("yesterday today tonight tomorrow ago last next since week weeks weekend month months year years day days recently just " +
		Weekdays + " " + Months)
	numberWords = WordSet("two three four five six seven eight nine ten eleven twelve dozen hundred thousand once twice couple several first second third")
	placeWords  = WordSet("in at to from near")
	selfWords   = WordSet("i im ive i'm i've i'd i'll my me mine we we're we've our us")
)

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
	s.afterPlace = placeWords[string(w)]
	s.time = s.time || TimeWords[string(w)]
	s.Self = s.Self || selfWords[string(w)]
	s.number = s.number || numberWords[string(w)]
	s.length, s.upper = 0, false
}

// sign notes what a character that is no Latin letter tells.
func (t *Traits) sign(r rune) {
	switch r {
	case '"', '《', '“', '「', '『':
		t.name = true
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '一', '二', '三', '四', '五', '六', '七', '八', '九', '十', '两', '百', '千', '几':
		t.number = true
	case '昨', '今', '明', '周', '年', '月', '号', '日', '点', '刚':
		t.time = true
	case '我':
		t.Self = true
	case '在', '去', '到', '市', '省', '区', '路':
		t.place = true
	}
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
