package nodest

import (
	"context"

	"nodest/fault"
	"nodest/memory"
	"nodest/op"
)

// ListedMemory is a memory in a list.
type ListedMemory struct {
	memory.Memory
	Shown bool `json:"shown"` // it counts where the conversations stand now (memory.Counting)
}

// Memories lists facts, newest first; limit is 1 to 200, 0 = 50.
func (e *Engine) Memories(ctx context.Context, userID, characterID string, f memory.Filter, cursor string, limit int) (items []ListedMemory, next string, err error) {
	if limit, err = op.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	err = e.store.View(ctx, userID, func(tx Tx) error {
		if err := talkedIn(tx, characterID, f.ConversationID); err != nil {
			return err
		}
		facts, more, err := tx.Memory.Facts(characterID, f, cursor, limit)
		if err != nil {
			return err
		}
		shown, err := memory.Counting(tx.Memory, characterID, facts)
		if err != nil {
			return err
		}
		items, next = make([]ListedMemory, len(facts)), more
		for i := range facts {
			items[i] = ListedMemory{facts[i], shown[i]}
		}
		return nil
	})
	return items, next, err
}

// talkedIn returns NotFound when a conversation ("" = none) is not one of the user
// with this character.
func talkedIn(tx Tx, characterID, conversationID string) error {
	if conversationID == "" {
		return nil
	}
	conv, err := tx.Conversation(conversationID)
	if err == nil && conv.CharacterID != characterID {
		err = fault.New(fault.NotFound, "no conversation %q with this character", conversationID)
	}
	return err
}
