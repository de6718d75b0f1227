package chat

import (
	"cmp"

	"nodest/internal/op"
	"nodest/internal/stream"
)

// Change is a change of messages of a conversation, apart from deletion. It makes one
// version of the conversation.
type Change struct {
	Updated *Message   // nil = none
	Created []*Message // parents before their children
	Head    *Message   // one of created, which ends the shown branch now; nil = that stays
}

// Apply stores the change and emits its events. A new head that does not follow the
// old one has an event of its own: another branch is shown.
func (ch Change) Apply(tx Tx, c *op.Call, conv *Conversation) error {
	if ch.Updated == nil && len(ch.Created) == 0 {
		return nil
	}
	otherBranch := ch.Head != nil && ch.Created[0].ParentID != conv.HeadID
	if err := ch.storeMessages(tx, conv); err != nil {
		return err
	}
	if otherBranch {
		if err := cmp.Or(ChooseSummary(tx, conv), ChoosePlay(tx, conv)); err != nil {
			return err
		}
	}
	conv.Version++
	if err := tx.UpdateConversation(conv); err != nil {
		return err
	}
	var events []*stream.Event
	if ch.Updated != nil {
		if err := RepairSummary(tx, conv, ch.Updated); err != nil {
			return err
		}
		events = append(events, MessageEvent(c.UserID, "message.updated", c.By(), ch.Updated))
	}
	for _, m := range ch.Created {
		events = append(events, MessageEvent(c.UserID, "message.created", c.By(), m))
	}
	if otherBranch {
		events = append(events, ConversationEvent(c.UserID, "chat.updated", c.By(), conv))
	}
	return tx.Emit(events...)
}

// storeMessages stores the messages, and sets the head and last message of conv.
func (ch Change) storeMessages(tx Tx, conv *Conversation) error {
	if m := ch.Updated; m != nil {
		m.Rev++
		if err := tx.UpdateMessage(m); err != nil {
			return err
		}
		if m.ID == conv.HeadID {
			conv.LastMessage = m.Preview()
			if conv.PlayID != "" || hasPlay(m) {
				if err := ChoosePlay(tx, conv); err != nil {
					return err
				}
			}
		}
	}
	takeOver(conv, ch.Created)
	if err := tx.InsertMessage(ch.Created...); err != nil {
		return err
	}
	if ch.Head != nil {
		conv.HeadID, conv.LastMessage = ch.Head.ID, ch.Head.Preview()
	}
	return nil
}

// UpdateMessage stores m at its next rev and its conversation at its next version, and
// emits the message's event.
func UpdateMessage(tx Tx, c *op.Call, chat *Conversation, m *Message) error {
	return Change{Updated: m}.Apply(tx, c, chat)
}

// IsFollowed reports whether m has a child that is not deleted.
func IsFollowed(tx Tx, m *Message) (bool, error) {
	children, err := tx.Children(m.ConversationID, m.ID)
	for _, child := range children {
		if child.DeletedAt == nil {
			return true, err
		}
	}
	return false, err
}
