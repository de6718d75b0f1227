package chat

import (
	"context"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
)

// Message returns a message with its swipes; NotFound for a deleted one.
func (svc *Service) Message(ctx context.Context, userID, id string) (*Message, error) {
	var conv *Conversation
	m, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*Message, error) {
		m, err := LiveMessage(tx, id)
		if err == nil {
			conv, err = tx.Conversation(m.ConversationID)
		}
		if err == nil {
			_, err = addFiles(tx, []*Message{m})
		}
		return m, err
	})
	if err != nil {
		return nil, err
	}
	svc.display(ctx, userID, conv, []*Message{m})
	return m, nil
}

// EditText changes the text of a message. In place, the text becomes a new revision of
// the chosen swipe; the old one stays readable, and a reply that failed without a text
// gets its first swipe. As a branch, it becomes a sibling of the message and the head of
// the conversation: what followed the old message stays on the old branch.
//
// Errors: TooLarge, Invalid; Conflict with details.current when IfRev is not 0 and not the message's rev; Busy while
// the message is being written, for a branch while anything is written in the conversation.
func (svc *Service) EditText(ctx context.Context, c *op.Call, in EditInput) (*Changed, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Changed, error) {
		chat, m, err := LockForEdit(tx, in.MessageID, in.IfRev)
		if err != nil {
			return nil, err
		}
		if in.Mode != EditBranch {
			return &Changed{Message: m}, svc.replaceText(tx, c, chat, m, in.Text)
		}
		if err := CheckIdle(tx, chat.ID, AnyMessage); err != nil {
			return nil, err
		}
		other := SiblingOf(m, in.Text, tx.Now())
		if err := (Change{Created: []*Message{other}, Head: other}).Apply(tx, c, chat); err != nil {
			return nil, err
		}
		return &Changed{Message: other}, svc.TextAdded(tx, chat)
	})
}

// Check returns Invalid or TooLarge with the field.
func (in EditInput) Check() error {
	switch in.Mode {
	case "", EditInPlace, EditBranch:
		return op.CheckText("text", in.Text, MaxText)
	}
	return fault.InvalidField("mode", "range", "must be %s or %s", EditInPlace, EditBranch)
}

func (svc *Service) replaceText(tx Tx, c *op.Call, chat *Conversation, m *Message, text string) error {
	Reword(m, text, tx.Now())
	if err := UpdateMessage(tx, c, chat, m); err != nil {
		return err
	}
	return svc.TextAdded(tx, chat)
}

// Reword gives the chosen swipe of m another text.
func Reword(m *Message, text string, now time.Time) {
	if s := m.Chosen(); s != nil && !s.Deleted {
		s.Text, s.RevisionID, s.Citations = text, op.NewID(), s.Citations.In(text)
		s.Rev++
	} else {
		m.Swipes = append(m.Swipes, NewSwipe(text, now))
		m.SwipeIndex = len(m.Swipes) - 1
		m.Status, m.Error = StatusComplete, nil
	}
	m.EditedAt = &now
}

// SiblingOf is a new message with the parent of m.
func SiblingOf(m *Message, text string, now time.Time) *Message {
	swipe := NewSwipe(text, now)
	if chosen := m.Chosen(); chosen != nil { // as for an edit in place
		swipe.PlayID = chosen.PlayID
	}
	return &Message{
		ID: op.NewID(), ConversationID: m.ConversationID, ParentID: m.ParentID, AuthorID: m.AuthorID,
		Role: m.Role, Name: m.Name, Greeting: m.Greeting, Hidden: m.Hidden, Rev: 1, Status: StatusComplete, Dates: Dates{CreatedAt: now},
		Swipes: []Swipe{swipe},
	}
}

// ReplyTo is the reply to a user's message: the one on the shown branch, else the newest; nil without any.
func ReplyTo(tx Tx, chat *Conversation, m *Message) (*Message, error) {
	children, err := tx.Children(chat.ID, m.ID)
	if err != nil {
		return nil, err
	}
	replies := slices.DeleteFunc(children, func(m *Message) bool { return m.DeletedAt != nil || m.Role != RoleAssistant })
	switch len(replies) {
	case 0:
		return nil, nil
	case 1:
		return replies[0], nil
	}
	for before := ""; ; {
		page, more, err := tx.Path(chat.ID, chat.HeadID, before, largePage)
		if err != nil {
			return nil, err
		}
		for _, shown := range page {
			if at := slices.IndexFunc(replies, func(m *Message) bool { return m.ID == shown.ID }); at >= 0 {
				return replies[at], nil
			}
		}
		// Earlier messages have lower seqs.
		if !more || len(page) == 0 || page[0].Seq < replies[0].Seq {
			return replies[len(replies)-1], nil
		}
		before = page[0].ID
	}
}

// AnyMessage is the argument of CheckIdle for all messages.
func AnyMessage(string) bool { return true }

// LockForEdit returns a message that may be changed now, and its conversation.
func LockForEdit(tx Tx, id string, ifRev int64) (*Conversation, *Message, error) {
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
	return conv, m, CheckIdle(tx, conv.ID, func(writing string) bool { return writing == m.ID })
}

// TextAdded reports new text in a conversation to the memory.
func (svc *Service) TextAdded(tx Tx, conv *Conversation) error {
	if !svc.opts.Memory || conv == nil {
		return nil
	}
	return memory.TextAdded(tx.Memory, conv.CharacterID, conv.ID)
}
