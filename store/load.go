package store

import (
	"time"

	"nodest/chat"
	"nodest/store/sqldb"
)

// loadRow is an import that takes several transactions.
type loadRow struct {
	UserID, ConversationID string
	Chain                  int64
	TouchedAt              time.Time
}

// loadLife is how long an import may pause between two transactions.
const loadLife = time.Hour

// notLoading is a condition on messages m: they are not part of a branch that is being loaded.
const notLoading = "NOT EXISTS (SELECT 1 FROM loads l WHERE l.user_id = m.user_id AND l.conversation_id = m.conversation_id AND l.chain = m.chain)"

func (t archiveTx) OpenLoad(l chat.Load, coming int) error {
	t.room.coming, t.texts.imports = int64(coming), true
	return t.Unless(t.Require("conversation", "SELECT 1 FROM conversations WHERE user_id = ? AND id = ?", t.userID, l.ConversationID)).
		Insert("loads", &loadRow{t.userID, l.ConversationID, l.Branch, t.Now()})
}

const ofLoad = " WHERE user_id = ? AND conversation_id = ? AND chain = ?"

func (t archiveTx) TouchLoad(l chat.Load) error {
	t.texts.imports = true
	return t.ExecOne("import", "UPDATE loads SET touched_at = ?"+ofLoad+" AND touched_at > 0", t.Now(), t.userID, l.ConversationID, l.Branch)
}

func (t archiveTx) CloseLoad(l chat.Load) error {
	t.words.indexWords(l.ConversationID, time.Time{})
	return t.ExecOne("import", "DELETE FROM loads"+ofLoad+" AND touched_at > 0", t.userID, l.ConversationID, l.Branch)
}

func (t archiveTx) DropLoad(l chat.Load, limit int) (left bool, err error) {
	n, err := t.dropLoad(&loadRow{UserID: t.userID, ConversationID: l.ConversationID, Chain: l.Branch}, limit)
	return n > 0, err
}

// dropLoad removes at most limit messages of an import, and the import when none is left. From
// the first call on, the import cannot go on.
func (s *session) dropLoad(l *loadRow, limit int) (removed int64, err error) {
	load := []any{l.UserID, l.ConversationID, l.Chain}
	n, err := s.Exec("UPDATE loads SET touched_at = 0"+ofLoad, load...)
	if err != nil || n == 0 {
		return 0, err
	}
	which, args := "chain = ?", load
	if l.Chain == 0 {
		which, args = "TRUE", load[:2:2]
	}
	ids, err := sqldb.All[string](s, "SELECT id FROM messages WHERE user_id = ? AND conversation_id = ? AND "+which+" LIMIT ?", append(args, limit)...)
	switch {
	case err != nil:
		return 0, err
	case len(ids) > 0:
		removed, _, err = s.removeLeaves(l.UserID, ids)
		return removed, err
	case l.Chain == 0: // with the row of the import
		return s.Exec("DELETE FROM conversations WHERE user_id = ? AND id = ?", load[:2]...)
	}
	return s.Exec("DELETE FROM loads"+ofLoad, load...)
}

// oldLoads removes what unfinished imports left behind.
func oldLoads(s *session, life time.Duration) (int64, error) {
	l, err := sqldb.One[loadRow](s, "SELECT * FROM loads WHERE touched_at <= ? LIMIT 1", s.Now().Add(-life))
	if l == nil || err != nil {
		return 0, err
	}
	return s.dropLoad(l, maintainBatch)
}
