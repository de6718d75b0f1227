package lang

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/index"
)

// Sought is the kind of answer that a question asks for.
type Sought uint8

const (
	SeekAny    Sought = iota
	SeekTime          // when, 什么时候
	SeekPlace         // where, 哪里
	SeekNumber        // how many, 几个
	SeekName          // the name of, 叫什么
)

type Question struct {
	Terms      []index.Term
	Speakers   []Role // who is meant: none, one or both
	Days       []Days // that it names
	Sought     Sought
	Current    bool       // asks for how things are now
	Past       bool       // asks for how they were
	Present    bool       // asks for a state of somebody or something, and not for what happened
	Asks       bool       // it is a question, or asks to be told
	Keywords   bool       // it is a few words and no sentence
	States     bool       // it tells something, by enough words of its own
	Refers     bool       // to somebody or something in the turn before
	Properties Properties // properties of the user that it asks for
	Told       float32    // evidence of the words of the turns before

	OfDays bool // it asks for nothing but what was on its days
	OfKind bool // it says nothing of what it asks for but the kind of thing

	Asked *Asked // the statement that answers it in its words; nil = none

	kind    string // the kind of thing that it asks for
	early   bool   // it asks for nothing but how things were before the user and the character met
	tongues tongues
}

// Own reports whether a term is a word of the question itself.
func (q *Question) Own(term string) bool {
	return slices.ContainsFunc(q.Terms, func(t index.Term) bool { return !t.Extra && t.Text == term })
}

// Weights of terms that say little about what is sought.
const (
	weakTerm     = 0.4 // words about asking, telling and counting; pairs with a Chinese function character
	dateTerm     = 0.5 // parts of a day that Days already holds
	functionTerm = 0.15
)

// monthTerms are the stems of the full names of months.
var monthTerms = sync.OnceValue(func() map[string]bool {
	var full []string
	for _, forms := range monthNames() {
		name, _, _ := strings.Cut(forms, "/")
		full = append(full, name)
	}
	return stems(full)
})

var monthNames = data.Words("months")

func isYear(t string) bool {
	return len(t) == 4 && (strings.HasPrefix(t, "19") || strings.HasPrefix(t, "20")) && strings.Trim(t, "0123456789") == ""
}

// ReadQuery reads text, asked at the time now, in the time zone of now.
func ReadQuery(text string, people Names, now time.Time) Question {
	folded := Plain(text)
	early := beforeUs.MatchString(folded)
	if early {
		folded = beforeUs.Rewrite(folded)
	}
	days, dateless, bare, parts := readDays(folded, now)
	rest := aboutNothing(bare)
	chats := rest != strings.ReplaceAll(bare, "’", "'")
	q := Question{
		Sought: soughtIn(folded), Current: ContainsWord(folded, meansNow()), Days: days,
		Speakers: speakers(folded, people), tongues: tonguesOf(folded),
	}
	w := weights{
		tongues: q.tongues, dense: denseWordsOf(rest), exact: slices.ContainsFunc(days, func(d Days) bool { return d.Day > 0 || !d.From.IsZero() }),
		dateless: termSet(dateless), told: termSet(rest), lasting: termSet(parts),
	}
	names := termSet(people.User + " " + people.Character) // who is meant is a signal of its own
	for _, t := range index.Terms(folded) {
		if !names[t] && !q.tongues.join(t) {
			q.Terms = append(q.Terms, w.term(t))
		}
	}
	q.Terms = w.dense.addTo(q.Terms, names)
	q.spellOut(text)
	q.intend(folded, rest, chats)
	if early {
		q.ofBefore()
	}
	q.ofDays(w.dateless, bare)
	if !q.Asks || q.asked() > mostOfReference {
		q.stress(text)
	}
	return q
}

// weights tell how much the terms of a question count, by where they stand in it.
type weights struct {
	tongues  tongues
	dense    denseWords
	exact    bool            // it names days, not only months and years
	dateless map[string]bool // terms outside of dates
	told     map[string]bool // terms outside of dates and small talk
	lasting  map[string]bool // terms of parts of the year
}

// term returns a term with its weight and evidence.
func (w *weights) term(t string) index.Term {
	weight, proof := w.anywhere(t)
	switch {
	case w.comesAgain(t):
		proof = ProvesLittle
	case !w.told[t]:
		proof = 0
	}
	return index.Term{Text: t, Weight: weight, Evidence: proof}
}

