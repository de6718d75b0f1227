package lang

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/index"
)

// How much of a statement must be in its source, by weight: of the whole, and of each clause.
const (
	EnoughSaid      = 0.6
	EnoughOfClause  = 0.5
	clauseSays      = 1.5 // weight from which on a clause is looked at alone
	weightWord      = 1.0
	weightCharacter = 0.5
	weightClass     = 0.75
)

// Said is what texts say, in a form in which a statement can be looked up.
type Said struct {
	Words   map[string]bool // stems of words, numbers in digits
	Runs    string          // text of dense scripts
	classes map[string]bool
}

// Piece is a part of a statement that must be said.
type Piece struct {
	word   string // stem or number; or
	run    string // a run of a dense script; or
	Class  string
	Weight float64
}

// classes of words may replace each other in a fact and its source; some must be said (lacks).
var classes = func() map[string]func() []string {
	m := map[string]func() []string{}
	for class := range strings.FieldsSeq("like hate allergic live work study name age birth have plan not") {
		m[class] = data.Words("class-" + class)
	}
	return m
}()

var (
	neutralWords  = data.Words("neutral")      // need no source
	neutralFirst  = data.Rule("neutral-first") // neutral words that have a word of a class in them
	dislikes      = data.Rule("dislikes")
	likesAfterAll = data.Rule("likes-after-all")
	clauseEnds    = data.Rule("clause-ends")
	recalling     = data.Rule("recalling") // a character repeats its memories, which are no source

	SecondPerson = data.Rule("speaks-to-other")

	signsOfNumber = regexp.MustCompile(`^\d+(?:[.,:/-]\d+)*$`)
	wordOrNumber  = regexp.MustCompile(`\d+(?:[.,:/-]\d+)*|[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*`)
)

type denseWord struct{ word, class string }

// vocabulary has the words of classes and the neutral ones.
type vocabulary struct {
	latin   map[string][]string // classes
	dense   []denseWord         // longest first
	neutral map[string]bool
	blank   *strings.Replacer // blanks neutral words of dense scripts
}

var vocabularies = sync.OnceValue(func() vocabulary {
	v := vocabulary{latin: map[string][]string{}, neutral: map[string]bool{}}
	for class, list := range classes {
		for _, w := range list() {
			if HasCJK(w) {
				v.dense = append(v.dense, denseWord{w, class})
				continue
			}
			v.latin[w] = append(v.latin[w], class)
			if stem := index.Stem(w); stem != w {
				v.latin[stem] = append(v.latin[stem], class)
			}
		}
	}
	slices.SortFunc(v.dense, func(a, b denseWord) int {
		return cmp.Or(len(b.word)-len(a.word), strings.Compare(a.word, b.word), strings.Compare(a.class, b.class))
	})
	for _, classes := range v.latin {
		slices.Sort(classes)
	}
	var pairs []string
	for _, w := range neutralWords() {
		if HasCJK(w) {
			pairs = append(pairs, w, " ")
			continue
		}
		v.neutral[w], v.neutral[index.Stem(w)] = true, true
	}
	v.blank = strings.NewReplacer(pairs...)
	return v
})

// Fold normalises a text for comparison.
func Fold(text string) string {
	text = strings.ToLower(norm.NFKC.String(text))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "’", "'"), "‘", "'")
	text = likesAfterAll.ReplaceAllString(text, " ")
	return Digits(dislikes.Rewrite(text))
}

func SaidIn(texts ...string) Said {
	v, s := vocabularies(), Said{Words: map[string]bool{}, classes: map[string]bool{}}
	var runs strings.Builder
	for _, text := range texts {
		text = Fold(text)
		for _, w := range wordOrNumber.FindAllString(text, -1) {
			for _, c := range v.latin[w] {
				s.classes[c] = true
			}
			for _, c := range v.latin[index.Stem(w)] {
				s.classes[c] = true
			}
			for _, part := range LatinParts(w) {
				s.Words[part] = true
			}
		}
		for _, d := range v.dense {
			if !s.classes[d.class] && strings.Contains(text, d.word) {
				s.classes[d.class] = true
			}
		}
		runs.WriteString(text + "\n")
	}
	s.Runs = runs.String()
	return s
}

// LatinParts are the terms of one run of letters, which may mix scripts (用Python写).
func LatinParts(w string) []string {
	if signsOfNumber.MatchString(w) {
		return []string{w}
	}
	var out []string
	for _, part := range strings.FieldsFunc(w, func(r rune) bool { return IsCJK(r) || r == '\'' }) {
		out = append(out, index.Stem(part))
	}
	return out
}

