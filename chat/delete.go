package chat

import (
	"context"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
)

// Scopes of a delete.
const (
	ScopeOne   = "one"
	scopeAfter = "after"
	scopeSwipe = "swipe"
)

// deletedKept is how long a deleted message can be brought back; later the store
// may have removed its texts.
const deletedKept = 30 * 24 * time.Hour

// DeleteMessage hides messages: scope "one" (default) the message alone, so that
// its replies stay; "after" the message and all its descendants; "swipe" its chosen
// text, and the next one is shown. Nothing is removed: RestoreMessage undoes it.
//
// Errors: NotFound; Invalid for the only swipe of a message; Busy while one of
// the messages is being written.
func (svc *Service) DeleteMessage(ctx context.Context, c *op.Call, id, scope string) (*Deleted, error) {
	switch scope {
	case "":
		scope = ScopeOne
	case ScopeOne, scopeAfter, scopeSwipe:
	default:
		return nil, fault.InvalidField("scope", "range", "must be one of %s, %s, %s", ScopeOne, scopeAfter, scopeSwipe)
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Deleted, error) {
		conv, m, err := LockForEdit(tx, id, 0)
		if err != nil {
			return nil, err
		}
		if scope == scopeSwipe {
			return deleteSwipe(tx, c, conv, m)
		}
		gone := []*Message{m}
		if scope == scopeAfter {
			below, err := tx.Below(m, 0)
			if err != nil {
				return nil, err
			}
			gone = append(gone, below...)
		}
		return DeleteMessages(tx, c, conv, gone, scope)
	})
}

// DeleteMessages hides messages of a conversation in one change.
func DeleteMessages(tx Tx, c *op.Call, conv *Conversation, gone []*Message, scope string) (*Deleted, error) {
	ids := IDsOf(gone)
	if err := CheckIdle(tx, conv.ID, func(id string) bool { return slices.Contains(ids, id) }); err != nil {
		return nil, err
	}
	now := tx.Now()
	if err := tx.SetDeleted(&now, gone...); err != nil {
		return nil, err
	}
	if err := tx.Emit(DeletedEvent(c.UserID, c.By(), gone, scope)); err != nil {
		return nil, err
	}
	head := conv.HeadID
	if slices.Contains(ids, head) {
		var err error
		if head, err = lastLive(tx, conv.ID, head); err != nil {
			return nil, err
		}
	}
	if err := RepairSummary(tx, conv, gone...); err != nil {
		return nil, err
	}
	return &Deleted{MessageIDs: ids, HeadID: head, RestoredUntil: now.Add(deletedKept)}, MoveHead(tx, c, conv, head)
}

// DeletedEvent reports messages of one conversation that were deleted just now.
func DeletedEvent(userID, by string, gone []*Message, scope string) *stream.Event {
	ev := op.Event(userID, "message.deleted", by, struct {
		MessageIDs    []string `json:"messageIds"`
		Scope         string   `json:"scope"`
		RestoredUntil op.Time  `json:"restoredUntil"`
	}{IDsOf(gone), scope, op.Time(gone[0].DeletedAt.Add(deletedKept))})
	ev.ConversationID, ev.MessageID = gone[0].ConversationID, gone[0].ID
	return ev
}

// deleteSwipe hides the chosen swipe and shows the one after it, else the one
// before it.
func deleteSwipe(tx Tx, c *op.Call, conv *Conversation, m *Message) (*Deleted, error) {
	to, err := SwipeTarget(m, "next")
	if err == nil && to == m.SwipeIndex {
		to, err = SwipeTarget(m, "prev")
	}
	if err != nil {
		return nil, err
	}
	if m.Chosen() == nil || to == m.SwipeIndex {
		return nil, fault.InvalidField("scope", "range", "the message has only one text; delete the message instead")
	}
	m.Chosen().Deleted = true
	m.SwipeIndex = to
	m.Status, m.Error = statusOf(m.Chosen().Finish), nil
	if err := UpdateMessage(tx, c, conv, m); err != nil {
		return nil, err
	}
	return &Deleted{MessageIDs: []string{m.ID}, HeadID: conv.HeadID, RestoredUntil: tx.Now().Add(deletedKept)}, nil
}

