package chat

import (
	"context"

	"nodest/internal/op"
)

// Branches lists the ends of a conversation's branches, the newest (by seq) first;
// limit is 1 to 200, 0 = 50. Where the head has messages below it, none of them is
// the shown one.
func (svc *Service) Branches(ctx context.Context, userID, conversationID, cursor string, limit int) (*op.Page[*Branch], error) {
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Branch, string, error) {
		conv, err := tx.Conversation(conversationID)
		if err != nil {
			return nil, "", err
		}
		tips, next, err := tx.Tips(conv.ID, cursor, limit)
		branches := make([]*Branch, len(tips))
		for i, m := range tips {
			branches[i] = &Branch{Head: m, Shown: m.ID == conv.HeadID}
			if branches[i].MessageCount, err = tx.Count(conv.ID, m.ID); err != nil {
				return nil, "", err
			}
		}
		return branches, next, err
	})
}

type wireBranch struct {
	Head         wireMessage `json:"head"`
	Shown        bool        `json:"shown"`
	MessageCount int         `json:"messageCount"`
}

// WireBranch is b as clients see it.
func WireBranch(b *Branch) any { return wireBranch{messageOf(b.Head), b.Shown, b.MessageCount} }