func PiecesOf(text string) []Piece {
	text = Fold(text)
	var out []Piece
	for _, w := range wordOrNumber.FindAllString(text, -1) {
		if HasCJK(w) && !signsOfNumber.MatchString(w) {
			for _, part := range LatinParts(w) {
				out = append(out, Piece{word: part, Weight: weightWord})
			}
			out = append(out, densePieces(w)...)
			continue
		}
		if p, ok := latinPiece(w); ok {
			out = append(out, p)
		}
	}
	return out
}

func latinPiece(w string) (Piece, bool) {
	v := vocabularies()
	base, _, _ := strings.Cut(w, "'")
	if v.neutral[w] || base == "" {
		return Piece{}, false
	}
	stem := index.Stem(base)
	for _, form := range []string{w, base, stem} {
		if c := v.latin[form]; len(c) > 0 {
			return Piece{Class: c[0], Weight: weightClass}, true
		}
	}
	if v.neutral[base] || v.neutral[stem] || len(index.Terms(base)) == 0 {
		return Piece{}, false
	}
	return Piece{word: stem, Weight: weightWord}, true
}

// densePieces are the words of classes in a run, and what is left between them and neutral ones.
func densePieces(run string) []Piece {
	var out []Piece
	run = strings.Map(func(r rune) rune {
		if IsCJK(r) {
			return r
		}
		return ' '
	}, run)
	run = neutralFirst.ReplaceAllString(run, " ")
	v := vocabularies()
	for _, d := range v.dense {
		if strings.Contains(run, d.word) {
			out = append(out, Piece{Class: d.class, Weight: weightClass})
			run = strings.ReplaceAll(run, d.word, " ")
		}
	}
	for part := range strings.FieldsSeq(v.blank.Replace(run)) {
		out = append(out, Piece{run: part, Weight: weightCharacter * float64(utf8.RuneCountInString(part))})
	}
	return out
}

func clausesOf(text string) []string {
	return strings.Split(clauseEnds.ReplaceAllString(text, "\n"), "\n")
}

// Covers returns how much of the weight of p is said.
func (s Said) Covers(p Piece) float64 {
	run := []rune(p.run)
	if s.Words[p.word] || s.classes[p.Class] || len(run) == 1 && strings.Contains(s.Runs, p.run) {
		return p.Weight
	}
	covered := 0
	for i := range run {
		before := i > 0 && strings.Contains(s.Runs, string(run[i-1:i+1]))
		if before || i+1 < len(run) && strings.Contains(s.Runs, string(run[i:i+2])) {
			covered++
		}
	}
	return weightCharacter * float64(covered)
}

// Share returns how much of pieces is said, from 0 to 1, and their weight.
func (s Said) Share(pieces []Piece) (share, weight float64) {
	found := 0.0
	for _, p := range pieces {
		weight += p.Weight
		found += s.Covers(p)
	}
	if weight == 0 {
		return 0, 0
	}
	return found / weight, weight
}

// Unsupported returns why text is not a statement of the sources; "" = it is one. Every number
// and every recognisable name must be in the sources, and so must liking, disliking and
// negation; and most of the other words, in the whole and in each clause. Neutral words and the
// names of the two sides need no source.
func Unsupported(text string, sources []Line, names Names) string {
	texts := Stated(sources)
	s := SaidIn(texts...)
	s.add(names.User, names.Character)
	for _, m := range sources {
		s.add(m.Name)
		if strings.ContainsAny(Digits(text), "0123456789") {
			s.addDay(m)
		}
	}
	pieces := PiecesOf(text)
	share, weight := s.Share(pieces)
	if weight == 0 || share < EnoughSaid {
		return ReasonUnsupported
	}
	if reason := s.lacks(pieces); reason != "" {
		return reason
	}
	if !s.names(text) || !names.mayBeNamed(text, sources) {
		return ReasonName
	}
	for _, clause := range clausesOf(norm.NFKC.String(text)) {
		if share, weight := s.Share(PiecesOf(clause)); weight >= clauseSays && share < EnoughOfClause {
			return ReasonUnsupported
		}
	}
	if negated(text) != negatedIn(texts, pieces) && !(isOver.MatchString(text) && slices.ContainsFunc(texts, isOver.MatchString)) {
		return ReasonOpposite
	}
	return ""
}

// lacks returns the reason why a required piece is missing.
func (s *Said) lacks(pieces []Piece) string {
	for _, p := range pieces {
		switch {
		case s.Covers(p) > 0:
		case signsOfNumber.MatchString(p.word):
			return ReasonNumber
		case p.Class == "like" || p.Class == "hate" || p.Class == "allergic":
			return ReasonOpposite
		}
	}
	return ""
}

