package store

import (
	"slices"

	"nodest/chat"
	"nodest/memory"
	"nodest/store/sqldb"
)

// readSaid reads texts t with their messages m and revisions r.
func (t *textTx) readSaid(rest string, args ...any) ([]memory.Text, error) {
	return sqldb.Map(t, func(s *memory.Text) memory.Text {
		s.Text = memory.Clean(s.Role, s.Text)
		return *s
	}, `SELECT t.revision_id, t.character_id, t.conversation_id, r.message_id, t.seq, t.session, t.role, t.name,
			t.said_at AS at, t.is_read AS read, m.status = '`+chat.StatusError+`' AS failed, r.text
		FROM memory_texts t JOIN revisions r ON r.user_id = t.user_id AND r.id = t.revision_id
			JOIN messages m ON m.user_id = r.user_id AND m.id = r.message_id
		WHERE t.user_id = ? AND NOT t.is_forgotten `+rest, append([]any{t.userID}, args...)...)
}

// saidLength is how many texts Said returns unless it is told.
const saidLength = 500

func (t *textTx) Said(conversationID string, f memory.SaidFilter) ([]memory.Text, error) {
	if err := t.chats.owns(conversationID); err != nil {
		return nil, err
	}
	where, args, order := "AND t.conversation_id = ?", []any{conversationID}, ""
	if f.Unread {
		where += " AND NOT t.is_read"
	}
	if f.After > 0 {
		where, args = where+" AND t.seq > ?", append(args, f.After)
	}
	if f.Before > 0 {
		where, args, order = where+" AND t.seq < ?", append(args, f.Before), " DESC"
	}
	if f.Limit <= 0 {
		f.Limit = saidLength
	}
	items, err := t.readSaid(where+" ORDER BY t.seq"+order+", t.revision_id"+order+" LIMIT ?", append(slices.Clone(args), f.Limit)...)
	if err != nil {
		return nil, err
	}
	if len(items) == f.Limit { // there may be more of the last message
		last := items[f.Limit-1].Seq
		items = slices.DeleteFunc(items, func(s memory.Text) bool { return s.Seq == last })
		rest, err := t.readSaid(where+" AND t.seq = ? ORDER BY t.revision_id"+order, append(args, last)...)
		if err != nil {
			return nil, err
		}
		items = append(items, rest...)
	}
	if f.Before > 0 {
		slices.Reverse(items)
	}
	return items, nil
}

func (t *textTx) SaidByID(characterID string, revisionIDs ...string) ([]memory.Text, error) {
	if err := t.characters.owns(characterID); err != nil {
		return nil, err
	}
	return t.readSaid("AND t.character_id = ? AND t.revision_id IN (?)"+
		" AND EXISTS (SELECT 1 FROM conversations c WHERE c.user_id = t.user_id AND c.id = t.conversation_id AND c.deleted_at IS NULL)",
		characterID, revisionIDs)
}

func (t *textTx) MarkRead(conversationID string, revisionIDs ...string) error {
	return t.chats.with(conversationID).Run("UPDATE memory_texts SET is_read = TRUE WHERE user_id = ? AND conversation_id = ? AND revision_id IN (?) AND NOT is_read",
		t.userID, conversationID, revisionIDs)
}

func (t *textTx) MarkUnread(conversationID string) error {
	return t.chats.with(conversationID).Run("UPDATE memory_texts SET is_read = FALSE WHERE user_id = ? AND conversation_id = ? AND is_read", t.userID, conversationID)
}

func (t *textTx) Reading(conversationID string) (memory.Reading, error) {
	return t.reading(conversationID, "")
}

func (t *textTx) LockReading(conversationID string) (memory.Reading, error) {
	err := t.chats.with(conversationID).Run("INSERT INTO memory_readings (user_id, conversation_id, exchanges, calls, ordered)"+
		" VALUES (?, ?, 0, 0, 0) ON CONFLICT (user_id, conversation_id) DO NOTHING", sqldb.ID(t.userID), sqldb.ID(conversationID))
	if err != nil {
		return memory.Reading{}, err
	}
	return t.reading(conversationID, t.ForUpdate())
}

func (t *textTx) reading(conversationID, lock string) (memory.Reading, error) {
	return sqldb.Value[memory.Reading](t.chats.with(conversationID), "SELECT exchanges, calls, ordered FROM memory_readings WHERE user_id = ? AND conversation_id = ?"+lock,
		t.userID, conversationID)
}

func (t *textTx) PutReading(conversationID string, r memory.Reading) error {
	return t.chats.with(conversationID).Run("UPDATE memory_readings SET exchanges = ?, calls = ?, ordered = ? WHERE user_id = ? AND conversation_id = ?",
		r.Exchanges, r.Calls, r.Ordered, t.userID, conversationID)
}

// with returns the session for statements about a message: each returns
// fault.NotFound unless it is in a conversation of the user that is not deleted.
func (t *messageTx) with(id string) *sqldb.Session {
	return t.Unless(t.Require("message", "SELECT 1 FROM messages m JOIN conversations c ON c.user_id = m.user_id AND c.id = m.conversation_id"+
		" WHERE m.user_id = ? AND m.id = ? AND c.deleted_at IS NULL", t.userID, id))
}
