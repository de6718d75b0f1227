package store

import (
	"context"
	"maps"
	"slices"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/jobs"
	"nodest/memory"
	"nodest/nodest/app"
	"nodest/store/sqldb"
)

// Characters is the store of character.Service.
func (db *DB) Characters() character.Store { return part[character.Tx]{db, (*tx).characters} }

// Chats is the store of chat.Service.
func (db *DB) Chats() chat.Store { return part[chat.Tx]{db, (*tx).chats} }

// App is the store of app.Service.
func (db *DB) App() app.Store { return part[app.Tx]{db, (*tx).app} }

// Memory is the store of memory.Service.
func (db *DB) Memory() memory.Store { return memoryStore{part[memory.Tx]{db, (*tx).memory}} }

type memoryStore struct{ part[memory.Tx] }

// Unembedded returns scopes with something to embed: memory.Store.
func (m memoryStore) Unembedded(ctx context.Context, model string, after memory.Scope, limit int) ([]memory.Scope, error) {
	return reading(ctx, m.db, func(s *session) ([]memory.Scope, error) {
		return sqldb.All[memory.Scope](s, `SELECT o.user_id, o.character_id FROM memory_scopes o
			JOIN characters c ON c.user_id = o.user_id AND c.id = o.character_id AND c.deleted_at IS NULL
			WHERE (o.user_id, o.character_id) > (?, ?)
				AND (EXISTS (SELECT 1 FROM memory_texts t WHERE t.user_id = o.user_id AND t.character_id = o.character_id
					AND t.hash <> '' AND `+withoutVector("t")+`)
				OR EXISTS (SELECT 1 FROM memories t WHERE t.user_id = o.user_id AND t.character_id = o.character_id
					AND `+counts("t")+` AND `+withoutVector("t")+`))
			ORDER BY o.user_id, o.character_id LIMIT ?`, after.UserID, after.CharacterID, model, model, sqldb.Length(limit))
	})
}

// scopeNews is what a transaction has changed of what a scope's index is made of;
// finish writes it under the version that the scope gets.
type scopeNews struct {
	texts  []string // revisions of texts that changed
	facts  []string // ids
	hashes []string // of contents with other vectors
	chats  []string // conversations that are shown now
	whole  bool     // rows went: older indexes must be loaded whole
}

// news returns what this transaction has changed of a scope.
func (t *tx) news(characterID string) *scopeNews {
	n := t.scopes[characterID]
	if n == nil {
		n = &scopeNews{}
		t.scopes[characterID] = n
	}
	return n
}

// flushMemory stores the texts that were said, and gives each scope that changed its
// next version.
func (t *tx) flushMemory() error {
	said, err := t.textsByScope()
	if err != nil {
		return err
	}
	for characterID := range said {
		t.news(characterID)
	}
	for _, id := range slices.Sorted(maps.Keys(t.scopes)) { // as locks are taken
		if err := t.flushScope(id, t.scopes[id], said[id]); err != nil {
			return err
		}
	}
	return nil
}

// ofScope is a condition on rows of a scope.
const ofScope = "user_id = ? AND character_id = ?"

func (t *tx) flushScope(characterID string, n *scopeNews, said []*textRow) error {
	version, err := t.raise(memory.Scope{UserID: t.userID, CharacterID: characterID}, n.whole)
	if err != nil || version == 0 {
		return err
	}
	for _, row := range said {
		row.CharacterID, row.Change = characterID, version
	}
	if err := t.Insert("memory_texts", said); err != nil {
		return err
	}
	for _, m := range []struct {
		table, column string
		ids           []string
	}{
		{"memory_texts", "revision_id", n.texts}, {"memories", "id", n.facts},
		{"memory_texts", "hash", n.hashes}, {"memories", "hash", n.hashes}, {"memory_texts", "conversation_id", n.chats},
	} {
		if len(m.ids) == 0 {
			continue
		}
		_, err := t.Exec("UPDATE "+m.table+" SET change = ? WHERE "+ofScope+" AND "+m.column+" IN (?)", version, t.userID, characterID, m.ids)
		if err != nil {
			return err
		}
	}
	return nil
}

// raise gives a scope its next version; 0 when there is no such character of the user.
// The row stays locked until the transaction ends, so versions grow in the order of the
// commits.
func (s *session) raise(scope memory.Scope, whole bool) (version int64, err error) {
	more := ""
	if whole {
		more = ", whole_version = memory_scopes.version + 1"
	}
	return sqldb.Value[int64](s, `INSERT INTO memory_scopes (user_id, character_id, version, whole_version)
		SELECT c.user_id, c.id, 1, 1 FROM characters c WHERE c.user_id = ? AND c.id = ?
		ON CONFLICT (user_id, character_id) DO UPDATE SET version = memory_scopes.version + 1`+more+`
		RETURNING version`, scope.UserID, scope.CharacterID)
}

// LockMemory locks the row of the character. The lock is the weak one: rows that refer
// to it can still be inserted, so nobody waits who only says something.
func (t *tx) LockMemory(characterID string) error {
	if err := t.Writable(); err != nil {
		return err
	}
	return t.owns(characterID, t.ForNoKeyUpdate())
}

// MemoryVersion returns the version of a scope.
func (t *tx) MemoryVersion(characterID string) (int64, error) {
	at, err := t.scope(characterID)
	if err != nil {
		return 0, err
	}
	return at.Version, nil
}

// TalkedIn returns fault.NotFound for a conversation that is not one of the user with
// this character.
func (t *tx) TalkedIn(characterID, conversationID string) error {
	if conversationID == "" {
		return nil
	}
	c, err := t.findConversation(conversationID, "")
	if err == nil && c.CharacterID != characterID {
		err = fault.New(fault.NotFound, "no conversation %q with this character", conversationID)
	}
	return err
}

type scopeVersions struct{ Version, WholeVersion int64 }

// scope returns the versions of a scope; fault.NotFound for a character that is not
// the user's.
func (t *tx) scope(characterID string) (*scopeVersions, error) {
	return sqldb.Get[scopeVersions](t, "character", `SELECT COALESCE(o.version, 0) AS version, COALESCE(o.whole_version, 0) AS whole_version
		FROM characters c LEFT JOIN memory_scopes o ON o.user_id = c.user_id AND o.character_id = c.id
		WHERE c.user_id = ? AND c.id = ? AND c.deleted_at IS NULL`, t.userID, characterID)
}

// memoryJobs is how the names of jobs about memories begin.
const memoryJobs = "memory.%"

// MemoryJobs lists the jobs about a character's memory and its conversations.
func (t *tx) MemoryJobs(characterID, cursor string, limit int) ([]*jobs.Job, string, error) {
	return sqldb.Page(t.withCharacter(characterID), (*jobRow).job, "created_at", cursor, limit, "SELECT * FROM jobs WHERE user_id = ? AND (kind LIKE ? OR kind = ?)"+
		" AND (subject = ? OR subject IN (SELECT c.id FROM conversations c WHERE c.user_id = ? AND c.character_id = ?))",
		t.userID, memoryJobs, chat.JobFork, characterID, t.userID, characterID)
}
