package nodest

import (
	"context"

	"nodest/fault"
)

// Message returns a message with its swipes; NotFound for a deleted one.
func (e *Engine) Message(ctx context.Context, userID, id string) (*Message, error) {
	var m *Message
	err := e.store.View(ctx, userID, func(tx Tx) (err error) {
		m, err = liveMessage(tx, id)
		return err
	})
	return m, err
}

// Edit gives the chosen swipe of a message another text, as a new revision; the
// old one stays readable. A reply that failed without a text gets its first
// swipe.
//
// Errors: TooLarge, Invalid; Conflict with details.current when IfRev is not 0
// and not the message's rev; Busy while the message is being written.
func (e *Engine) Edit(ctx context.Context, c *Call, in EditInput) (*Changed, error) {
	if err := checkText("text", in.Text, e.opts.TextLimit); err != nil {
		return nil, err
	}
	return once(ctx, e, c, func(tx Tx) (*Changed, error) {
		conv, m, err := changeable(tx, in.MessageID, in.IfRev)
		if err != nil {
			return nil, err
		}
		if s := m.Chosen(); s != nil && !s.Deleted {
			s.Text, s.RevisionID = in.Text, newID()
			s.Rev++
		} else {
			m.Swipes = append(m.Swipes, newSwipe(in.Text, tx.Now()))
			m.SwipeIndex = len(m.Swipes) - 1
			m.Status, m.Error = StatusComplete, nil
		}
		now := tx.Now()
		m.EditedAt = &now
		return &Changed{Message: m}, updateMessage(tx, c, conv, m)
	})
}

// changeable returns a message that may be changed now, and its conversation.
func changeable(tx Tx, id string, ifRev int64) (*Conversation, *Message, error) {
	conv, m, err := lockMessage(tx, id)
	if err != nil {
		return nil, nil, err
	}
	if m.DeletedAt != nil {
		return nil, nil, fault.New(fault.NotFound, "message %q is deleted", id)
	}
	if ifRev != 0 && ifRev != m.Rev {
		return nil, nil, fault.New(fault.Conflict, "the message is at rev %d, not %d", m.Rev, ifRev).With("current", WireMessage(m))
	}
	return conv, m, checkIdle(tx, conv.ID, func(writing string) bool { return writing == m.ID })
}

// updateMessage stores m at its next rev, and its conversation at its next
// version, and tells of the message.
func updateMessage(tx Tx, c *Call, conv *Conversation, m *Message) error {
	m.Rev++
	if err := tx.UpdateMessage(m); err != nil {
		return err
	}
	if conv.HeadID == m.ID {
		conv.LastMessage = preview(m)
	}
	conv.Version++
	if err := tx.UpdateConversation(conv); err != nil {
		return err
	}
	return tx.Emit(messageEvent(c.UserID, "message.updated", c.by(), m))
}
