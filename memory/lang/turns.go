package lang

import (
	"time"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
)

// How the words of the turn before count in a question that refers to it.
const (
	referredWeight   = 0.5
	referredEvidence = 0.6
)

// Refer adds what the turn before is about; before are its texts, the user's first. These terms
// are optional, unless the question has none of its own.
func (q *Question) Refer(before []string, people Names, now time.Time) {
	if !q.Refers {
		return
	}
	known := q.known()
	alone := q.asked() < LeastAsked
	for i, text := range before {
		found := ReadQuery(text, people, now)
		if i == 0 && q.Sought == SeekAny {
			q.Sought = found.Sought
		}
		if i == 0 && alone {
			q.Properties |= found.Properties
		}
		told := found.tells(known)
		for _, t := range told {
			proof := t.Evidence * referredEvidence
			if first, _ := utf8.DecodeRuneInString(t.Text); unicode.Is(unicode.Han, first) {
				proof /= 1 - 2*partWeight // its characters are not taken along
			}
			q.Terms = append(q.Terms, index.Term{Text: t.Text, Weight: t.Weight * referredWeight, Evidence: proof, Extra: !alone || t.Extra})
		}
		alone = alone && len(told) == 0
	}
}

// known are the terms of a question.
func (q *Question) known() map[string]bool {
	known := map[string]bool{}
	for _, t := range q.Terms {
		known[t.Text] = true
	}
	return known
}

// tells returns the terms that say what a question is about, without those in known, and adds them there.
func (q *Question) tells(known map[string]bool) (terms []index.Term) {
	for _, t := range q.Terms {
		if !known[t.Text] && Tells(t) {
			known[t.Text] = true
			terms = append(terms, t)
		}
	}
	return terms
}

// sceneShare is how much the words of a turn count compared with those of the turn after it.
const sceneShare = 0.5

// AddTurns adds what the user told in the last turns, whose texts are before, the newest first: a message is
// part of a scene, and a memory may belong to what is told in several turns. The further back, the less words
// count, and they are optional. A short question means itself alone, and small talk nothing.
//
//	"I lost my keys" after "I moved in with Ann": + her spare key, - Ann's birthday
//	"He bites." after "The neighbours have a new dog.": + the day a dog bit me
//	"It starts at nine." after "The exam is tomorrow.": + nervous before the last exam
//	"We leave on Friday." after "I found my old tent.": + the tent was flooded
//	"The doctor was kind." after "My knee hurts again.": + the knee was operated on
//	"Red suits me." after "I need a dress for the wedding.": + whose wedding it is
//	"他咬人。" after "邻居养了只狗。": + 我小时候被狗咬过
//	"明天九点开始。" after "要考驾照了。": + 上次考驾照很紧张
//	"What is my dog called?" after anything: nothing more
//	"haha, stop it" after anything: nothing
func (q *Question) AddTurns(before []string, people Names, now time.Time) {
	if q.Silent() || q.Keywords || q.Refers || q.Asks && q.asked() <= mostOfReference {
		return
	}
	known, share := q.known(), float32(1)
	for _, text := range before {
		share *= sceneShare
		found := ReadQuery(text, people, now)
		for _, t := range found.tells(known) {
			q.Told += t.Evidence * share
			q.Terms = append(q.Terms, index.Term{Text: t.Text, Weight: t.Weight * share, Evidence: t.Evidence * share, Extra: true})
		}
	}
}
