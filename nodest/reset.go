package nodest

import (
	"context"

	"nodest/op"
)

// Reset begins a conversation anew: a fresh greeting of the card becomes the end
// of the shown branch. What was said until now stays as a branch.
//
// Errors: NotFound; Busy while a reply is being written there.
func (e *Engine) Reset(ctx context.Context, c *op.Call, conversationID string) (*Conversation, error) {
	return op.Once(ctx, e.store, c, func(tx Tx) (*Conversation, error) {
		chat, err := tx.LockConversation(conversationID)
		if err != nil {
			return nil, err
		}
		if err := checkIdle(tx, chat.ID, anyMessage); err != nil {
			return nil, err
		}
		first, err := greetingNow(tx, chat)
		if err != nil {
			return nil, err
		}
		return chat, change{created: []*Message{first}, head: first}.store(tx, c, chat)
	})
}
