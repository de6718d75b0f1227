package store

import (
	"nodest/nodest/app"
	"nodest/store/sqldb"
)

// App returns the store of app.Service.
func (db *DB) App() app.Store { return part[app.Tx]{db, (*tx).forApp} }

// forApp returns t as package app has it.
func (t *tx) forApp() app.Tx {
	return app.Tx{Tx: t, Characters: t.forCharacters(), Chats: t.forChats(), KeyTx: t.app}
}

// appTx stores the keys by which the user's app calls chats and characters.
type appTx struct{ *tx }

func (t appTx) AppChat(key string) (string, error) {
	return t.called(key, "conversation", "app_chats a JOIN conversations c ON c.user_id = a.user_id AND c.id = a.conversation_id")
}

func (t appTx) AppCharacter(key string) (string, error) {
	return t.called(key, "character", "app_characters a JOIN characters c ON c.user_id = a.user_id AND c.id = a.character_id")
}

func (t appTx) called(key, what, from string) (string, error) {
	return valueOf(sqldb.Get[string](t, what+" with this key", "SELECT c.id FROM "+from+
		" WHERE a.user_id = ? AND a.app_key = ? AND c.deleted_at IS NULL", t.userID, key))
}

func (t appTx) PutAppChat(key, conversationID string) error {
	return t.chats.with(conversationID).Run("INSERT INTO app_chats (user_id, app_key, conversation_id) VALUES (?, ?, ?)"+
		" ON CONFLICT (user_id, app_key) DO UPDATE SET conversation_id = EXCLUDED.conversation_id", sqldb.ID(t.userID), key, sqldb.ID(conversationID))
}

// mostAppKeys is how many keys of the app a character has at most.
const mostAppKeys = 100

// PutAppCharacter sets the character that the key stands for. A character with mostAppKeys keys
// gets no further one: nothing else bounds them.
func (t appTx) PutAppCharacter(key, characterID string) error {
	return t.characters.with(characterID).Run("INSERT INTO app_characters (user_id, app_key, character_id) SELECT ?, ?, ?"+
		" WHERE (SELECT COUNT(*) FROM app_characters a WHERE a.user_id = ? AND a.character_id = ?) < ?"+
		" ON CONFLICT (user_id, app_key) DO UPDATE SET character_id = EXCLUDED.character_id", sqldb.ID(t.userID), key, sqldb.ID(characterID), t.userID, characterID, mostAppKeys)
}
