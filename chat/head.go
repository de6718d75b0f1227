package chat

import (
	"cmp"
	"context"

	"nodest/chat/lineage"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// ChooseHead shows the branch that ends in a message. A branch that was left by a restore
// shows what it showed then. Persona, note, settings and documents stay as they are.
//
// Errors: NotFound; Busy while a reply is being written there.
func (svc *Service) ChooseHead(ctx context.Context, c *op.Call, conversationID, messageID string) (*Conversation, error) {
	return svc.chooseHead(ctx, c, conversationID, func(tx Tx, conv *Conversation) (*Message, error) {
		return liveMessageIn(tx, conv.ID, messageID)
	})
}

// ShowMessage shows a branch that has a message: the shown one if it has it, else the
// newest, to its end. It is like ChooseHead otherwise.
func (svc *Service) ShowMessage(ctx context.Context, c *op.Call, conversationID, messageID string) (*Conversation, error) {
	return svc.chooseHead(ctx, c, conversationID, func(tx Tx, conv *Conversation) (*Message, error) {
		m, err := liveMessageIn(tx, conv.ID, messageID)
		if err != nil {
			return nil, err
		}
		on, err := tx.OnPath(conv.ID, conv.HeadID, []string{m.ID})
		if err != nil {
			return nil, err
		}
		id := conv.HeadID
		if len(on) == 0 {
			if id, err = tx.Leaf(conv.ID, m.ID); err != nil {
				return nil, err
			}
		}
		return tx.Message(id)
	})
}

// chooseHead makes the message that find returns the last shown one.
func (svc *Service) chooseHead(ctx context.Context, c *op.Call, conversationID string, find func(Tx, *Conversation) (*Message, error)) (*Conversation, error) {
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Conversation, error) {
		conv, err := tx.LockConversation(conversationID)
		if err != nil {
			return nil, err
		}
		m, err := find(tx, conv)
		if err != nil {
			return nil, err
		}
		if err := CheckIdle(tx, conv.ID, AnyMessage); err != nil {
			return nil, err
		}
		if conv.HeadID == m.ID {
			return conv, nil
		}
		if m, err = returnToBranch(tx, c, conv, m); err != nil {
			return nil, err
		}
		conv.HeadID, conv.LastMessage = m.ID, m.Preview()
		if err := cmp.Or(ChooseSummary(tx, conv), ChoosePlay(tx, conv)); err != nil {
			return nil, err
		}
		return conv, updateConversation(tx, c, conv)
	})
}

// returnToBranch undoes the rewind, if any, that left the branch of a message, and
// returns the message as it is then.
func returnToBranch(tx Tx, c *op.Call, conv *Conversation, m *Message) (*Message, error) {
	rewinds, err := tx.Rewinds(conv.ID)
	if err != nil || len(rewinds) == 0 {
		return m, err
	}
	born, err := tx.Born(m.ID)
	if err != nil {
		return nil, err
	}
	version, left := lineage.LeftAt(born, conv.Version, rewinds)
	if !left {
		return m, nil
	}
	if err := rewindTo(tx, c, conv, version, m.ID); err != nil {
		return nil, err
	}
	if m, err = tx.Message(m.ID); err != nil || m.DeletedAt == nil {
		return m, err
	}
	// It was deleted at that version and restored later.
	m.DeletedAt = nil
	m.Rev++
	if err := tx.UpdateMessage(m); err != nil {
		return nil, err
	}
	return m, tx.Emit(restoredEvent(c, []*Message{m}))
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
	m, err = tx.Message(id) // again: it may have changed before the lock was taken
	return conv, m, err
}

// LockIdle locks a conversation in which nothing is being written.
func LockIdle(tx Tx, id string) (*Conversation, error) {
	conv, err := tx.LockConversation(id)
	if err != nil {
		return nil, err
	}
	return conv, CheckIdle(tx, conv.ID, AnyMessage)
}

// CheckIdle returns Busy while a generation writes a message that affected accepts.
func CheckIdle(tx Tx, conversationID string, affected func(messageID string) bool) error {
	running, err := tx.Running(conversationID)
	if err != nil {
		return err
	}
	for _, g := range running {
		if affected(g.MessageID) {
			return Busy(g)
		}
	}
	return nil
}

// RunningFor returns the running generations in conversations of a character.
func RunningFor(tx Tx, characterID string) ([]*Generation, error) {
	running, err := tx.Running("")
	if err != nil {
		return nil, err
	}
	var of []*Generation
	for _, g := range running {
		conv, err := tx.Conversation(g.ConversationID)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if conv.CharacterID == characterID {
			of = append(of, g)
		}
	}
	return of, nil
}

// Busy is the error for an operation that has to wait for the end of g.
func Busy(g *Generation) error {
	return fault.New(fault.Busy, "a reply is being written in this conversation").With("generationId", g.ID)
}

// messageIn reads a message, deleted or not, of a conversation. Its error names the
// field.
func messageIn(tx Tx, conversationID, id, field string) (*Message, error) {
	m, err := tx.Message(id)
	if err == nil && m.ConversationID != conversationID {
		err = fault.New(fault.NotFound, "no message %q in this conversation", id)
	}
	if err != nil {
		return nil, op.InField(field, err)
	}
	return m, nil
}

// liveMessageIn reads the message of a conversation that a request names as messageId.
func liveMessageIn(tx Tx, conversationID, id string) (*Message, error) {
	m, err := messageIn(tx, conversationID, id, "messageId")
	if err == nil && m.DeletedAt != nil {
		return nil, op.InField("messageId", fault.New(fault.NotFound, "no message %q", id))
	}
	return m, err
}

// LiveMessage reads a message that is not deleted.
func LiveMessage(tx Tx, id string) (*Message, error) {
	m, err := tx.Message(id)
	if err != nil {
		return nil, err
	}
	if m.DeletedAt != nil {
		return nil, fault.New(fault.NotFound, "no message %q", id)
	}
	return m, nil
}
