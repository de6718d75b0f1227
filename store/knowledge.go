package store

import (
	"context"
	"time"

	"nodest/knowledge"
	"nodest/store/sqldb"
)

// Knowledge returns the store of knowledge.Service.
func (db *DB) Knowledge() knowledge.Store {
	return knowledgeStore{part[knowledge.Tx]{db, (*tx).forKnowledge}}
}

type knowledgeStore struct{ part[knowledge.Tx] }

// FileOwners returns users with files, hidden ones too, by id and beginning after one.
func (s knowledgeStore) FileOwners(ctx context.Context, after string, limit int) ([]string, error) {
	return reading(ctx, s.db, func(s *session) ([]string, error) {
		return sqldb.All[string](s, "SELECT u.id FROM users u WHERE u.id > ? AND EXISTS (SELECT 1 FROM files f"+
			" WHERE f.user_id = u.id) ORDER BY u.id LIMIT ?", after, limit)
	})
}

// forKnowledge returns t as package knowledge has it.
func (t *tx) forKnowledge() knowledge.Tx {
	return knowledge.Tx{
		Tx: t, FileTx: t.knowledge, BaseTx: t.knowledge, BindingTx: t.knowledge,
		IndexTx: t.index, VectorTx: t.index, PassageTx: t.index, Jobs: t.jobs, Characters: t.forCharacters(), Feedback: t.votes, Log: t.forCognition(),
	}
}

// knowledgeTx stores files, knowledge bases, and who may read them.
type knowledgeTx struct{ *tx }

// readableBases are the knowledge bases that the acting user may read, and how; its arguments
// are the user, twice. Whether one is hidden is for who joins it to say.
const readableBases = `(SELECT user_id, id, 'owner' AS access FROM knowledge_bases WHERE user_id = ?
	UNION ALL SELECT user_id, base_id AS id, role AS access FROM knowledge_grants WHERE grantee_id = ?)`

// inReadable joins the memberships m of knowledge bases b that the acting user may read; its
// arguments are those of readableBases.
const inReadable = ` FROM ` + readableBases + ` r JOIN knowledge_bases b ON b.user_id = r.user_id AND b.id = r.id AND b.deleted_at IS NULL
	JOIN knowledge_base_files m ON m.user_id = b.user_id AND m.base_id = b.id `

// locked is the end of a SELECT that locks rows of a table in an Update.
func (t knowledgeTx) locked(table string) string {
	if t.Writable() != nil {
		return ""
	}
	if lock := t.ForNoKeyUpdate(); lock != "" {
		return lock + " OF " + table
	}
	return ""
}

// leaveKnowledge removes what rows of other users say of a user that is deleted: access to
// their knowledge bases, and the user's own files and knowledge bases there and with their
// characters.
func (s *session) leaveKnowledge(userID string) error {
	return s.each([]string{
		"DELETE FROM knowledge_grants WHERE grantee_id = ?",
		"DELETE FROM knowledge_base_files WHERE file_user_id = ?",
		"DELETE FROM character_files WHERE file_user_id = ?",
		"DELETE FROM character_bases WHERE base_user_id = ?",
	}, userID)
}

// abandonedUploads removes the parts of an upload of which no file came, or of a content that
// was replaced: one content at a time, which has at most as many parts as a file may have.
func abandonedUploads(s *session, life time.Duration) (int64, error) {
	return s.Exec(`DELETE FROM file_parts WHERE (user_id, content_id) IN (SELECT p.user_id, p.content_id FROM file_parts p
		WHERE p.part = 0 AND p.created_at <= ? AND NOT EXISTS (SELECT 1 FROM files f
			WHERE f.user_id = p.user_id AND f.content_id = p.content_id) LIMIT 1)`, s.Now().Add(-life))
}
