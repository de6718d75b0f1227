package lang

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
)

var (
	asking        = data.Rule("asking")
	askingThePast = data.Rule("asking-the-past")
	asksPresent   = data.Rule("asks-the-present")
	someone       = data.Rule("someone")     // refers to somebody or something mentioned before
	thereAlone    = data.Rule("there-alone") // does not refer to a place mentioned before
	goingOn       = data.Rule("going-on")
	tag           = data.Rule("tag") // turns a statement into a question that needs no answer
	sentenceWords = data.Rule("sentence-words")
	kindOfAnswer  = data.List("kind-of-answer")
	antecedents   = data.List("antecedent")
	asksOwn       = data.Rule("asks-own") // asks for something about one who speaks
)

// A message of keywords has at most so many words, or characters without spaces.
const (
	mostKeywords   = 6
	mostCharacters = 8
)

// intend reads what is asked; rest is folded without dates and small talk, and chats tells of that.
func (q *Question) intend(folded, rest string, chats bool) {
	folded, rest = Contracted(folded), Contracted(rest)
	if !aboutUs.MatchString(rest) {
		rest = tag.ReplaceAllString(rest, "")
	}
	q.Past = askingThePast.MatchString(rest)
	if q.Asks = asking.MatchString(rest); !q.Asks {
		q.Keywords = !chats && onlyKeywords(folded)
		return
	}
	q.Present = !q.Past && len(q.Days) == 0 && asksPresent.MatchString(rest)
	if q.asked() < LeastAsked {
		q.stressOwn(rest)
	}
	q.fade(rest)
	q.readKind(folded)
	q.readAsked(folded)
	q.Refers = refersBack(rest) && q.asked() <= mostOfReference
	q.Properties = propertiesAsked(rest, allProperties)
	if q.Properties == 0 && q.asked() < LeastAsked && asksOwn.MatchString(rest) {
		q.stressWeak()
	}
}

// onlyKeywords reports whether a message is a few words and no sentence.
func onlyKeywords(folded string) bool {
	return len(strings.Fields(folded)) <= mostKeywords && countDense(folded) <= mostCharacters &&
		!Narration.MatchString(folded) && !sentenceWords.MatchString(folded)
}

// refersBack reports whether a question has words for somebody or something mentioned before.
func refersBack(rest string) bool {
	return someone.MatchString(thereAlone.ReplaceAllString(rest, "")) || goingOn.MatchString(rest)
}

// leastBesideKind is the evidence of the other words of a question from which on the kind is optional: one word.
const leastBesideKind = 1

// readKind makes the words optional that name the kind of thing which is asked for, if the question has
// others: "What sport do I do every morning?" is answered by "I swim every morning".
// Pairs of characters stay required: a row may share parts of them.
func (q *Question) readKind(folded string) {
	kind := map[string]bool{}
	for _, e := range kindOfAnswer() {
		for _, at := range e.FindAllStringSubmatchIndex(folded, -1) {
			q.kind = folded[at[2]:at[3]]
			for _, t := range index.Terms(folded[at[2]:at[3]]) {
				kind[t] = true
			}
		}
	}
	for _, e := range antecedents() {
		for _, at := range e.FindAllStringSubmatch(folded, -1) {
			for _, t := range index.Terms(at[e.SubexpIndex("kind")]) {
				kind[t] = true
			}
		}
	}
	rest := float32(0)
	for _, t := range q.Terms {
		if !t.Extra && !kind[t.Text] {
			rest += t.Evidence
		}
	}
	q.OfKind = len(kind) > 0 && rest < leastBesideKind
	for i := range q.Terms {
		if t := q.Terms[i].Text; kind[t] && !q.OfKind && !isDenseTerm(t) {
			q.Terms[i].Extra = true
		}
	}
}

// narrated is how much of its evidence a word keeps that a question only has in what is narrated around
// it: "*lights a candle* can you see?" does not ask about candles.
const narrated = 0.35

// fade reduces the evidence of words that are narrated and not asked.
func (q *Question) fade(rest string) {
	spoken := Narration.ReplaceAllString(rest, " ")
	if spoken == rest || !strings.ContainsFunc(spoken, unicode.IsLetter) {
		return
	}
	asked := termSet(spoken)
	for i := range q.Terms {
		if t := &q.Terms[i]; !asked[t.Text] && !(isDenseTerm(t.Text) && strings.Contains(spoken, t.Text)) {
			t.Evidence *= narrated
		}
	}
}

// stressWeak makes weak words count for more, of a question that has no others: "What am I scared of?"
func (q *Question) stressWeak() {
	for i := range q.Terms {
		if t := &q.Terms[i]; !t.Extra && t.Evidence == provesHardly {
			t.Weight, t.Evidence = 1, ProvesLittle
		}
	}
}

// mostOfReference is the maximum evidence of a question that refers to the turn before.
const mostOfReference = 2.5

func (q *Question) asked() (sum float32) {
	for _, t := range q.Terms {
		if !t.Extra {
			sum += t.Evidence
		}
	}
	return sum
}

// Tells reports whether a term says what a question is about.
func Tells(t index.Term) bool {
	return t.Evidence >= ProvesLittle || t.Text[0] >= utf8.RuneSelf && !t.Extra && t.Evidence > provesHardly
}

// ProvesName is the evidence of a name: the message may be about nothing else that is known.
const ProvesName = 1.6

// Named are capitalised words inside a sentence.
var Named = regexp.MustCompile(`[\p{Ll}\d,;:] +(\p{Lu}\p{L}+)`)

var (
	statedNames = data.List("stated-name")
	noName      = chinese("no-name")
)

// NamesStated returns the terms of names that a text states ("called Pip"); Chinese ones are cut to two.
func NamesStated(text string) (terms []string) {
	for _, e := range statedNames() {
		for _, at := range e.FindAllStringSubmatchIndex(text, -1) {
			name := text[at[2]:at[3]]
			switch {
			case e.Language != "zh":
				terms = append(terms, index.Terms(strings.ToLower(name))...)
			case !noName.MatchString(name):
				terms = append(terms, string([]rune(name)[:2]))
			}
		}
	}
	return terms
}

// stress makes the names in a statement count more.
func (q *Question) stress(text string) {
	q.States = true
	names := map[string]bool{}
	for _, m := range Named.FindAllStringSubmatch(text, -1) {
		if w := strings.ToLower(m[1]); !TellsTime(w) && !strings.HasPrefix(w, "i'") {
			for _, t := range index.Terms(w) {
				names[t] = true
			}
		}
	}
	for i, t := range q.Terms {
		if names[t.Text] && t.Evidence == 1 {
			q.Terms[i].Evidence = ProvesName
		}
	}
}

// Silent reports whether nothing should be recalled for a message.
func (q *Question) Silent() bool {
	return q.asked() < LeastAsked && q.Properties == 0 && !(q.Asks && len(q.Days) > 0) && !q.Refers
}

const LeastAsked = 0.4 // evidence that a question, and keywords, need
