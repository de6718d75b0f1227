package nodest

import (
	"context"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Edit is EditText that also runs the regex scripts for edits over the text, in the SillyTavern dialect, and answers
// a user's message again if Regenerate says so, in the same transaction. In place, that regenerates its reply (the
// shown one, else the newest), or writes a first one where it has none; a branch gets a reply of its own.
// Message is the user's message, Reply the one being written.
//
// Errors: those of EditText. With Regenerate also those of Send, and Invalid for a
// message that no user wrote.
func (e *Engine) Edit(ctx context.Context, c *op.Call, in chat.EditInput) (*chat.Changed, error) {
	if in.Regenerate {
		return e.editAndAnswer(ctx, c, in)
	}
	if in.Check() == nil {
		var err error
		if in.Text, err = e.edited(ctx, c.UserID, in); err != nil {
			return nil, err
		}
	}
	return e.Chats.EditText(ctx, c, in)
}

// edited is the text of an edit as it is stored. It stays as it was sent if the documents of the chat cannot be read:
// a message can be edited all the same, and EditText reports one that does not exist.
func (e *Engine) edited(ctx context.Context, userID string, in chat.EditInput) (string, error) {
	s, err := e.loadSetup(ctx, userID, query{messageID: in.MessageID, edited: in.Text})
	switch {
	case fault.Is(err, fault.StorageDown), fault.Is(err, fault.StorageBusy), ctx.Err() != nil:
		return "", err
	case err != nil:
		return in.Text, nil //nolint:nilerr // EditText reports what is wrong
	}
	return s.typed, nil
}

func (e *Engine) editAndAnswer(ctx context.Context, c *op.Call, in chat.EditInput) (*chat.Changed, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	q := query{messageID: in.MessageID, edited: in.Text, model: true}
	return play(ctx, e, c, q, func(tx Tx, s *turnSetup) (*chat.Changed, *assignment, error) {
		conv, m, err := chat.LockForEdit(tx.Chats, in.MessageID, in.IfRev)
		if err != nil {
			return nil, nil, err
		}
		if m.Role != chat.RoleUser {
			return nil, nil, fault.InvalidField("regenerate", "role", "only a user's message can be answered again")
		}
		var old *chat.Message // reply
		var ch chat.Change
		if in.Mode == chat.EditBranch {
			m = chat.SiblingOf(m, s.typed, tx.Now())
			ch.Created = []*chat.Message{m}
		} else {
			chat.Reword(m, s.typed, tx.Now())
			ch.Updated = m
			if old, err = chat.ReplyTo(tx.Chats, conv, m); err != nil {
				return nil, nil, err
			}
		}
		var reply *chat.Message
		var as *assignment
		if old != nil {
			reply, as, err = e.regenerate(tx, c, s, conv, old, GenerateInput{}, &ch)
		} else {
			reply, as, err = e.answer(tx, c, s, conv, m, "", &ch)
		}
		if err != nil {
			return nil, nil, err
		}
		if err := ch.Apply(tx.Chats, c, conv); err != nil {
			return nil, nil, err
		}
		return &chat.Changed{Message: m, Reply: reply, GenerationID: as.gen.ID}, as, nil
	})
}

// Swipe is ChooseSwipe where "next" on the last text of a reply regenerates it if
// GenerateIfLast says so.
//
// Errors: those of ChooseSwipe and of Regenerate.
func (e *Engine) Swipe(ctx context.Context, c *op.Call, in chat.SwipeInput) (*chat.Changed, error) {
	another, err := e.wantsAnother(ctx, c, in)
	if err != nil {
		return nil, err
	}
	if another {
		return e.Regenerate(ctx, c, GenerateInput{MessageID: in.MessageID})
	}
	return e.Chats.ChooseSwipe(ctx, c, in)
}

// wantsAnother reports whether a swipe goes beyond the last text of a reply and asks
// for a new one. It is false for a repeated call, which gets its first answer.
func (e *Engine) wantsAnother(ctx context.Context, c *op.Call, in chat.SwipeInput) (bool, error) {
	if in.Swipe != "next" || !in.GenerateIfLast {
		return false, nil
	}
	return op.Read(ctx, e.store, c.UserID, func(tx Tx) (bool, error) {
		if c.Key != "" {
			known, err := tx.Key(c.Key)
			if err != nil || known != nil {
				return false, err
			}
		}
		m, err := tx.Chats.Message(in.MessageID)
		if err != nil || in.IfRev != 0 && in.IfRev != m.Rev { // ChooseSwipe reports the conflict
			return false, err
		}
		to, err := chat.SwipeTarget(m, "next")
		return m.DeletedAt == nil && m.Role == chat.RoleAssistant && !m.Greeting && to == m.SwipeIndex, err
	})
}
