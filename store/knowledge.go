package store

import (
	"context"

	"nodest/knowledge"
	"nodest/store/sqldb"
)

// Knowledge returns the store of knowledge.Service.
func (db *DB) Knowledge() knowledge.Store {
	return knowledgeStore{part[knowledge.Tx]{db, (*tx).knowledge}}
}

type knowledgeStore struct{ part[knowledge.Tx] }

// FileOwners returns users with files, by id and beginning after one.
func (s knowledgeStore) FileOwners(ctx context.Context, after string, limit int) ([]string, error) {
	return reading(ctx, s.db, func(s *session) ([]string, error) {
		return sqldb.All[string](s, "SELECT u.id FROM users u WHERE u.id > ? AND EXISTS (SELECT 1 FROM files f"+
			" WHERE f.user_id = u.id AND f.deleted_at IS NULL) ORDER BY u.id LIMIT ?", after, limit)
	})
}

// knowledge is t as package knowledge has it.
func (t *tx) knowledge() knowledge.Tx {
	k := knowledgeTx{t}
	return knowledge.Tx{Tx: t, FileTx: k, BaseTx: k, BindingTx: k, IndexTx: indexTx{t}, Jobs: t, Characters: t.characters()}
}

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
