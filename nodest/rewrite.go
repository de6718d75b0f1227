package nodest

import (
	"context"

	"nodest/fault"
	"nodest/op"
)

// Edit is EditText that answers a user's message again if Regenerate says so, in the
// same transaction. In place that is a regenerate of its reply (the shown one, else
// the newest), or a first one where it has none; a branch gets a reply of its own.
// Message is what was said, Reply what is being written.
//
// Errors: those of EditText. With Regenerate also those of Send, and Invalid for a
// message that no user wrote.
func (e *Engine) Edit(ctx context.Context, c *op.Call, in EditInput) (*Changed, error) {
	if in.Regenerate {
		return e.editAndAnswer(ctx, c, in)
	}
	return e.EditText(ctx, c, in)
}

func (e *Engine) editAndAnswer(ctx context.Context, c *op.Call, in EditInput) (*Changed, error) {
	if err := in.check(e.opts.TextLimit); err != nil {
		return nil, err
	}
	q := query{messageID: in.MessageID, model: true}
	return begin(ctx, e, c, q, func(tx Tx, s *scene) (*Changed, *started, error) {
		chat, m, err := changeable(tx, in.MessageID, in.IfRev)
		if err != nil {
			return nil, nil, err
		}
		if m.Role != RoleUser {
			return nil, nil, fault.InvalidField("regenerate", "role", "only a user's message can be answered again")
		}
		var old *Message // reply
		var ch change
		if in.Mode == EditBranch {
			m = otherWords(m, in.Text, tx.Now())
			ch.created = []*Message{m}
		} else {
			reword(m, in.Text, tx.Now())
			ch.updated = m
			if old, err = replyTo(tx, chat, m); err != nil {
				return nil, nil, err
			}
		}
		var begun *started
		if old != nil {
			begun, err = e.regenerate(tx, c, s, old, GenerateInput{}, &ch)
		} else {
			begun, err = e.answer(tx, c, s, m, "", &ch)
		}
		if err != nil {
			return nil, nil, err
		}
		if err := ch.store(tx, c, chat); err != nil {
			return nil, nil, err
		}
		begun.order.version = chat.Version
		return &Changed{Message: m, Reply: begun.order.target, GenerationID: begun.gen.ID}, begun, tx.InsertGeneration(begun.gen)
	})
}

// Swipe is ChooseSwipe where "next" on the last text of a reply regenerates it if
// GenerateIfLast says so.
//
// Errors: those of ChooseSwipe and of Regenerate.
func (e *Engine) Swipe(ctx context.Context, c *op.Call, in SwipeInput) (*Changed, error) {
	another, err := e.wantsAnother(ctx, c, in)
	if err != nil {
		return nil, err
	}
	if another {
		return e.Regenerate(ctx, c, GenerateInput{MessageID: in.MessageID})
	}
	return e.ChooseSwipe(ctx, c, in)
}

// wantsAnother says whether a swipe goes beyond the last text of a reply and
// asks for a new one. A call that was answered before never does: it gets its
// first answer, whatever the message has become since.
func (e *Engine) wantsAnother(ctx context.Context, c *op.Call, in SwipeInput) (bool, error) {
	if in.Swipe != "next" || !in.GenerateIfLast {
		return false, nil
	}
	var another bool
	err := e.store.View(ctx, c.UserID, func(tx Tx) error {
		another = false
		if c.Key != "" {
			known, err := tx.Key(c.Key)
			if err != nil || known != nil {
				return err
			}
		}
		m, err := tx.Message(in.MessageID)
		if err != nil {
			return err
		}
		if in.IfRev != 0 && in.IfRev != m.Rev { // told by the change below
			return nil
		}
		to, err := swipeTarget(m, "next")
		another = m.DeletedAt == nil && m.Role == RoleAssistant && !m.Greeting && to == m.SwipeIndex
		return err
	})
	return another, err
}
