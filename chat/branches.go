package chat

import (
	"context"

	"nodest/op"
)

// Branches lists the ends of a conversation's branches, the newest (by seq) first;
// limit is 1 to 200, 0 = 50. Where the head has messages below it, none of them is
// the shown one.
func (svc *Service) Branches(ctx context.Context, userID, conversationID, cursor string, limit int) (*op.Page[*Branch], error) {
	limit, err := op.CheckLimit(limit)
	if err != nil {
		return nil, err
	}
	page := &op.Page[*Branch]{}
	err = svc.store.View(ctx, userID, func(tx Tx) error {
		conv, err := tx.Conversation(conversationID)
		if err != nil {
			return err
		}
		var tips []*Message
		if tips, page.NextCursor, err = tx.Tips(conv.ID, cursor, limit); err != nil {
			return err
		}
		page.Items = make([]*Branch, len(tips))
		for i, m := range tips {
			n, err := tx.Count(conv.ID, m.ID)
			if err != nil {
				return err
			}
			page.Items[i] = &Branch{Head: m, Shown: m.ID == conv.HeadID, MessageCount: n}
		}
		return nil
	})
	return page, err
}

type wireBranch struct {
	Head         wireMessage `json:"head"`
	Shown        bool        `json:"shown"`
	MessageCount int         `json:"messageCount"`
}

// WireBranch is b as clients see it.
func WireBranch(b *Branch) any { return wireBranch{messageOf(b.Head), b.Shown, b.MessageCount} }
