package nodest

import (
	"context"

	"nodest/fault"
)

// ChooseHead shows the branch that ends in a message of the conversation.
//
// Errors: NotFound; Busy while a reply is being written there.
func (e *Engine) ChooseHead(ctx context.Context, c *Call, conversationID, messageID string) (*Conversation, error) {
	return once(ctx, e, c, func(tx Tx) (*Conversation, error) {
		conv, err := tx.LockConversation(conversationID)
		if err != nil {
			return nil, err
		}
		m, err := liveMessage(tx, messageID)
		if err == nil && m.ConversationID != conv.ID {
			err = fault.New(fault.NotFound, "no message %q in this conversation", messageID)
		}
		if err != nil {
			return nil, inField("messageId", err)
		}
		running, err := tx.Running(conv.ID)
		if err != nil {
			return nil, err
		}
		if len(running) > 0 {
			return nil, busy(running[0])
		}
		if conv.HeadID == m.ID {
			return conv, nil
		}
		conv.HeadID, conv.LastMessage = m.ID, preview(m)
		return conv, updateConversation(tx, c, conv)
	})
}

// lockMessage returns a message, deleted or not, and its conversation, which
// stays as it is until the transaction ends.
func lockMessage(tx Tx, id string) (*Conversation, *Message, error) {
	m, err := tx.Message(id)
	if err != nil {
		return nil, nil, err
	}
	conv, err := tx.LockConversation(m.ConversationID)
	if err != nil {
		return nil, nil, err
	}
	m, err = tx.Message(id) // again: it may have changed until the lock was ours
	return conv, m, err
}

// checkIdle is Busy while a generation writes one of the messages that affected
// picks.
func checkIdle(tx Tx, conversationID string, affected func(messageID string) bool) error {
	running, err := tx.Running(conversationID)
	if err != nil {
		return err
	}
	for _, g := range running {
		if affected(g.MessageID) {
			return busy(g)
		}
	}
	return nil
}

// busy says that g is being written.
func busy(g *Generation) error {
	return fault.New(fault.Busy, "a reply is being written in this conversation").With("generationId", g.ID)
}
