package lang

import (
	"time"

	"nodest/internal/index"
)

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
	known := map[string]bool{}
	for _, t := range q.Terms {
		known[t.Text] = true
	}
	share := float32(1)
	for _, text := range before {
		share *= sceneShare
		found := ReadQuery(text, people, now)
		for _, t := range found.Terms {
			if known[t.Text] || !Tells(t) {
				continue
			}
			known[t.Text] = true
			q.Told += t.Evidence * share
			q.Terms = append(q.Terms, index.Term{Text: t.Text, Weight: t.Weight * share, Evidence: t.Evidence * share, Extra: true})
		}
	}
}
