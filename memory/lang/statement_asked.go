package lang

import (
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/index"
)

// Asked is the statement about the speaker that answers a question, as far as the question has its words: of "When do
// I get up?" it is "I get up". A line that makes it answers the question, however common its words are.
type Asked struct {
	words  []string // stems, of languages with spaces
	pieces []string // likewise in languages without, in their order
	things bool     // the statement is about what the speaker has, and not what the speaker does
	is     bool     // it needs a word for "is" behind its words
	also   string   // a word of which the sentence has a form besides; "" = none
	or     *Asked   // another one that answers it as well
}

var (
	asksStatement = data.List("asks-statement")
	asksFor       = data.Rule("asks-for")         // the place of the answer in a question of a language without spaces
	besideAsked   = data.Set("beside-statement")  // adverbs of a question that its answer does not repeat
	trailing      = data.Set("trails-statement")  // prepositions that a question leaves at its end
	isWords       = data.Set("says-is")           // they stand between a thing and what it is
	makesIt       = data.Words("makes-statement") // who says it
	ownsIt        = data.Words("owns-statement")  // likewise of a thing, in languages with spaces
)

// How far apart the words of a statement may stand.
const (
	mostBeforeVerb  = 2 // words
	mostInStatement = 3
	mostBeforePiece = 6 // characters
)

// readAsked finds the statement that a folded question asks for.
func (q *Question) readAsked(folded string) {
	for _, e := range asksStatement() {
		at := e.FindStringSubmatch(folded)
		if at == nil {
			continue
		}
		who, said := at[e.SubexpIndex("who")], at[e.SubexpIndex("said")]
		if isDenseTerm(who) {
			q.Asked = densely(said, q.kind)
		} else {
			q.Asked = q.spaced(who, said)
			if be := e.SubexpIndex("be"); be >= 0 && q.Asked != nil {
				q.Asked.is = at[be] != "" && q.Asked.things
			}
		}
		if q.Asked != nil {
			break
		}
	}
	q.askKind()
}

// askKind adds the statement about a thing of the kind that is asked for: "What car do I drive?" is answered by "My
// car is a van" as well.
func (q *Question) askKind() {
	if q.kind == "" || isDenseTerm(q.kind) || q.tongues.join(index.Stem(q.kind)) {
		return
	}
	if q.Asked == nil || !q.Asked.things {
		q.Asked = &Asked{words: []string{index.Stem(q.kind)}, things: true, is: true, or: q.Asked}
	}
}

// subjects are the words by which facts name the user.
var subjects = data.Words("facts-name-user")

// MeansUser reports whether a term is part of how facts name the user.
func MeansUser(term string) bool {
	return slices.ContainsFunc(subjects(), func(w string) bool {
		if !isDenseTerm(w) {
			return term == index.Stem(w)
		}
		_, n := utf8.DecodeLastRuneInString(w)
		return isDenseTerm(term) && (strings.Contains(w, term) || strings.HasPrefix(term, w[len(w)-n:]))
	})
}

// spaced returns a statement of a language with spaces; nil if its words are too common to tell anything.
func (q *Question) spaced(who, said string) *Asked {
	words := slices.DeleteFunc(plainWords(said), func(w string) bool { return besideAsked()[w] })
	for len(words) > 0 && trailing()[words[len(words)-1]] {
		words = words[:len(words)-1]
	}
	a := &Asked{things: slices.Contains(ownsIt(), who)}
	some, clear := 0, false
	for _, w := range words {
		t := index.Stem(w)
		a.words = append(a.words, t)
		if q.tongues.join(t) {
			continue
		}
		proof := q.tongues.proof(t)
		clear = clear || proof >= ProvesLittle
		if proof > ProvesNothing {
			some++
		}
	}
	if !clear && some > 0 && len(words) < 2 && q.kind != "" {
		a.also, clear = index.Stem(q.kind), true
	}
	if !clear && (some == 0 || len(words) < 2) {
		return nil
	}
	return a
}

