package memory

import (
	"context"

	"nodest/op"
)

// Listed is a memory in a list.
type Listed struct {
	Memory
	Shown bool `json:"shown"` // it counts where the conversations stand now (Counting)
}

// List lists facts, newest first; limit is 1 to 200, 0 = 50.
func (s *Service) List(ctx context.Context, userID, characterID string, f Filter, cursor string, limit int) (items []Listed, next string, err error) {
	if limit, err = op.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	err = s.store.View(ctx, userID, func(tx Tx) error {
		if err := tx.TalkedIn(characterID, f.ConversationID); err != nil {
			return err
		}
		facts, more, err := tx.Facts(characterID, f, cursor, limit)
		if err != nil {
			return err
		}
		shown, err := counting(tx, characterID, facts)
		if err != nil {
			return err
		}
		items, next = make([]Listed, len(facts)), more
		for i := range facts {
			items[i] = Listed{facts[i], shown[i]}
		}
		return nil
	})
	return items, next, err
}
