package lang

import "strings"

// Traits are what the ranking needs to know of a text besides its terms.
type Traits struct {
	Asks   bool // it ends in a question
	time   bool // it tells a time
	number bool
	place  bool
	name   bool // something stands in quotation marks
	Self   bool // in the first person
	length int  // code points
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
	var t Traits
	trimmed := strings.TrimRight(text, " \n\t\"”」』)）")
	t.Asks = strings.HasSuffix(trimmed, "?") || strings.HasSuffix(trimmed, "？")
	var word [24]byte
	n, upper, afterPlace := 0, false, false
	end := func() {
		if n == 0 {
			return
		}
		w := word[:min(n, len(word))]
		t.place = t.place || afterPlace && upper
		afterPlace = placeWords[string(w)]
		t.time = t.time || TimeWords[string(w)]
		t.Self = t.Self || selfWords[string(w)]
		t.number = t.number || numberWords[string(w)]
		n, upper = 0, false
	}
	for _, r := range text {
		t.length++
		switch {
		case 'a' <= r && r <= 'z' || r == '\'' || r == '’':
			if r == '’' {
				r = '\''
			}
		case 'A' <= r && r <= 'Z':
			upper = upper || n == 0
			r += 'a' - 'A'
		case '0' <= r && r <= '9':
			t.number = true
			end()
			continue
		default:
			end()
			if r >= 0x80 {
				t.sign(r)
			}
			t.name = t.name || r == '"'
			continue
		}
		if n < len(word) {
			word[n] = byte(r)
		}
		n++
	}
	end()
	return t
}

// sign notes what a character outside ASCII tells.
func (t *Traits) sign(r rune) {
	switch r {
	case '《', '“', '「', '『':
		t.name = true
	case '一', '二', '三', '四', '五', '六', '七', '八', '九', '十', '两', '百', '千', '几':
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
