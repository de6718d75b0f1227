package lang

import (
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/index"
)

// Telling is a text in which gists are looked for, sentence by sentence.
type Telling struct {
	by        Role
	names     map[uint32]bool // hashes of the words of both names
	people    Names           // folded
	texts     []string        // sentences as they were said, with what separates them
	sentences []sentence
}

// who is whom a sentence speaks of, seen from the one who says it.
type who int

const (
	nobody who = iota
	speaker
	listener
	other
)

// sentence is what a sentence has, and where: in bytes of its folded text.
type sentence struct {
	folded  string
	words   map[uint32]int // the first of each, and of each character and pair of characters
	classes map[string]int // likewise the last one of each class
	denials []int
	people  []mention // in order
	close   []int     // somebody close to the person before: "my boss"
	asks    bool
}

type mention struct {
	at  int
	who who
}

var (
	otherPeople = data.Words("third-person")
	closePeople = data.Words("close-people")
	selfPeople  = data.Words("tells-self")
)

// Tell reads what somebody says.
func Tell(m Line, people Names) *Telling {
	t := &Telling{by: m.Role, names: map[uint32]bool{}, people: Names{Fold(people.User), Fold(people.Character)}}
	for _, name := range []string{t.people.User, t.people.Character} {
		for _, p := range PiecesOf(name) {
			for _, h := range p.hashes() {
				t.names[h] = true
			}
		}
	}
	for text := m.Text; text != ""; {
		end := SentenceEnd(text)
		t.texts = append(t.texts, text[:end])
		t.sentences = append(t.sentences, t.read(text[:end]))
		text = text[end:]
	}
	return t
}

// Keys are the words of the text, as Gist.Keys has them.
func (t *Telling) Keys() []string {
	var hashes []uint32
	for i := range t.sentences {
		for h := range t.sentences[i].words {
			hashes = append(hashes, h)
		}
	}
	slices.Sort(hashes)
	return keysOf(slices.Compact(hashes))
}

// Without returns the text without some sentences, which a mark replaces; "" = nothing is left.
func (t *Telling) Without(at []int) string {
	var left []int
	for i := range t.texts {
		if !slices.Contains(at, i) && strings.ContainsFunc(t.texts[i], isWordy) {
			left = append(left, i)
		}
	}
	return join(t.texts, left)
}

// Only returns some sentences.
func (t *Telling) Only(at []int) string { return join(t.texts, slices.Sorted(slices.Values(at))) }

func isWordy(r rune) bool {
	return IsVisible(r) && !strings.ContainsRune("*_~\"'“”‘’「」『』()（）.。!！?？…-—", r)
}

// meaning is who is meant by a subject, seen from the one who says the text.
func (t *Telling) meaning(of Subject) who {
	if (of == AboutUser) == (t.by == RoleUser) {
		return speaker
	}
	return listener
}

func (t *Telling) read(text string) sentence {
	s := sentence{folded: Fold(text), words: map[uint32]int{}, classes: map[string]int{}}
	s.asks = IsQuestion(tag.ReplaceAllString(strings.TrimSpace(s.folded), "")) && IsQuestion(text)
	v := vocabularies()
	for _, at := range wordOrNumber.FindAllStringIndex(s.folded, -1) {
		w := s.folded[at[0]:at[1]]
		if !signsOfNumber.MatchString(w) && HasCJK(w) {
			s.addDense(w, at[0])
			if w = strings.TrimFunc(w, IsCJK); w == "" || HasCJK(w) {
				for _, part := range LatinParts(s.folded[at[0]:at[1]]) {
					s.add(part, at[0])
				}
				continue
			}
		}
		base, _, _ := strings.Cut(w, "'")
		for _, part := range LatinParts(w) {
			s.add(part, at[0])
		}
		for _, form := range []string{w, base, index.Stem(base)} {
			for _, c := range v.latin[form] {
				s.addClass(c, at[0])
			}
		}
	}
	for _, d := range v.dense {
		if at := strings.LastIndex(s.folded, d.word); at >= 0 {
			s.addClass(d.class, at)
		}
	}
	t.addPeople(&s)
	return s
}

func (s *sentence) add(word string, at int) {
	if _, has := s.words[hashOf(word)]; !has {
		s.words[hashOf(word)] = at
	}
}

func (s *sentence) addClass(class string, at int) {
	if class == "not" {
		s.denials = append(s.denials, at)
	}
	s.classes[class] = max(s.classes[class], at)
}

// addDense adds the characters of a run, and their pairs.
func (s *sentence) addDense(run string, from int) {
	before := rune(0)
	last := 0
	for i, r := range run {
		if IsCJK(r) {
			s.add(string(r), from+i)
			if before != 0 {
				s.add(string([]rune{before, r}), from+last)
			}
			before, last = r, i
		} else {
			before = 0
		}
	}
}

// addPeople finds the persons of a sentence.
func (t *Telling) addPeople(s *sentence) {
	user, character := listener, speaker
	if t.by == RoleUser {
		user, character = speaker, listener
	}
	for _, of := range []struct {
		words []string
		who   who
	}{
		{selfPeople(), speaker}, {meansUser(), speaker}, {meansCharacter(), listener}, {otherPeople(), other},
		{[]string{t.people.User}, user}, {[]string{t.people.Character}, character},
	} {
		for _, w := range of.words {
			each(s.folded, w, func(at int) { s.people = append(s.people, mention{at, of.who}) })
		}
	}
	slices.SortFunc(s.people, func(a, b mention) int { return a.at - b.at })
	for _, w := range closePeople() {
		each(s.folded, w, func(at int) { s.close = append(s.close, at) })
	}
}

// each calls use with the places of a word in a folded text.
func each(folded, word string, use func(at int)) {
	for from := 0; word != ""; {
		at := wordAt(folded[from:], word)
		if at < 0 {
			return
		}
		use(from + at)
		from += at + len(word)
	}
}

// subject returns the person whom the words at a place are about: the last one before them, else
// the first behind them.
func (s *sentence) subject(place int, g *Gist) (who, int) {
	at := slices.IndexFunc(s.people, func(m mention) bool { return m.at >= place })
	if at < 0 {
		at = len(s.people)
	}
	if at == 0 {
		if s.closeIn(0, place, g) {
			return other, 0
		}
		if len(s.people) == 0 {
			return nobody, 0
		}
		return s.people[0].who, s.people[0].at
	}
	m := s.people[at-1]
	if s.closeIn(m.at, place, g) {
		return other, m.at
	}
	return m.who, m.at
}

// closeIn reports whether somebody close is named in a part of the sentence whom the statement
// does not name.
func (s *sentence) closeIn(from, to int, g *Gist) bool {
	return slices.ContainsFunc(s.close, func(at int) bool {
		if at < from || at >= to {
			return false
		}
		return !slices.ContainsFunc(g.Parts, func(p Part) bool {
			return slices.ContainsFunc(p.Hashes, func(h uint32) bool { place, has := s.words[h]; return has && place == at })
		})
	})
}

// Words of a sentence that only names what the next one is about: "Jazz?"
const (
	fragmentWords      = 3
	fragmentCharacters = 8
)

func (s *sentence) fragment() bool {
	return len(strings.Fields(s.folded)) <= fragmentWords && utf8.RuneCountInString(s.folded) <= fragmentCharacters*3 && countDense(s.folded) <= fragmentCharacters
}