// densely returns a statement of a language without spaces: what stands around the places of the answer.
func densely(said, kind string) *Asked {
	if kind != "" {
		if at := strings.LastIndex(said, kind); at >= 0 {
			said = said[:at]
		}
	}
	a := &Asked{}
	telling, little, empty := 0, 0, false
	for _, p := range strings.Split(placesIn(said), "\n") {
		p = strings.Trim(strings.TrimPrefix(p, "的"), "的是了，。？！,.?! ")
		if p == "" {
			continue
		}
		a.pieces = append(a.pieces, p)
		for _, w := range emptied(p) {
			p, empty = strings.ReplaceAll(p, w, ""), true
		}
		t, l := countTelling(p)
		telling, little = telling+t, little+l
	}
	switch {
	case telling > 0 || !empty && little > 1:
	case kind == "" || little == 0 && !empty:
		return nil
	case empty:
		a.also = kind
	}
	return a
}

// placesIn marks the places of the answer, and behind somebody close, by line breaks.
func placesIn(said string) string {
	said = asksFor.ReplaceAllString(strings.TrimPrefix(said, "的"), "\n")
	for _, person := range closePeople() {
		if rest, ok := strings.CutPrefix(said, person); ok && isDenseTerm(person) {
			return person + "\n" + rest
		}
	}
	return said
}

// countTelling counts the characters of a text that tell something, and those that mean little.
func countTelling(text string) (telling, little int) {
	for _, r := range text {
		switch {
		case strings.ContainsRune(functionCharacters(), r):
		case strings.ContainsRune(littleCharacters(), r):
			little++
		default:
			telling++
		}
	}
	return telling, little
}

// emptied returns the words without content in a text.
func emptied(text string) (words []string) {
	for at := range text {
		if n := beginsWith(text[at:], emptyWords()); n > 0 {
			words = append(words, text[at:at+n])
		}
	}
	return words
}

// Terms are words that find lines with the statement, and which the question does not have as terms: its single
// characters.
func (a *Asked) Terms() (terms []index.Term) {
	for _, p := range a.pieces {
		if utf8.RuneCountInString(p) == 1 {
			terms = append(terms, index.Term{Text: p, Weight: weakTerm, Extra: true})
		}
	}
	return terms
}

// MadeIn reports whether somebody makes the statement in a text.
func (a *Asked) MadeIn(text string) bool {
	if a.or != nil && a.or.MadeIn(text) {
		return true
	}
	for _, s := range SentencesOf(Contracted(Plain(text))) {
		if IsQuestion(s) || supposed.MatchString(s) {
			continue
		}
		if a.words != nil && a.saidIn(plainWords(s)) || a.pieces != nil && a.piecedIn(s) {
			return true
		}
	}
	return false
}

// saidIn looks for the words of the statement in their order, behind the one who makes it.
func (a *Asked) saidIn(words []string) bool {
	who := makesIt()
	if a.things {
		who = ownsIt()
	}
	if a.also != "" && !slices.ContainsFunc(words, func(w string) bool { return index.Stem(w) == a.also }) {
		return false
	}
	for i := range words {
		for _, w := range who {
			if own := plainWords(w); len(own) > 0 && len(own) <= len(words)-i && slices.Equal(own, words[i:i+len(own)]) && a.follow(words[i+len(own):]) {
				return true
			}
		}
	}
	return false
}

func (a *Asked) follow(words []string) bool {
	most := mostBeforeVerb
	for _, want := range a.words {
		at := slices.IndexFunc(words[:min(len(words), most+1)], func(w string) bool { return index.Stem(w) == want })
		if at < 0 {
			return false
		}
		words, most = words[at+1:], mostInStatement
		if a.things {
			most = 0
		}
	}
	return !a.is || len(words) > 0 && isWords()[words[0]]
}

// piecedIn is saidIn for a sentence without spaces.
func (a *Asked) piecedIn(s string) bool {
	if !strings.Contains(s, a.also) {
		return false
	}
	for at := range s {
		for _, who := range makesIt() {
			rest, ok := strings.CutPrefix(s[at:], who)
			if !ok || !isDenseTerm(who) {
				continue
			}
			first := strings.Index(rest, a.pieces[0])
			if first < 0 || utf8.RuneCountInString(rest[:first]) > mostBeforePiece {
				continue
			}
			for _, p := range a.pieces {
				i := strings.Index(rest, p)
				if i < 0 {
					ok = false
					break
				}
				rest = rest[i+len(p):]
			}
			if ok {
				return true
			}
		}
	}
	return false
}
