package memory

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"nodest/index"
)

// Layer says where a unit comes from.
type Layer string

// The layers that are searched.
const (
	Fact     Layer = "fact"     // a statement taken from exchanges
	Exchange Layer = "exchange" // what was said, word for word
)

// Unit is one thing that can be recalled: a fact, an exchange, or a single turn.
type Unit struct {
	ID           string
	Version      int64
	Layer        Layer
	Conversation string
	Session      int    // a sitting of the conversation, from 1
	Order        int64  // place in the conversation
	Speaker      Role   // who says all of it; empty of a fact
	Name         string // of the speaker, where the message has one
	Text         string
	Hash         string    // of the text without case, blanks and signs; equal texts have equal hashes
	At           time.Time // when it happened, else when it was said
	Importance   float64   // 0 to 1
	Pinned       bool
	ByHand       bool     // of a fact: the user wrote it, or locked it
	Profile      bool     // of a fact: ForProfile
	Sources      []string // of a fact: the units that it was taken from
	Origin       Origin   // of a fact: who wrote it
	Root         string   // of a fact: the id of its first version
	Evidence     []Evidence

	// Terms is what Terms returns for Text. It is stored with the row, so that an
	// index loads without analysing again.
	Terms   string
	Vectors []index.Kept
}

// standsFor reports whether u is a fact that takes the place of its source in what is
// found. One that a rule has read never does: the source may say something else.
func (u *Unit) standsFor(source string) bool {
	return u.Origin != ByRule && slices.Contains(u.Sources, source)
}

// Terms analyses the text of a unit.
func Terms(text string) string { return analyser.Join(text) }

// Row returns u as the index keeps it.
func (u *Unit) Row() index.Row {
	group := "" // facts stand alone
	if u.Layer != Fact {
		group = u.Conversation + "\x00" + strconv.Itoa(u.Session)
	}
	e := &entry{Unit: *u, traits: traitsOf(u.Text)}
	e.Terms, e.Unit.Vectors = "", nil // the index has them
	return index.Row{
		ID: u.ID, Version: u.Version, Group: group, Order: u.Order, Terms: u.Terms, Vectors: u.Vectors,
		Data: e, Size: entryBytes + len(u.Text) + len(u.Conversation) + len(u.Speaker) + len(u.Hash),
	}
}

// entry is what the index keeps of a unit.
type entry struct {
	Unit
	traits traits

	asksOnly, changes atomic.Uint32 // what knownOnce knows of the text
	giving            atomic.Uint32 // what gives knows of it
}

// entryBytes is what an entry takes besides its texts.
const entryBytes = 248

// traits are what the ranking wants to know of a text besides its terms.
type traits struct {
	asks   bool // it ends in a question
	time   bool // it tells a time
	number bool
	place  bool
	name   bool // something stands in quotation marks
	self   bool // in the first person
	length int  // code points
}

var (
	timeWords = words("yesterday today tonight tomorrow ago last next since week weeks weekend month months year years day days recently just" +
		" monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december")
	numberWords = words("two three four five six seven eight nine ten eleven twelve dozen hundred thousand once twice couple several first second third")
	placeWords  = words("in at to from near")
	selfWords   = words("i im ive i'm i've i'd i'll my me mine we we're we've our us")
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// traitsOf looks once through a text.
func traitsOf(text string) traits {
	var t traits
	trimmed := strings.TrimRight(text, " \n\t\"”」』)）")
	t.asks = strings.HasSuffix(trimmed, "?") || strings.HasSuffix(trimmed, "？")
	var word [24]byte
	n, upper, afterPlace := 0, false, false
	end := func() {
		if n == 0 {
			return
		}
		w := word[:min(n, len(word))]
		t.place = t.place || afterPlace && upper
		afterPlace = placeWords[string(w)]
		t.time = t.time || timeWords[string(w)]
		t.self = t.self || selfWords[string(w)]
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

// sign notes what one character outside ASCII tells.
func (t *traits) sign(r rune) {
	switch r {
	case '《', '“', '「', '『':
		t.name = true
	case '一', '二', '三', '四', '五', '六', '七', '八', '九', '十', '两', '百', '千', '几':
		t.number = true
	case '昨', '今', '明', '周', '年', '月', '号', '日', '点', '刚':
		t.time = true
	case '我':
		t.self = true
	case '在', '去', '到', '市', '省', '区', '路':
		t.place = true
	}
}

// fits tells whether a text has what a question asks for.
func (t traits) fits(s Sought) bool {
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
