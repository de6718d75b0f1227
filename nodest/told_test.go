package nodest

import (
	"context"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest/admission"
)

// told is a history that comes with the request.
type told []*chat.Message

func (h told) read(context.Context, int) (*past, error) { return &past{messages: h}, nil }

func (h told) shorten(context.Context, int) (bool, error) { return false, nil }

// ReplyTo accepts a reply to messages that are not stored, as a character of a conversation that it leaves as it is.
func (e *Engine) ReplyTo(ctx context.Context, c *op.Call, conversationID string, said []*chat.Message) (generationID string, err error) {
	q := query{conversationID: conversationID, model: true}
	return play(ctx, e, c, q, func(tx Tx, s *turnSetup) (string, *assignment, error) {
		conv, err := tx.Chats.LockConversation(conversationID)
		if err != nil {
			return "", nil, err
		}
		g := &chat.Generation{ID: op.NewID(), Kind: chat.KindReply}
		as, err := e.assign(tx, c, s, conv, nil, admission.Fail, g)
		if err != nil {
			return "", nil, err
		}
		as.history = told(said)
		return g.ID, as, nil
	})
}
