package chat

import (
	"cmp"
	"context"
	"slices"

	"nodest/internal/op"
	"nodest/internal/stream"
)

// describedBefore is the description of the save points that restores make.
const describedBefore = "before restore"

// RestoreSave sets a conversation back to a save point: its branch with the texts at
// that time, its persona, note and settings, and the versions of its documents until one
// changes. Newer messages stay as a branch, and other save points stay. The state before
// the restore gets an automatic save point, unless it is that of the last restore.
//
// The save point of an empty conversation restores to a fresh greeting.
//
// Errors: NotFound; Busy while a reply is being written there.
func (svc *Service) RestoreSave(ctx context.Context, c *op.Call, saveID string) (*Restored, error) {
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Restored, error) {
		s, err := tx.Save(saveID)
		if err != nil {
			return nil, err
		}
		conv, err := LockIdle(tx, s.ConversationID)
		if err != nil {
			return nil, err
		}
		before, err := saveBefore(tx, c, conv)
		if err != nil {
			return nil, err
		}
		if err := rewindTo(tx, c, conv, s.Version, s.HeadID); err != nil {
			return nil, err
		}
		if err := s.Apply(tx, conv); err != nil {
			return nil, err
		}
		if err := cmp.Or(s.showHead(tx, c, conv), keepPlay(tx, conv)); err != nil {
			return nil, err
		}
		if conv.SummaryID != "" {
			if err := tx.RestoreSummary(conv.SummaryID, s.Version, conv.Version+1); err != nil {
				return nil, err
			}
		}
		if err := updateConversation(tx, c, conv); err != nil {
			return nil, err
		}
		return &Restored{Conversation: conv, HeadID: conv.HeadID, Before: before}, tx.Emit(restoredSaveEvent(c, s, conv))
	})
}

// saveBefore makes the automatic save point of a restore; nil where the
// conversation is what the last rewind made of it.
func saveBefore(tx Tx, c *op.Call, conv *Conversation) (*Save, error) {
	rewinds, err := tx.Rewinds(conv.ID)
	if err != nil {
		return nil, err
	}
	if n := len(rewinds); n > 0 && rewinds[n-1].At == conv.Version {
		return nil, nil
	}
	s, err := savedNow(tx, conv)
	if err != nil {
		return nil, err
	}
	s.Automatic, s.Description = true, describedBefore
	return s, InsertSave(tx, c, s)
}

// Apply gives conv what a save point holds besides the messages.
func (s *Save) Apply(tx Tx, conv *Conversation) error {
	then, err := s.State(tx)
	if err != nil {
		return err
	}
	conv.HeadID, conv.SummaryID, conv.PlayID = s.HeadID, then.SummaryID, then.PlayID
	conv.PersonaID, conv.AuthorNote, conv.Settings = then.PersonaID, then.AuthorNote, then.Settings
	conv.Pins, err = s.Pins.InForce(tx.Characters, conv.CharacterID)
	return err
}

// showHead completes a restore: it sets the head of conv to that of the save point, or
// to a new greeting if that has none.
func (s *Save) showHead(tx Tx, c *op.Call, conv *Conversation) error {
	if s.HeadID == "" {
		m, err := FreshGreeting(tx, conv)
		if err != nil {
			return err
		}
		if err := tx.InsertMessage(m); err != nil {
			return err
		}
		conv.HeadID, conv.LastMessage, conv.PlayID = m.ID, m.Preview(), m.Swipes[0].PlayID
		return tx.Emit(MessageEvent(c.UserID, "message.created", c.By(), m))
	}
	// A message whose text was removed for good stays deleted.
	head, err := lastLive(tx, conv.ID, s.HeadID)
	if err != nil {
		return err
	}
	conv.HeadID, conv.LastMessage = head, nil
	if head == "" {
		return nil
	}
	m, err := tx.Message(head)
	conv.LastMessage = m.Preview()
	return err
}

// rewindTo sets the messages of a branch back to a version, and emits events for those
// that it changed. Where these are too many for events with texts, the others are reported as restored. The next version of conv continues from that one.
func rewindTo(tx Tx, c *op.Call, conv *Conversation, version int64, headID string) error {
	changed, moved, err := tx.Rewind(conv, version, headID)
	if err != nil {
		return err
	}
	whole := slices.DeleteFunc(slices.Clone(changed), func(m *Message) bool { return m.Swipes == nil })
	shown, err := shownBefore(tx, conv, whole)
	if err != nil {
		return err
	}
	var gone, back []*Message
	for _, m := range moved {
		if m.DeletedAt != nil {
			gone = append(gone, m)
		} else {
			back = append(back, m)
		}
	}
	for _, m := range changed {
		was := shown[m.ID]
		switch {
		case m.DeletedAt != nil:
			gone = append(gone, m)
		case was == nil:
			back = append(back, m)
		}
		if m.Swipes == nil { // clients read it again
			continue
		}
		if err := tx.Emit(MessageEvent(c.UserID, "message.updated", c.By(), m)); err != nil {
			return err
		}
	}
	if len(back) > 0 {
		if err := tx.Emit(restoredEvent(c, back)); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return tx.Emit(DeletedEvent(c.UserID, c.By(), gone, ScopeOne))
}

func restoredEvent(c *op.Call, back []*Message) *stream.Event {
	ev := op.Event(c.UserID, "message.restored", c.By(), struct {
		MessageIDs []string `json:"messageIds"`
	}{IDsOf(back)})
	ev.ConversationID, ev.MessageID = back[0].ConversationID, back[0].ID
	return ev
}

// shownBefore are, by id, the changed messages as they were at the version of conv,
// without those that were deleted then.
func shownBefore(tx Tx, conv *Conversation, changed []*Message) (map[string]*Message, error) {
	before, err := tx.MessagesAt(conv.ID, conv.Version, IDsOf(changed))
	if err != nil {
		return nil, err
	}
	shown := make(map[string]*Message, len(before))
	for _, m := range before {
		if m.DeletedAt == nil {
			shown[m.ID] = m
		}
	}
	return shown, nil
}
