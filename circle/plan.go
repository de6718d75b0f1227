package circle

import (
	"time"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/op"
	"nodest/memory"
)

const (
	sharedMemories = 20 // the newest ones that a plan chooses from
	digestMembers  = 6  // members that a digest tells of at most
)

// planOf returns what a character means to tell on a day, and makes it if there is no plan
// yet: from its card, memories that the user marked as shareable, and the date.
func (svc *Service) planOf(tx Tx, docs *character.Documents, d today) (*Plan, error) {
	p, err := tx.Plan(docs.CharacterID, d.day)
	if err != nil || p != nil {
		return p, err
	}
	shared, err := memory.Shareable(tx.Memory, docs.CharacterID, sharedMemories)
	if err != nil {
		return nil, err
	}
	memories := make([]rules.Memory, len(shared))
	for i, m := range shared {
		memories[i] = rules.Memory{ID: m.ID, Text: m.Text}
	}
	texts := []string{public(docs.Card.Description), public(docs.Card.Personality)}
	p = &Plan{CharacterID: docs.CharacterID, Day: d.day}
	for _, i := range rules.PlanItems(rules.Seed(docs.CharacterID, d.day, "plan"), docs.Language, texts, memories, d.now) {
		p.Items = append(p.Items, PlanItem{ID: op.NewID(), Text: i.Text, Source: i.Source, Ref: i.Ref})
	}
	return p, tx.PutPlan(p)
}

// readDigest lets w tell what it and others planned for the days before, when the circle
// slept.
func (svc *Service) readDigest(tx Tx, w *telling, members []*character.Character) error {
	set, err := tx.Characters.Settings()
	if err != nil {
		return err
	}
	words := wordsOf(w.docs.Language)
	first := int(rules.Seed(w.turn.ID) % uint64(len(members)))
	for i := range min(len(members), digestMembers) {
		ch := members[(first+i)%len(members)]
		docs, err := svc.documentsOf(tx, set, ch.ID)
		if err != nil {
			return err
		}
		ago := 1 + i%w.state.Settings.SleepAfter // the user was away for as long at least
		then := w.today
		then.now = w.now.AddDate(0, 0, -ago)
		then.day = then.now.Format(time.DateOnly)
		p, err := svc.planOf(tx, docs, then)
		if err != nil {
			return err
		}
		for _, item := range nextItems(p, w.turn.ID) {
			if ch.ID != w.ch.ID {
				item.Text = ch.Name + ": " + item.Text
			}
			item.Text = words.age(w.now.Sub(then.now)) + ": " + item.Text
			w.items = append(w.items, item)
		}
	}
	return nil
}
