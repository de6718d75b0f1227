package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"nodest/fault"
	"nodest/nodest"
)

// A fork is one path: its copies are chain 0 and have the depths of what they
// were copied from. Its oldest copy has no parent until the next piece comes; one
// that has none although its depth is more than 1 is where a piece is missing.

// rest is what a fork has still to copy: the path that ends in a message of a
// conversation, as it was at a version. The zero value is nothing.
type rest struct {
	RestConversationID string
	RestMessageID      string
	RestVersion        int64
}

func (r *conversationRow) rest() rest {
	return rest{r.RestConversationID, r.RestMessageID, r.RestVersion}
}

// piece is a part of a path that was copied. Its message rows are oldest first.
type piece struct {
	bulk
	rest rest
}

// Copying returns forks that are not complete: nodest.Store.
func (db *DB) Copying(ctx context.Context, limit int) (forks []nodest.ForkRef, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		var rows []struct{ UserID, ID string }
		_, err := s.scan(s.raw("SELECT user_id, id FROM conversations WHERE rest_message_id <> '' AND deleted_at IS NULL"+
			" ORDER BY created_at, id LIMIT ?", pageLength(limit)), &rows)
		forks = make([]nodest.ForkRef, len(rows))
		for i, row := range rows {
			forks[i] = nodest.ForkRef{UserID: row.UserID, ConversationID: row.ID}
		}
		return err
	})
	return forks, err
}

// InsertFork stores c with the end of the path. The lock on the source keeps its
// version, its messages and what it has still to copy itself together. It must
// come before changes of the source in the same transaction: their states are
// logged at the end.
func (t *tx) InsertFork(c *nodest.Conversation, sourceID, messageID string, limit int) error {
	if err := t.writable(); err != nil {
		return err
	}
	source, err := t.findConversation(sourceID, t.forUpdate())
	if err != nil {
		return err
	}
	var seq int64
	found, err := t.scan(t.raw("SELECT seq FROM messages WHERE user_id = ? AND id = ? AND conversation_id = ?",
		text(t.userID), text(messageID), text(sourceID)), &seq)
	if err != nil {
		return err
	}
	if !found {
		return errNotInConversation()
	}
	p, head, err := t.copyPiece(c.ID, rest{sourceID, messageID, source.Version}, limit)
	if err != nil {
		return err
	}
	c.HeadID, c.LastMessage, c.Copying = head.ID, head.Preview(), p.rest.RestMessageID != ""
	if err := t.InsertConversation(c); err != nil {
		return err
	}
	if err := t.putBulk(&p.bulk); err != nil {
		return err
	}
	_, err = t.exec(t.raw("UPDATE conversations SET message_seq = ?, rest_conversation_id = ?, rest_message_id = ?, rest_version = ?"+
		" WHERE user_id = ? AND id = ?", seq, p.rest.RestConversationID, p.rest.RestMessageID, p.rest.RestVersion, text(t.userID), text(c.ID)))
	return err
}

// CopyMore copies the next piece. The lock on the fork's row lets one do it at a
// time.
func (t *tx) CopyMore(conversationID string, limit int) (left bool, err error) {
	if err := t.writable(); err != nil {
		return false, err
	}
	delete(t.locked, conversationID)
	fork, err := t.findConversation(conversationID, t.forUpdate())
	if err != nil || fork.RestMessageID == "" {
		return false, err
	}
	var oldest string
	_, err = t.scan(t.raw("SELECT id FROM messages WHERE user_id = ? AND conversation_id = ? AND chain = 0 ORDER BY depth LIMIT 1",
		text(t.userID), text(conversationID)), &oldest)
	if err != nil {
		return false, err
	}
	p, end, err := t.copyPiece(conversationID, fork.rest(), limit)
	if err != nil {
		return false, err
	}
	if err := t.putBulk(&p.bulk); err != nil {
		return false, err
	}
	if _, err := t.exec(t.raw("UPDATE messages SET parent_id = ? WHERE user_id = ? AND id = ?", end.ID, text(t.userID), oldest)); err != nil {
		return false, err
	}
	_, err = t.exec(t.raw("UPDATE conversations SET rest_conversation_id = ?, rest_message_id = ?, rest_version = ? WHERE user_id = ? AND id = ?",
		p.rest.RestConversationID, p.rest.RestMessageID, p.rest.RestVersion, text(t.userID), text(conversationID)))
	return p.rest.RestMessageID != "", err
}

// ToCopy reads in the conversation that has the message.
func (t *tx) ToCopy(forkID string, beforeSeq int64, limit int) (items []*nodest.Message, more, ok bool, err error) {
	fork, err := t.findConversation(forkID, "")
	if err != nil {
		return nil, false, false, err
	}
	id, err := t.messageAt(forkID, beforeSeq)
	if err != nil || id != "" {
		return nil, false, false, err
	}
	from := fork.rest()
	var up rest
	for {
		found, err := t.scan(t.raw("SELECT rest_conversation_id, rest_message_id, rest_version FROM conversations WHERE user_id = ? AND id = ?",
			text(t.userID), text(from.RestConversationID)), &up)
		if err != nil || !found {
			return nil, false, false, err
		}
		if id, err = t.messageAt(from.RestConversationID, beforeSeq); err != nil {
			return nil, false, false, err
		}
		if id != "" {
			break
		}
		from = up // that is a fork too, and has not copied it either
	}
	if up.RestMessageID != "" { // what is above may not be there
		return nil, false, false, nil
	}
	if items, more, err = t.pathAt(from.RestConversationID, from.RestVersion, from.RestMessageID, id, limit, false); err != nil {
		return nil, false, false, err
	}
	return items, more, true, t.asCopies(forkID, items)
}

