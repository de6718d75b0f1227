package lang

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Gist is what a statement says, in a form that can be found in other texts and does not have its
// words: they are hashed. The zero value is in no text.
type Gist struct {
	Of      Subject  `json:"of"`
	Denied  bool     `json:"denied,omitempty"`
	Parts   []Part   `json:"parts"`
	Classes []string `json:"classes,omitempty"` // classes of words (class-…); a word of each must be said
}

// Part is a word of a Gist, or what stands together in a script without spaces.
type Part struct {
	Hashes []uint32 `json:"h"`           // one of the word or the only character, else those of the pairs of characters
	Named  bool     `json:"n,omitempty"` // a name or a number
}

// How much must be said of a statement, by weight.
const (
	enoughOfGist = 0.6
	weightNamed  = 2.0
	fewOfClass   = 2.5 // a statement with less needs the class of its verb
	fewOfName    = 1.5 // likewise a class that says little
	mostKeys     = 4   // words by which a Gist is looked up
)

// Classes that say so much of a statement that the other words are not enough, and those that
// must be said where there are few others. The rest (have, plan) says little.
var (
	alwaysSaid = []string{"like", "hate", "allergic", "birth", "age"}
	saidOfFew  = map[string]float64{"live": fewOfClass, "work": fewOfClass, "study": fewOfClass, "name": fewOfName}
)

// deniedBehind are classes whose word may stand behind the others, with a denial right before it.
var deniedBehind = []string{"like", "hate", "allergic"}

func hashOf(word string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(word))
	return h.Sum32()
}

// GistOf reads a statement about somebody, such as a fact.
func GistOf(text string, of Subject) Gist {
	g := Gist{Of: of}
	names := map[string]bool{}
	for _, name := range namesIn(norm.NFKC.String(text)) {
		for _, part := range LatinParts(strings.ReplaceAll(name, "’", "'")) {
			names[part] = true
		}
	}
	pieces := PiecesOf(text)
	weight := 0.0
	for _, p := range pieces {
		if p.Class == "" {
			weight += p.Weight
			g.Parts = append(g.Parts, Part{p.hashes(), names[p.word] || signsOfNumber.MatchString(p.word)})
		}
	}
	verb := true // no other word came before: "from" is none in "is divorced from"
	for _, p := range pieces {
		g.Denied = g.Denied || p.Class == "not"
		if (slices.Contains(alwaysSaid, p.Class) || verb && weight < saidOfFew[p.Class]) && !slices.Contains(g.Classes, p.Class) {
			g.Classes = append(g.Classes, p.Class)
		}
		verb = verb && p.Class != ""
	}
	return g
}

func (p *Piece) hashes() (hashes []uint32) {
	run := []rune(p.run)
	for i := 1; i < len(run); i++ {
		hashes = append(hashes, hashOf(string(run[i-1:i+1])))
	}
	if len(hashes) == 0 {
		return []uint32{hashOf(p.word + p.run)}
	}
	return hashes
}

func (p *Part) weight() float64 {
	if n := len(p.Hashes); n > 1 {
		return weightCharacter * float64(n+1)
	}
	if p.Named {
		return weightNamed
	}
	return weightWord
}

// Keys are words, hashed, of which a text that repeats the statement has at least one, unless it
// has only the lighter half of its words; see Telling.Keys.
func (g *Gist) Keys() []string {
	var keys []uint32
	parts := slices.Clone(g.Parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.weight(), a.weight()) })
	for at := 0; len(keys) < mostKeys; at++ { // the first of each, then the second
		more := false
		for _, p := range parts {
			if at < len(p.Hashes) && len(keys) < mostKeys && !slices.Contains(keys, p.Hashes[at]) {
				keys = append(keys, p.Hashes[at])
			}
			more = more || at < len(p.Hashes)
		}
		if !more {
			break
		}
	}
	return keysOf(keys)
}

func keysOf(hashes []uint32) []string {
	keys := make([]string, len(hashes))
	for i, h := range hashes {
		keys[i] = strconv.FormatUint(uint64(h), 36)
	}
	return keys
}

