package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/memory"
	"nodest/store/sqldb"
)

// Memory returns the store of memory.Service.
func (db *DB) Memory() memory.Store { return memoryStore{part[memory.Tx]{db, (*tx).forMemory}} }

// forMemory returns t as package memory has it.
func (t *tx) forMemory() memory.Tx {
	return memory.Tx{Tx: t, Jobs: t.jobs, ScopeTx: t.memory, TextTx: t.texts, FactTx: t.facts}
}

// memoryTx stores scopes, and what they are searched by.
type memoryTx struct {
	*tx
	scopes map[string]*scopeNews // by character
}

type memoryStore struct{ part[memory.Tx] }

// Unembedded returns scopes that may have something to embed: memory.Store.
func (m memoryStore) Unembedded(ctx context.Context, model string, after memory.Scope, limit int) ([]memory.Scope, error) {
	return reading(ctx, m.db, func(s *session) ([]memory.Scope, error) {
		return sqldb.All[memory.Scope](s, `SELECT o.user_id, o.character_id FROM memory_scopes o
			JOIN characters c ON c.user_id = o.user_id AND c.id = o.character_id AND c.deleted_at IS NULL
			WHERE (o.user_id, o.character_id) > (?, ?)
				AND (o.embedded_change < o.version OR o.embedded_model <> ?)
			ORDER BY o.user_id, o.character_id LIMIT ?`, sqldb.After(after.UserID), sqldb.After(after.CharacterID), model, sqldb.Length(limit))
	})
}

// scopeNews is what a transaction has changed of what a scope's index is made of;
// finish writes it under the version that the scope gets.
type scopeNews struct {
	texts   []string                // revisions of texts that changed
	facts   []string                // ids
	vectors map[string]storedVector // vectors of texts and facts, by id
	buried  []string                // hashes of contents that got a tombstone
	sources []string                // revisions of texts that were buried
	copied  bool                    // texts of change 0 were copied
	gone    []lived                 // rows whose words were removed for good
	whole   bool                    // rows went, or came back: older indexes must be loaded whole
}

// news returns what this transaction has changed of a scope.
func (t *memoryTx) news(characterID string) *scopeNews {
	n := t.scopes[characterID]
	if n == nil {
		n = &scopeNews{}
		t.scopes[characterID] = n
	}
	return n
}

// flushMemory stores the texts that were said, and gives each scope that changed its
// next version.
func (t *memoryTx) flushMemory() error {
	said, err := t.texts.textsByScope()
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

func (t *memoryTx) flushScope(characterID string, n *scopeNews, said []*textRow) error {
	scope := memory.Scope{UserID: t.userID, CharacterID: characterID}
	if err := t.noteSame(characterID, n); err != nil {
		return err
	}
	version, err := t.raise(scope, n.whole || len(n.gone) > 0)
	if err != nil || version == 0 {
		return err
	}
	if err := t.dropSegments(scope, n.gone); err != nil {
		return err
	}
	for _, row := range said {
		row.CharacterID, row.FirstChange, row.Change = characterID, version, version
	}
	if err := cmp.Or(t.Insert("memory_texts", said), t.flushVectors(characterID, n.vectors, version)); err != nil {
		return err
	}
	at := []any{version, version, t.userID, characterID}
	if len(n.texts) > 0 {
		err = t.Run("UPDATE memory_texts"+changed+"revision_id IN (?)", append(at, n.texts)...)
	}
	if len(n.facts) > 0 {
		err = cmp.Or(err, t.Run("UPDATE memories"+changed+"id IN (?)", append(at, n.facts)...))
	}
	if n.copied {
		err = cmp.Or(err, t.Run("UPDATE memory_texts"+changed+"change = 0", at...))
	}
	return err
}

const (
	changed   = " SET " + atVersion + " AND "
	atVersion = "change = ?, first_change = CASE first_change WHEN 0 THEN ? ELSE first_change END WHERE " + ofScope
)

// raise gives a scope its next version; 0 when there is no such character of the user.
// The row stays locked until the transaction ends, so versions grow in the order of the
// commits.
func (s *session) raise(scope memory.Scope, whole bool) (version int64, err error) {
	more := ""
	if whole {
		more = ", whole_version = memory_scopes.version + 1"
	} else if version, found, err := s.Advance("memory_scopes", "version", 1, ofScope, scope.UserID, scope.CharacterID); found || err != nil {
		return version, err
	}
	return sqldb.Value[int64](s, `INSERT INTO memory_scopes (user_id, character_id, version, whole_version, embedded_model, embedded_change)
		SELECT c.user_id, c.id, 1, 1, '', 0 FROM characters c WHERE c.user_id = ? AND c.id = ?
		ON CONFLICT (user_id, character_id) DO UPDATE SET version = memory_scopes.version + 1`+more+`
		RETURNING version`, scope.UserID, scope.CharacterID)
}

// LockMemory locks the row of the character. The lock is the weak one: rows that refer
// to it can still be inserted, so nobody waits who only says something.
func (t *memoryTx) LockMemory(characterID string) error {
	if err := t.Writable(); err != nil {
		return err
	}
	return t.characters.ownsLocked(characterID, t.ForNoKeyUpdate())
}

func (t *memoryTx) MemoryVersion(characterID string) (int64, error) {
	at, err := valueOf(t.scope(characterID))
	return at.Version, err
}

func (t *memoryTx) TalkedIn(characterID, conversationID string) error {
	if conversationID == "" {
		return nil
	}
	c, err := t.chats.findConversation(conversationID, "")
	if err == nil && c.CharacterID != characterID {
		err = fault.New(fault.NotFound, "no conversation %q with this character", conversationID)
	}
	return err
}

type scopeRow struct {
	Version, WholeVersion int64
	EmbeddedModel         string
	EmbeddedChange        int64
	Models                modelList
}

// modelList are the models that made the vectors of a scope. A row has the place of its own, from 1.
type modelList []string

// scope returns the row of a scope, zero while it is empty; fault.NotFound for a character that
// is not the user's.
func (t *memoryTx) scope(characterID string) (*scopeRow, error) {
	return sqldb.Get[scopeRow](t, "character", `SELECT COALESCE(o.version, 0) AS version, COALESCE(o.whole_version, 0) AS whole_version,
			COALESCE(o.embedded_model, '') AS embedded_model, COALESCE(o.embedded_change, 0) AS embedded_change, o.models
		FROM characters c LEFT JOIN memory_scopes o ON o.user_id = c.user_id AND o.character_id = c.id
		WHERE c.user_id = ? AND c.id = ? AND c.deleted_at IS NULL`, t.userID, characterID)
}

// memoryJobs is how the names of jobs about memories begin.
const memoryJobs = "memory.%"

func (t *memoryTx) MemoryJobs(characterID, cursor string, limit int) ([]*jobs.Job, string, error) {
	return sqldb.Page(t.characters.with(characterID), (*jobRow).job, "created_at", cursor, limit, "SELECT * FROM jobs WHERE user_id = ? AND (kind LIKE ? OR kind = ?)"+
		" AND (subject = ? OR subject IN (SELECT "+t.IDText("c.id")+" FROM conversations c WHERE c.user_id = ? AND c.character_id = ?))",
		t.userID, memoryJobs, chat.JobFork, characterID, t.userID, characterID)
}