// mayBeNamed reports whether the sides that a statement names speak or are meant in the sources.
func (n Names) mayBeNamed(text string, sources []Line) bool {
	for _, side := range []struct {
		name string
		role Role
	}{{n.User, RoleUser}, {n.Character, RoleCharacter}} {
		if side.name == "" || !strings.Contains(strings.ToLower(text), strings.ToLower(side.name)) {
			continue
		}
		if !slices.ContainsFunc(sources, func(m Line) bool {
			return m.Role == side.role || SecondPerson.MatchString(m.Text) || strings.Contains(strings.ToLower(m.Text), strings.ToLower(side.name))
		}) {
			return false
		}
	}
	return true
}

func (s *Said) add(names ...string) {
	for _, name := range names {
		s.Runs += Fold(name) + "\n"
		for _, w := range wordOrNumber.FindAllString(Fold(name), -1) {
			for _, part := range LatinParts(w) {
				s.Words[part] = true
			}
		}
	}
}

// addDay counts the day that a source names ("yesterday") as said.
func (s *Said) addDay(m Line) {
	day, ok := EventTime(strings.Join(Stated([]Line{m}), "\n"), m.At)
	if !ok {
		return
	}
	s.Words[day.Format(time.DateOnly)] = true
	s.add(day.Format("2006/1/2"), day.Format("1/2"), day.Format("2006 1 2 January Jan Monday"))
}

// names reports whether every name in a statement is said: capitalised words inside a sentence,
// and Latin words in a text of a dense script.
func (s Said) names(text string) bool {
	text = norm.NFKC.String(text)
	dense, start := HasCJK(text), true
	for _, at := range wordOrNumber.FindAllStringIndex(text, -1) {
		for _, w := range strings.FieldsFunc(text[at[0]:at[1]], IsCJK) {
			first, _ := utf8.DecodeRuneInString(w)
			name := unicode.IsUpper(first) && !start || dense && unicode.IsLetter(first) && len(w) > 1
			p, counts := latinPiece(strings.ReplaceAll(strings.ToLower(w), "’", "'"))
			if name && counts && p.word != "" && !s.Words[p.word] && !IsDayName(w) {
				return false
			}
		}
		rest := strings.TrimLeft(text[at[1]:], " \t\"'”’)")
		start = rest != "" && strings.ContainsRune(".!?:\n", rune(rest[0]))
	}
	return true
}

func IsDayName(w string) bool {
	w = strings.ToLower(w)
	_, isMonth := months()[w]
	_, isWeekday := weekdays()[w]
	return isMonth || isWeekday
}

func negated(text string) bool { return slices.ContainsFunc(PiecesOf(text), negates) }

// negatedIn reports whether what is said about pieces is negated: all clauses that share words
// with it are or, if pieces are negated themselves, one.
func negatedIn(texts []string, pieces []Piece) bool {
	about, denied := 0, 0
	for _, text := range texts {
		for _, clause := range clausesOf(Fold(text)) {
			if s := SaidIn(clause); s.Shares(pieces) {
				about++
				if s.classes["not"] {
					denied++
				}
			}
		}
	}
	if slices.ContainsFunc(pieces, negates) {
		return denied > 0
	}
	return about > 0 && denied == about
}

func negates(p Piece) bool { return p.Class == "not" }

// Shares reports whether a word of pieces, other than one of a class, is said.
func (s Said) Shares(pieces []Piece) bool {
	for _, p := range pieces {
		if p.Class == "" && s.Covers(p) > 0 {
			return true
		}
	}
	return false
}

// Stated returns the texts of sources without questions, unless the other side answers them in
// a later source, and without what a character says from memory.
func Stated(sources []Line) []string {
	out := make([]string, 0, len(sources))
	for i, m := range sources {
		if m.Role == RoleUser {
			m.Text = OwnWords(m.Text)
		}
		answered := false
		for _, later := range sources[i+1:] {
			answered = answered || later.Role != m.Role
		}
		if answered {
			out = append(out, m.Text)
			continue
		}
		said := Statements(m.Text)
		if m.Role == RoleCharacter {
			said = slices.DeleteFunc(said, recalling.MatchString)
		}
		out = append(out, strings.Join(said, "\n"))
	}
	return out
}

// Why a statement is not supported, for the report of a job.
const (
	ReasonUnsupported = "not stated in the messages"
	ReasonNumber      = "contains a number that is not in the messages"
	ReasonName        = "contains a name that is not in the messages"
	ReasonOpposite    = "the messages state the opposite"
)