// asCopies makes messages of a path what their copies will be.
func (t *tx) asCopies(forkID string, items []*nodest.Message) error {
	copies := map[string]string{"": ""} // ids by those of the originals
	for _, m := range items {
		parent, known := copies[m.ParentID]
		if !known { // it is deleted, or on the page before
			var seq int64
			if _, err := t.scan(t.raw("SELECT seq FROM messages WHERE user_id = ? AND id = ?", text(t.userID), text(m.ParentID)), &seq); err != nil {
				return err
			}
			parent = t.CopyOf(forkID, m.ParentID, seq)
		}
		copied := t.CopyOf(forkID, m.ID, m.Seq)
		copies[m.ID] = copied
		m.ID, m.ConversationID, m.ParentID, m.ClientMsgID = copied, forkID, parent, ""
		for i := range m.Swipes {
			m.Swipes[i].RevisionID = ""
		}
	}
	return nil
}

// messageAt is the id of the message of that seq; "" = there is none.
func (t *tx) messageAt(conversationID string, seq int64) (id string, err error) {
	_, err = t.scan(t.raw("SELECT id FROM messages WHERE user_id = ? AND conversation_id = ? AND seq = ?",
		text(t.userID), text(conversationID), seq), &id)
	return id, err
}

// copyPiece makes copies of the newest messages of from, at most limit, for the
// fork conversationID; last is the newest one.
func (t *tx) copyPiece(conversationID string, from rest, limit int) (p *piece, last *nodest.Message, err error) {
	// The source may be a fork that is still being copied itself: what it has and
	// what it has not must be read as of one moment. It may also be deleted.
	var up rest
	found, err := t.scan(t.raw("SELECT rest_conversation_id, rest_message_id, rest_version FROM conversations"+
		" WHERE user_id = ? AND id = ?"+t.forUpdate(), text(t.userID), text(from.RestConversationID)), &up)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return nil, nil, fault.New(fault.NotFound, "the conversation this fork was made from no longer exists")
	}
	items, more, err := t.pathAt(from.RestConversationID, from.RestVersion, from.RestMessageID, "", limit, true)
	if err != nil {
		return nil, nil, err
	}
	if len(items) == 0 {
		return nil, nil, errNotInConversation()
	}
	var depth int64
	if _, err := t.scan(t.raw("SELECT depth FROM messages WHERE user_id = ? AND id = ?", text(t.userID), items[0].ID), &depth); err != nil {
		return nil, nil, err
	}
	p = &piece{}
	switch {
	case more:
		p.rest = rest{from.RestConversationID, items[0].ParentID, from.RestVersion}
	case depth > 1:
		p.rest = up
	}
	said, err := t.copiedTexts(items)
	if err != nil {
		return nil, nil, err
	}
	parent := ""
	for i, m := range items {
		if err := t.copyMessage(&p.bulk, said, m, conversationID, parent, depth+int64(i)); err != nil {
			return nil, nil, err
		}
		parent, last = m.ID, m
	}
	return p, last, nil
}

// copyMessage turns m into its copy. said are the texts that the memory has.
func (t *tx) copyMessage(b *bulk, said map[string]*textRow, m *nodest.Message, conversationID, parentID string, depth int64) error {
	m.ID, m.ConversationID, m.ParentID, m.ClientMsgID = t.CopyOf(conversationID, m.ID, m.Seq), conversationID, parentID, ""
	row, err := t.messageRow(m)
	if err != nil {
		return err
	}
	row.Depth, row.Chain = depth, 0
	b.messages = append(b.messages, row)
	for i := range m.Swipes {
		s := &m.Swipes[i]
		source := said[s.RevisionID]
		s.ID, s.RevisionID, s.Rev = newID(), newID(), 1
		r, err := t.newRevision(m, s, nil)
		if err != nil {
			return err
		}
		b.revisions = append(b.revisions, r)
		b.copyText(source, m, s.RevisionID)
		b.swipes = append(b.swipes, t.swipeRow(m, i))
	}
	state := &messageStateRow{
		ConversationID: conversationID, MessageID: m.ID, Version: 1, UserID: t.userID, Rev: m.Rev,
		Status: text(m.Status), IsDeleted: m.DeletedAt != nil,
	}
	if s := m.Chosen(); s != nil {
		state.RevisionID = s.RevisionID
	}
	b.states = append(b.states, state)
	return nil
}

// CopyOf makes an id that sorts where that of the message does, because messages are
// searched in the order of their ids, and the oldest copies are made last. The rest of
// it follows from the fork and the seq: a copy of a copy gets the id that a copy of
// the original would have, so it does not matter from which of them a piece comes.
func (t *tx) CopyOf(forkID, messageID string, seq int64) string {
	var made uuid.UUID
	if old, err := uuid.Parse(messageID); err == nil && old.Version() == 7 {
		copy(made[:8], old[:8]) // the time and the version
	} else {
		binary.BigEndian.PutUint64(made[:8], uint64(seq)<<16|7<<12)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", forkID, seq))
	copy(made[8:], sum[:8])
	made[8] = made[8]&0x3f | 0x80 // the variant
	return made.String()
}
