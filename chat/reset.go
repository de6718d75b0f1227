package chat

import (
	"context"

	"nodest/internal/op"
)

// Reset restarts a conversation: a new greeting of the card becomes the head. The
// messages so far stay as a branch.
//
// Errors: NotFound; Busy while a reply is being written there.
func (svc *Service) Reset(ctx context.Context, c *op.Call, conversationID string) (*Conversation, error) {
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Conversation, error) {
		chat, err := LockIdle(tx, conversationID)
		if err != nil {
			return nil, err
		}
		first, err := FreshGreeting(tx, chat)
		if err != nil {
			return nil, err
		}
		return chat, Change{Created: []*Message{first}, Head: first}.Apply(tx, c, chat)
	})
}
