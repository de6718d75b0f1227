package store

import (
	"nodest/chat"
	"nodest/store/sqldb"
)

type saveRow struct {
	chat.Save `db:"Automatic=is_automatic"`
	UserID    string
}

type saveResourceRow struct{ UserID, SaveID, ResourceID string }

// InsertSave stores a save point; a CreatedAt of zero becomes Now. What its pins
// name is kept as long as it is there.
func (t *chatTx) InsertSave(s *chat.Save) error {
	t.fillTimes(&s.CreatedAt)
	err := t.with(s.ConversationID).Insert("saves", &saveRow{*s, t.userID})
	if err != nil || s.Pins == nil {
		return err
	}
	rows := make([]saveResourceRow, len(s.Pins.Resources))
	for i, r := range s.Pins.Resources {
		rows[i] = saveResourceRow{t.userID, s.ID, r.ID}
	}
	return t.Insert("save_resources", rows, "ON CONFLICT (user_id, save_id, resource_id) DO NOTHING")
}

// Save returns one; fault.NotFound also when its conversation is deleted.
func (t *chatTx) Save(id string) (*chat.Save, error) {
	return sqldb.Find(t, "save point", func(r *saveRow) *chat.Save { return &r.Save },
		"SELECT s.* FROM saves s JOIN conversations c ON c.user_id = s.user_id AND c.id = s.conversation_id"+
			" WHERE s.user_id = ? AND s.id = ? AND c.deleted_at IS NULL", t.userID, id)
}

func (t *chatTx) Saves(conversationID string, automatic bool, cursor string, limit int) ([]*chat.Save, string, error) {
	where := "user_id = ? AND conversation_id = ?"
	if !automatic {
		where += " AND NOT is_automatic"
	}
	return sqldb.Page(t.with(conversationID), func(r *saveRow) *chat.Save { return &r.Save }, "created_at", cursor, limit,
		"SELECT * FROM saves WHERE "+where, t.userID, conversationID)
}

// DeleteSave removes a save point. What it points to stays in the conversation.
func (t *chatTx) DeleteSave(id string) error {
	return t.Unless(t.dropReplies(t.userID, id)).ExecOne("save point", "DELETE FROM saves WHERE user_id = ? AND id = ? AND EXISTS"+
		" (SELECT 1 FROM conversations c WHERE c.user_id = saves.user_id AND c.id = saves.conversation_id AND c.deleted_at IS NULL)", t.userID, id)
}
