package store

import "nodest/memory"

// Reading tells how far the reading of a conversation for facts is.
func (t *tx) Reading(conversationID string) (memory.Reading, error) {
	return t.reading(conversationID, "")
}

// LockReading is Reading that lets no other transaction change it until this one
// ends.
func (t *tx) LockReading(conversationID string) (memory.Reading, error) {
	if err := t.writable(); err != nil {
		return memory.Reading{}, err
	}
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return memory.Reading{}, err
	}
	_, err := t.exec(t.raw("INSERT INTO memory_readings (user_id, conversation_id, exchanges, calls, ordered)"+
		" VALUES (?, ?, 0, 0, 0) ON CONFLICT (user_id, conversation_id) DO NOTHING", text(t.userID), text(conversationID)))
	if err != nil {
		return memory.Reading{}, err
	}
	return t.reading(conversationID, t.forUpdate())
}

func (t *tx) reading(conversationID, lock string) (r memory.Reading, err error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return r, err
	}
	_, err = t.scan(t.raw("SELECT exchanges, calls, ordered FROM memory_readings WHERE user_id = ? AND conversation_id = ?"+lock,
		text(t.userID), text(conversationID)), &r.Exchanges, &r.Calls, &r.Ordered)
	return r, err
}

// PutReading stores what LockReading returned, as it is now.
func (t *tx) PutReading(conversationID string, r memory.Reading) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return err
	}
	_, err := t.exec(t.raw("UPDATE memory_readings SET exchanges = ?, calls = ?, ordered = ? WHERE user_id = ? AND conversation_id = ?",
		r.Exchanges, r.Calls, r.Ordered, text(t.userID), text(conversationID)))
	return err
}