// RestoreMessage undoes a delete, also of the descendants that were deleted together
// with the message. For a message that is not deleted it restores the deleted swipes. If
// the shown branch still ends where the delete left it, the branch from before the delete
// is shown again.
func (svc *Service) RestoreMessage(ctx context.Context, c *op.Call, id string) (*Deleted, error) {
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Deleted, error) {
		conv, m, err := lockMessage(tx, id)
		if err != nil {
			return nil, err
		}
		if m.DeletedAt == nil {
			return restoreSwipes(tx, c, conv, m)
		}
		return restoreMessages(tx, c, conv, m)
	})
}

func restoreMessages(tx Tx, c *op.Call, conv *Conversation, first *Message) (*Deleted, error) {
	if tx.Now().Sub(*first.DeletedAt) > deletedKept {
		return nil, fault.New(fault.NotFound, "message %q was deleted more than 30 days ago", first.ID)
	}
	back, err := deletedWith(tx, first)
	if err != nil {
		return nil, err
	}
	gap, err := lastLive(tx, conv.ID, first.ID)
	if err != nil {
		return nil, err
	}
	head := conv.HeadID
	if head == gap {
		if head, err = headBefore(tx, conv, back); err != nil {
			return nil, err
		}
	}
	if err := tx.SetDeleted(nil, back...); err != nil {
		return nil, err
	}
	if err := tx.Emit(restoredEvent(c, back)); err != nil {
		return nil, err
	}
	if err := RepairSummary(tx, conv, back...); err != nil {
		return nil, err
	}
	return &Deleted{MessageIDs: IDsOf(back), HeadID: head}, MoveHead(tx, c, conv, head)
}

// headBefore returns the end of the branch that was shown before messages were deleted
// together, if it is one of them, else the newest of them.
func headBefore(tx Tx, conv *Conversation, deleted []*Message) (string, error) {
	version, err := tx.DeletedIn(deleted[0].ID)
	if err != nil {
		return "", err
	}
	before, err := tx.StateAt(conv.ID, version-1)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	newest := deleted[0]
	for _, m := range deleted {
		if before != nil && m.ID == before.HeadID {
			return m.ID, nil
		}
		if m.Seq > newest.Seq {
			newest = m
		}
	}
	return newest.ID, nil
}

func restoreSwipes(tx Tx, c *op.Call, conv *Conversation, m *Message) (*Deleted, error) {
	out := &Deleted{MessageIDs: []string{}, HeadID: conv.HeadID}
	for i := range m.Swipes {
		if m.Swipes[i].Deleted {
			m.Swipes[i].Deleted = false
			out.MessageIDs = []string{m.ID}
		}
	}
	if len(out.MessageIDs) == 0 {
		return out, nil
	}
	if err := CheckIdle(tx, conv.ID, func(writing string) bool { return writing == m.ID }); err != nil {
		return nil, err
	}
	return out, UpdateMessage(tx, c, conv, m)
}

// MoveHead stores the conversation at its next version with that head ("" = no message
// is left) and emits its event if the head has changed.
func MoveHead(tx Tx, c *op.Call, conv *Conversation, head string) error {
	if head == conv.HeadID {
		conv.Version++
		return tx.UpdateConversation(conv)
	}
	conv.HeadID, conv.LastMessage = head, nil
	if head != "" {
		m, err := tx.Message(head)
		if err != nil {
			return err
		}
		conv.LastMessage = m.Preview()
	}
	if err := ChoosePlay(tx, conv); err != nil {
		return err
	}
	return updateConversation(tx, c, conv)
}

// lastLive is the last message that is not deleted on the branch that ends in id; "" =
// none.
func lastLive(tx Tx, conversationID, id string) (string, error) {
	path, _, err := tx.Path(conversationID, id, "", 1)
	if err != nil || len(path) == 0 {
		return "", err
	}
	return path[0].ID, nil
}

// deletedWith returns first and what was deleted together with it below it: in the same
// version of the conversation, because two deletes can have the same time.
func deletedWith(tx Tx, first *Message) ([]*Message, error) {
	version, err := tx.DeletedIn(first.ID)
	if err != nil {
		return nil, err
	}
	below, err := tx.Below(first, version)
	return append([]*Message{first}, below...), err
}

// IDsOf are the ids of messages.
func IDsOf(messages []*Message) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	return ids
}