// In returns which sentences of a text repeat the statement, by their places; nil = none does.
func (g *Gist) In(t *Telling) (at []int) {
	if len(g.Parts) == 0 {
		return nil
	}
	for i := range t.sentences {
		if !slices.Contains(at, i) && t.sentences[i].repeats(g, t) {
			at = append(at, i)
		} else if i > 0 && t.sentences[i-1].fragment() && !slices.Contains(at, i-1) {
			if both := t.read(t.texts[i-1] + " " + t.texts[i]); both.repeats(g, t) {
				at = append(at, i-1, i)
			}
		}
	}
	return at
}

// repeats reports whether a sentence says the statement of the same person.
func (s *sentence) repeats(g *Gist, t *Telling) bool {
	found, ok := s.find(g, t)
	if !ok {
		return false
	}
	from := 0
	if g.Of == AboutUser || g.Of == AboutCharacter {
		who, at := s.subject(found.anchor, g)
		meant := t.meaning(g.Of)
		switch {
		case who == meant:
			from = at
			if found.bare && at < found.anchor && len(PiecesOf(s.folded[at:found.anchor])) > 0 {
				return false // "you met a nurse", "you are a nurse"
			}
		case who != nobody || found.bare:
			return false
		case meant != speaker && (!found.named || found.parts < 2):
			return false // nobody is named: only names tell who is meant
		}
	}
	denied := slices.ContainsFunc(s.denials, func(at int) bool { return from <= at && at <= found.last })
	return denied == g.Denied
}

// finding is where a sentence has what a Gist says.
type finding struct {
	anchor int  // the word whose person counts
	last   int  // the last one
	parts  int  // parts of the Gist that are said
	named  bool // there is a name or a number among them
	bare   bool // one word is all that the statement says

	said, weight float64 // weights of the parts that are said, and of all
	needsName    bool    // there is a name or a number among all
}

// find looks for a statement, whoever it is about.
func (s *sentence) find(g *Gist, t *Telling) (f finding, ok bool) {
	f = finding{anchor: len(s.folded), bare: g.bare()}
	for i := range g.Parts {
		if p := &g.Parts[i]; len(g.Parts) == 1 || !t.names[p.Hashes[0]] { // the person is looked for by itself
			s.findPart(p, &f)
		}
	}
	if !s.findClasses(g.Classes, &f) || !f.enough() {
		return f, false
	}
	return f, !s.asks || f.named && f.parts > 1
}

// bare reports whether one word is all that a statement says.
func (g *Gist) bare() bool {
	return len(g.Parts) == 1 && len(g.Classes) == 0 && g.Parts[0].weight() < fewOfName
}

// findPart enters where a part of a statement is said.
func (s *sentence) findPart(p *Part, f *finding) {
	covered, at := s.covers(p)
	f.weight += p.weight()
	f.said += covered * p.weight()
	f.needsName = f.needsName || p.Named
	if covered > 0 {
		f.parts++
		f.named = f.named || p.Named || len(p.Hashes) > 1
		f.anchor, f.last = min(f.anchor, at), max(f.last, at)
	}
}

// findClasses enters where the classes of a statement are said, and reports whether all are.
func (s *sentence) findClasses(classes []string, f *finding) bool {
	for i, class := range classes {
		at, has := s.classes[class]
		if !has {
			return false
		}
		if i == 0 {
			f.anchor = at
		}
		if slices.Contains(deniedBehind, class) {
			f.last = max(f.last, at)
		}
	}
	return true
}

// enough reports whether so much is said that it is the statement.
func (f *finding) enough() bool {
	return f.said > 0 && f.said >= enoughOfGist*f.weight && (f.named || !f.needsName)
}

// covers returns how much of a part is in the sentence, from 0 to 1, and where.
func (s *sentence) covers(p *Part) (share float64, first int) {
	if len(p.Hashes) == 1 {
		at, has := s.words[p.Hashes[0]]
		if !has {
			return 0, 0
		}
		return 1, at
	}
	first = len(s.folded)
	characters, before := 0, false // each counts that stands in a pair that is said
	for _, h := range p.Hashes {
		at, has := s.words[h]
		if has {
			first = min(first, at)
		}
		if has || before {
			characters++
		}
		before = has
	}
	if before {
		characters++
	}
	return float64(characters) / float64(len(p.Hashes)+1), first
}