// anywhere returns the weight and the evidence of a term, wherever in the rest of the question it stands.
func (w *weights) anywhere(t string) (weight, proof float32) {
	switch {
	case !w.dateless[t]:
		return dateTerm, 0
	case w.tongues.report(t):
		return weakTerm, w.tongues.proof(t)
	case !isDenseTerm(t):
		return 1, w.tongues.proof(t)
	}
	return w.dense.weight(t), w.dense.proof[t]
}

// comesAgain reports whether a term is part of a date that may be told at another time as well.
func (w *weights) comesAgain(t string) bool {
	return !w.dateless[t] && (w.lasting[t] || !w.exact && (monthTerms()[t] || isYear(t)))
}

// ofDays finds out what a question asks for beside its days; left are the terms without them.
func (q *Question) ofDays(left map[string]bool, bare string) {
	sum := float32(0)
	for _, t := range q.Terms {
		if !t.Extra && (left[t.Text] || isDenseTerm(t.Text) && strings.Contains(bare, t.Text)) {
			sum += t.Evidence
		}
	}
	if q.OfDays = q.Asks && len(q.Days) > 0 && sum < LeastAsked; q.OfDays {
		for i := range q.Terms {
			q.Terms[i].Weight *= functionTerm
		}
	}
}

// spelled are letters that are also written as two; without accents they are the first.
var spelled, shortened = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "å", "aa", "ø", "oe"), strings.NewReplacer("ae", "a", "oe", "o", "ue", "u", "aa", "a")

// spellOut adds the other spelling of words with such letters: Müller and Mueller.
func (q *Question) spellOut(text string) {
	lower := strings.ToLower(norm.NFC.String(text))
	both := map[string]string{}
	for word := range strings.FieldsFuncSeq(lower, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if other := spelled.Replace(word); other != word {
			both[index.Stem(word)] = index.Stem(other)
		} else if other = shortened.Replace(word); other != word {
			both[index.Stem(word)] = index.Stem(other)
		}
	}
	for _, t := range q.Terms {
		if other, ok := both[t.Text]; ok && !t.Extra && t.Evidence == 1 {
			t.Text, t.Extra = other, true
			q.Terms = append(q.Terms, t)
		}
	}
}

func termSet(text string) map[string]bool {
	terms := map[string]bool{}
	for _, t := range index.Terms(text) {
		terms[t] = true
	}
	return terms
}

// denseWeight weighs a pair of characters by its function characters.
func denseWeight(t string) float32 {
	letters, function := 0, 0
	for _, r := range t {
		letters++
		if strings.ContainsRune(functionCharacters(), r) {
			function++
		}
	}
	switch function {
	case 0:
		return 1
	case letters:
		return functionTerm
	}
	return weakTerm
}

// speakers returns who is meant: whom a query names, else the user by "I", the character by "you".
func speakers(folded string, p Names) []Role {
	var named []Role
	for _, one := range []struct {
		role Role
		name string
	}{{RoleUser, p.User}, {RoleCharacter, p.Character}} {
		if one.name != "" && containsName(folded, Plain(one.name)) {
			named = append(named, one.role)
		}
	}
	if named != nil {
		return named
	}
	if ContainsWord(folded, meansUser()) {
		named = append(named, RoleUser)
	}
	if ContainsWord(folded, meansCharacter()) {
		named = append(named, RoleCharacter)
	}
	return named
}

// containsName looks for a whole name, or for the first word of several.
func containsName(folded, name string) bool {
	first, _, several := strings.Cut(name, " ")
	return ContainsWord(folded, []string{name}) || several && len(first) > 2 && ContainsWord(folded, []string{first})
}

var (
	meansUser      = data.Words("means-user")
	meansCharacter = data.Words("means-character")
	meansNow       = data.Words("means-now")
)

// kinds are tried in order.
var kinds = []struct {
	kind  Sought
	words func() []string
}{
	{SeekNumber, data.Words("seeks-number")}, {SeekTime, data.Words("seeks-time")},
	{SeekPlace, data.Words("seeks-place")}, {SeekName, data.Words("seeks-name")},
}

func soughtIn(folded string) Sought {
	for _, k := range kinds {
		if ContainsWord(folded, k.words()) {
			return k.kind
		}
	}
	return SeekAny
}
