package nodest

import (
	"nodest/op"
	"nodest/stream"
)

// change is what one transaction does to the messages of a conversation, apart
// from deleting them: it becomes one version of it.
type change struct {
	updated *Message   // nil = none
	created []*Message // parents before their children
	head    *Message   // one of created, which ends the shown branch now; nil = that stays
}

// store stores the change and tells of it. A new head that does not follow the
// old one is told of by itself: another branch is shown.
func (ch change) store(tx Tx, c *op.Call, chat *Conversation) error {
	if ch.updated == nil && len(ch.created) == 0 {
		return nil
	}
	if m := ch.updated; m != nil {
		m.Rev++
		if err := tx.UpdateMessage(m); err != nil {
			return err
		}
		if m.ID == chat.HeadID {
			chat.LastMessage = m.Preview()
		}
	}
	for _, m := range ch.created {
		if err := tx.InsertMessage(m); err != nil {
			return err
		}
	}
	other := ch.head != nil && ch.created[0].ParentID != chat.HeadID
	if ch.head != nil {
		chat.HeadID, chat.LastMessage = ch.head.ID, ch.head.Preview()
	}
	if other {
		if err := chooseSummary(tx, chat); err != nil {
			return err
		}
	}
	chat.Version++
	if err := tx.UpdateConversation(chat); err != nil {
		return err
	}
	if ch.updated != nil {
		if err := repairSummary(tx, chat, ch.updated); err != nil {
			return err
		}
	}
	var events []*stream.Event
	if ch.updated != nil {
		events = append(events, messageEvent(c.UserID, "message.updated", c.By(), ch.updated))
	}
	for _, m := range ch.created {
		events = append(events, messageEvent(c.UserID, "message.created", c.By(), m))
	}
	if other {
		events = append(events, conversationEvent(c.UserID, "chat.updated", c.By(), chat))
	}
	return tx.Emit(events...)
}

// updateMessage stores m at its next rev, and its conversation at its next
// version, and tells of the message.
func updateMessage(tx Tx, c *op.Call, chat *Conversation, m *Message) error {
	return change{updated: m}.store(tx, c, chat)
}

// followed says whether something was said after m that is not deleted.
func followed(tx Tx, m *Message) (bool, error) {
	children, err := tx.Children(m.ConversationID, m.ID)
	for _, child := range children {
		if child.DeletedAt == nil {
			return true, err
		}
	}
	return false, err
}
