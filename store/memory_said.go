package store

import (
	"database/sql"
	"slices"

	"nodest/chat"
	"nodest/fault"
	"nodest/memory"
)

// saidColumns are the columns of a memory.Said: of a text t, its message m and its
// revision r.
const saidColumns = `SELECT t.revision_id, t.character_id, t.conversation_id, t.message_id, t.seq, t.session, t.role, t.name,
		t.said_at, t.is_read, m.status, r.text
	FROM memory_texts t JOIN messages m ON m.user_id = t.user_id AND m.id = t.message_id
		JOIN revisions r ON r.user_id = t.user_id AND r.id = t.revision_id
	WHERE t.user_id = ? AND NOT t.is_forgotten `

func (t *tx) readSaid(rest string, args ...any) ([]memory.Text, error) {
	items := []memory.Text{}
	err := t.rows(saidColumns+rest, append([]any{text(t.userID)}, args...), func(rows *sql.Rows) error {
		var s memory.Text
		var name, words text
		var status string
		var at int64
		err := rows.Scan(&s.RevisionID, &s.CharacterID, &s.ConversationID, &s.MessageID, &s.Seq, &s.Session, &s.Role, &name,
			&at, &s.Read, &status, &words)
		s.Name, s.At, s.Failed = string(name), moment(at), status == chat.StatusError
		s.Text = memory.Clean(s.Role, string(words))
		items = append(items, s)
		return err
	})
	return items, err
}

// saidLength is how many texts Said returns unless it is told.
const saidLength = 500

// Said lists texts of a conversation.
func (t *tx) Said(conversationID string, f memory.SaidFilter) ([]memory.Text, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, err
	}
	where, args, order := "AND t.conversation_id = ?", []any{text(conversationID)}, ""
	if f.Unread {
		where += " AND NOT t.is_read"
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

// SaidByID returns texts of a character by their revisions.
func (t *tx) SaidByID(characterID string, revisionIDs ...string) ([]memory.Text, error) {
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	items := []memory.Text{}
	for part := range slices.Chunk(revisionIDs, 500) {
		in, which := among(part)
		some, err := t.readSaid("AND t.character_id = ? AND t.revision_id "+in+
			" AND EXISTS (SELECT 1 FROM conversations c WHERE c.user_id = t.user_id AND c.id = t.conversation_id AND c.deleted_at IS NULL)",
			text(characterID), which)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	return items, nil
}

// MarkRead notes that extraction has read texts.
func (t *tx) MarkRead(conversationID string, revisionIDs ...string) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return err
	}
	for part := range slices.Chunk(revisionIDs, 500) {
		in, which := among(part)
		_, err := t.exec(t.raw("UPDATE memory_texts SET is_read = TRUE WHERE user_id = ? AND conversation_id = ? AND revision_id "+in,
			text(t.userID), text(conversationID), which))
		if err != nil {
			return err
		}
	}
	return nil
}

// MarkUnread gives all texts of a conversation back to extraction.
func (t *tx) MarkUnread(conversationID string) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return err
	}
	_, err := t.exec(t.raw("UPDATE memory_texts SET is_read = FALSE WHERE user_id = ? AND conversation_id = ? AND is_read",
		text(t.userID), text(conversationID)))
	return err
}

// PutUses stores what was recalled for a text of a message, instead of what was
// stored for it before, and when facts were used last. That is no change of a scope.
func (t *tx) PutUses(messageID, revisionID string, uses []memory.Use) error {
	if err := t.writable(); err != nil {
		return err
	}
	if err := t.ownsMessage(messageID); err != nil {
		return err
	}
	_, err := t.exec(t.raw("DELETE FROM memory_uses WHERE user_id = ? AND revision_id = ? AND message_id = ?",
		text(t.userID), text(revisionID), text(messageID)))
	if err != nil || len(uses) == 0 {
		return err
	}
	args := make([]any, 0, 8*len(uses))
	var facts []string
	for _, u := range uses {
		if u.Layer == memory.Fact {
			facts = append(facts, u.ID)
		}
		signals, err := encode(u.Signals)
		if err != nil {
			return err
		}
		args = append(args, text(revisionID), u.Rank, text(t.userID), text(messageID), text(u.ID), text(u.Layer), u.Score, signals)
	}
	_, err = t.exec(t.raw("INSERT INTO memory_uses (revision_id, rank, user_id, message_id, unit_id, layer, score, signals) "+
		values(8, len(args)), args...))
	if err != nil || len(facts) == 0 {
		return err
	}
	in, which := among(facts)
	_, err = t.exec(t.raw("UPDATE memories SET last_used_at = ? WHERE user_id = ? AND id "+in, t.now, text(t.userID), which))
	return err
}

func (t *tx) ownsMessage(id string) error {
	var one int
	found, err := t.scan(t.raw("SELECT 1 FROM messages m JOIN conversations c ON c.user_id = m.user_id AND c.id = m.conversation_id"+
		" WHERE m.user_id = ? AND m.id = ? AND c.deleted_at IS NULL", text(t.userID), text(id)), &one)
	if err == nil && !found {
		return fault.New(fault.NotFound, "no such message")
	}
	return err
}

// Uses returns what was recalled for the chosen text of a message.
func (t *tx) Uses(messageID string) ([]memory.Use, error) {
	if err := t.ownsMessage(messageID); err != nil {
		return nil, err
	}
	uses := []memory.Use{}
	err := t.rows(`SELECT u.unit_id, u.layer, u.rank, u.score, u.signals FROM messages m
		JOIN swipes s ON s.user_id = m.user_id AND s.message_id = m.id AND s.position = m.swipe_index
		JOIN memory_uses u ON u.user_id = m.user_id AND u.revision_id = s.revision_id AND u.message_id = m.id
		WHERE m.user_id = ? AND m.id = ? ORDER BY u.rank`, []any{text(t.userID), text(messageID)}, func(rows *sql.Rows) error {
		var u memory.Use
		var signals document
		if err := rows.Scan(&u.ID, &u.Layer, &u.Rank, &u.Score, &signals); err != nil {
			return err
		}
		uses = append(uses, u)
		return decode(signals, &uses[len(uses)-1].Signals)
	})
	return uses, err
}
