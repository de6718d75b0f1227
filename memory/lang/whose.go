package lang

import (
	"slices"
	"strings"
	"unicode"

	"nodest/internal/index"
)

// whose says whose thing a word of a text is, as far as the words before it tell.
type whose uint8

const (
	nobodys    whose = 1 << iota // no word tells
	ofOneself                    // "my son", 我儿子
	addressees                   // "your son", 你儿子
	others                       // "her son", 她儿子
)

var ofSpeaker = data.Words("my")

// owners are the words that tell whose thing it is.
var owners = []struct {
	words func() []string
	owner whose
}{{ofSpeaker, ofOneself}, {data.Words("your"), addressees}, {data.Words("their"), others}}

// mostBetween is how many words stand between "my" and the thing, at most: "my old red bike".
const mostBetween = 2

// OwnThings returns the things in a question that are the speaker's, by their terms: of "what is the name of my
// son?" son. A question about "my first car" asks for both words, of which the answer needs one.
func (q *Question) OwnThings(text string) (things []string) {
	folded := Plain(text)
	words := plainWords(folded)
	for i, w := range words {
		if !slices.Contains(ofSpeaker(), w) {
			continue
		}
		things = append(things, q.thingsIn(words[i+1:])...)
	}
	for at, r := range folded {
		if !isDense(r) {
			continue
		}
		for _, mine := range ofSpeaker() {
			if rest, ok := strings.CutPrefix(folded[at:], mine); ok && isDenseTerm(mine) {
				if pair := firstRunes(rest, 2); pair != "" && denseWeight(pair) == 1 && q.Proof(pair) >= ProvesLittle {
					things = append(things, pair)
				}
			}
		}
	}
	return things
}

// thingsIn returns the things that words behind "my" begin with; of "my neighbour's dog" the dog, and of "my son's
// name", where the last word says nothing, the son.
func (q *Question) thingsIn(words []string) (things []string) {
	owners, most := []string(nil), mostBetween
	for i := 0; i < min(len(words), most); i++ {
		t := index.Stem(words[i])
		switch {
		case words[i] == "s":
			owners, things, most = things, nil, i+1+mostBetween
		case q.Proof(t) >= ProvesLittle:
			things = append(things, t)
		}
	}
	if things == nil {
		return owners
	}
	return things
}

var (
	asksOfThing = data.List("asks-of-thing")
	otherKin    = data.Words("other-kin")
)

// Heads are the terms of the thing that a question is about, of which a line that answers it has one: of "What did I
// say about the piano lessons?" lesson, and the things of the one who asks.
func (q *Question) Heads(text string) []string {
	folded := Contracted(Plain(text))
	for _, e := range asksOfThing() {
		at := e.FindStringSubmatch(folded)
		if at == nil {
			continue
		}
		head := at[e.SubexpIndex("head")]
		if isDenseTerm(head) {
			runes := []rune(head)
			return []string{string(runes[max(0, len(runes)-2):])}
		}
		if words := plainWords(head); len(words) > 0 {
			if t := index.Stem(words[len(words)-1]); q.Proof(t) >= ProvesLittle && q.Own(t) {
				return []string{t}
			}
		}
	}
	return slices.DeleteFunc(q.OwnThings(text), isDenseTerm)
}

// stressOwn makes common words count of a question about a thing of the one who asks: "Who's my boss?", "How's my
// shoulder?" Small talk has most of them in other ways.
func (q *Question) stressOwn(folded string) {
	own := map[string]bool{}
	words := plainWords(folded)
	for i, w := range words {
		if i+1 < len(words) && slices.Contains(ofSpeaker(), w) {
			own[index.Stem(words[i+1])] = true
		}
	}
	for at, r := range folded {
		for _, mine := range ofSpeaker() {
			if rest, ok := strings.CutPrefix(folded[at:], mine); ok && isDense(r) {
				own[firstRunes(rest, 2)] = true
			}
		}
	}
	for i := range q.Terms {
		if t := &q.Terms[i]; own[t.Text] && !t.Extra && t.Evidence < ProvesLittle && !q.tongues.report(t.Text) && !isFunction(t.Text) {
			t.Weight, t.Evidence = 1, 1
		}
	}
}

// isFunction reports whether a pair of characters has a character that means little.
func isFunction(t string) bool { return isDenseTerm(t) && denseWeight(t) < 1 }

// BelongElsewhere reports whether a line that somebody said has one of the user's things, and has it only as the
// thing of somebody else: the user says "your son", or the character "my son".
func BelongElsewhere(text string, by Role, things []string) bool {
	if len(things) == 0 {
		return false
	}
	var found whose
	folded := Plain(text)
	words := plainWords(folded)
	for i, w := range words {
		if slices.Contains(things, index.Stem(w)) {
			found |= ownerOf(words[max(0, i-mostBetween):i])
		}
	}
	for _, thing := range things {
		for at := 0; isDenseTerm(thing); {
			i := strings.Index(folded[at:], thing)
			if i < 0 {
				break
			}
			if before := folded[:at+i]; slices.ContainsFunc(otherKin(), func(of string) bool { return strings.HasSuffix(before, of) }) {
				found |= others
			} else {
				found |= denseOwner(before)
			}
			at += i + len(thing)
		}
	}
	users := ofOneself
	if by == RoleCharacter {
		users = addressees
	}
	return found != 0 && found&(users|nobodys) == 0
}

// ownerOf reads the words before a thing, the nearest first.
func ownerOf(before []string) whose {
	for _, w := range slices.Backward(before) {
		if owner := ownerBy(func(own string) bool { return own == w }); owner != nobodys {
			return owner
		}
	}
	return nobodys
}

// denseOwner is ownerOf for scripts without spaces, where the owner stands right before the thing.
func denseOwner(before string) whose {
	return ownerBy(func(own string) bool { return isDenseTerm(own) && strings.HasSuffix(before, own) })
}

// ownerBy returns whom the first word means that is one.
func ownerBy(is func(own string) bool) whose {
	for _, of := range owners {
		if slices.ContainsFunc(of.words(), is) {
			return of.owner
		}
	}
	return nobodys
}

func plainWords(folded string) []string {
	return strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) || isDense(r) })
}

// firstRunes is how a text begins, "" if it is shorter.
func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	if n == 0 {
		return text
	}
	return ""
}
