package store

import (
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/knowledge"
	"nodest/knowledge/chunk"
	"nodest/store/sqldb"
)

// storedBase is the row of a knowledge base.
type storedBase struct {
	knowledge.Base `db:"OwnerID=user_id -Access -Rules -Files -Languages"`
	ChunkSize      int
	ChunkOverlap   int
}

func newStoredBase(b *knowledge.Base) *storedBase {
	row := &storedBase{Base: *b}
	if b.Rules != nil {
		row.ChunkSize, row.ChunkOverlap = b.Rules.Size, b.Rules.Overlap
	}
	return row
}

// baseRow is a knowledge base as the acting user has it.
type baseRow struct {
	storedBase
	Grade string // grade of access
}

func (r *baseRow) base() *knowledge.Base {
	r.Access = r.Grade
	r.Languages = []string{}
	if r.ChunkSize > 0 {
		r.Rules = &chunk.Rules{Size: r.ChunkSize, Overlap: r.ChunkOverlap}
	}
	return &r.Base
}

var (
	baseColumns = "b." + strings.Join(sqldb.Columns[storedBase](), ", b.") + ", r.access AS grade"
	selectBases = "SELECT " + baseColumns + " FROM " + readableBases +
		" r JOIN knowledge_bases b ON b.user_id = r.user_id AND b.id = r.id AND b.deleted_at IS NULL "
)

// LockBases locks the user's row.
func (t knowledgeTx) LockBases() (int, error) {
	if _, err := t.users.LockLimits(); err != nil {
		return 0, err
	}
	return sqldb.Value[int](t, "SELECT COUNT(*) FROM knowledge_bases WHERE user_id = ? AND deleted_at IS NULL", t.userID)
}

func (t knowledgeTx) InsertBase(b *knowledge.Base) error {
	t.fillTimes(&b.CreatedAt, &b.UpdatedAt)
	b.OwnerID, b.Access = t.userID, knowledge.AccessOwner
	row := newStoredBase(b)
	return t.Insert("knowledge_bases", row)
}

// Base returns a knowledge base that the user may read, locked in an Update: the lock comes
// first, so that what is read after it holds until the end.
func (t knowledgeTx) Base(id string) (*knowledge.Base, error) {
	if lock := t.locked("b"); lock != "" {
		if _, err := sqldb.All[string](t, "SELECT b.id FROM "+readableBases+
			" r JOIN knowledge_bases b ON b.user_id = r.user_id AND b.id = r.id WHERE r.id = ?"+lock, t.userID, t.userID, id); err != nil {
			return nil, err
		}
	}
	b, err := sqldb.Find(t, "knowledge base", (*baseRow).base, selectBases+"WHERE r.id = ? ORDER BY r.access LIMIT 1", t.userID, t.userID, id)
	if err != nil {
		return nil, err
	}
	return b, t.countFiles([]*knowledge.Base{b})
}

func (t knowledgeTx) Bases(cursor string, limit int) ([]*knowledge.Base, string, error) {
	items, next, err := sqldb.Page(t, (*baseRow).base, "b.created_at", cursor, limit, selectBases+"WHERE TRUE", t.userID, t.userID)
	if err != nil {
		return nil, "", err
	}
	return items, next, t.countFiles(items)
}

// countFiles sets Files and Languages.
func (t knowledgeTx) countFiles(bases []*knowledge.Base) error {
	ids, at := make([]string, len(bases)), map[[2]string]*knowledge.Base{}
	for i, b := range bases {
		ids[i], at[[2]string{b.OwnerID, b.ID}] = b.ID, b
	}
	return sqldb.Each(t, func(r *struct {
		UserID, BaseID, Language string
		Files                    int
	},
	) error {
		if b := at[[2]string{r.UserID, r.BaseID}]; b != nil {
			if b.Files += r.Files; r.Language != "" {
				b.Languages = append(b.Languages, r.Language)
			}
		}
		return nil
	}, "SELECT m.user_id, m.base_id, f.language, COUNT(*) AS files"+inReadable+
		"JOIN files f ON f.user_id = m.file_user_id AND f.id = m.file_id AND f.deleted_at IS NULL WHERE m.base_id IN (?)"+
		" GROUP BY m.user_id, m.base_id, f.language ORDER BY files DESC, f.language", t.userID, t.userID, ids)
}

// UpdateBase stores what can change of an own one.
func (t knowledgeTx) UpdateBase(b *knowledge.Base) error {
	b.UpdatedAt = t.Now()
	return t.UpdateOne("knowledge base", "knowledge_bases", newStoredBase(b), []string{"user_id", "id", "created_at"},
		"WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.userID, b.ID)
}

func (t knowledgeTx) DeleteBase(id string) error {
	err := t.ExecOne("knowledge base", "UPDATE knowledge_bases SET deleted_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL",
		t.Now(), t.userID, id)
	if err != nil {
		return err
	}
	return t.each([]string{
		"DELETE FROM knowledge_grants WHERE user_id = ? AND base_id = ?",
		"DELETE FROM character_bases WHERE base_user_id = ? AND base_id = ?",
	}, t.userID, id)
}

// PurgeBases removes rows of hidden ones: what was in them first.
func (t knowledgeTx) PurgeBases(limit int) (removed int, err error) {
	n, err := t.Exec(`DELETE FROM knowledge_base_files WHERE (user_id, base_id, file_user_id, file_id) IN
		(SELECT m.user_id, m.base_id, m.file_user_id, m.file_id FROM knowledge_bases b
			JOIN knowledge_base_files m ON m.user_id = b.user_id AND m.base_id = b.id
			WHERE b.user_id = ? AND b.deleted_at IS NOT NULL LIMIT ?)`, t.userID, limit)
	if err != nil || n > 0 {
		return int(n), err
	}
	gone, err := sqldb.All[string](t, "DELETE FROM knowledge_bases WHERE user_id = ? AND id IN"+
		" (SELECT id FROM knowledge_bases WHERE user_id = ? AND deleted_at IS NOT NULL LIMIT ?) RETURNING id", t.userID, t.userID, limit)
	if err != nil {
		return 0, err
	}
	return len(gone), t.dropReplies(t.userID, gone...)
}

// writable is a session on which statements fail unless the acting user may add files to a
// knowledge base.
func (t knowledgeTx) writable(b *knowledge.Base) *sqldb.Session {
	grade, err := sqldb.Get[string](t, "knowledge base", "SELECT r.access FROM "+readableBases+
		" r JOIN knowledge_bases b ON b.user_id = r.user_id AND b.id = r.id AND b.deleted_at IS NULL WHERE r.user_id = ? AND r.id = ?",
		t.userID, t.userID, b.OwnerID, b.ID)
	if err == nil && *grade == knowledge.AccessRead {
		err = fault.New(fault.Forbidden, "the knowledge base was shared with you for reading only")
	}
	return t.Unless(err)
}

type memberRow struct {
	UserID, BaseID, FileUserID, FileID string
	Synced                             bool
	CreatedAt                          time.Time
}

func (t knowledgeTx) AddToBase(b *knowledge.Base, fileID string, synced bool) (added bool, err error) {
	if _, err := t.OwnFile(fileID); err != nil {
		return false, err
	}
	n, err := t.writable(b).InsertNew("knowledge_base_files", &memberRow{b.OwnerID, b.ID, t.userID, fileID, synced, t.Now()}, "ON CONFLICT DO NOTHING")
	return n > 0, err
}

func (t knowledgeTx) RemoveFromBase(b *knowledge.Base, fileID string) (removed bool, err error) {
	n, err := t.writable(b).Exec("DELETE FROM knowledge_base_files WHERE user_id = ? AND base_id = ? AND file_id = ?"+
		" AND EXISTS (SELECT 1 FROM "+readableBases+" r WHERE r.user_id = knowledge_base_files.user_id AND r.id = knowledge_base_files.base_id AND r.access <> 'read')",
		b.OwnerID, b.ID, fileID, t.userID, t.userID)
	return n > 0, err
}

// memberColumns are those of a file in a knowledge base.
var memberColumns = strings.Replace(fileColumns, "f.source,", "CASE WHEN m.synced THEN '"+knowledge.SourceSync+"' ELSE f.source END AS source,", 1)

func (t knowledgeTx) BaseFiles(b *knowledge.Base, cursor string, limit int) ([]*knowledge.File, string, error) {
	return sqldb.Page(t, t.file, "f.created_at", cursor, limit, "SELECT "+memberColumns+inReadable+
		"JOIN files f ON f.user_id = m.file_user_id AND f.id = m.file_id AND f.deleted_at IS NULL WHERE m.user_id = ? AND m.base_id = ?",
		t.userID, t.userID, b.OwnerID, b.ID)
}

func (t knowledgeTx) OnlyIn(baseID string, limit int) (ids []string, err error) {
	return sqldb.All[string](t, `SELECT f.id FROM knowledge_base_files m JOIN files f ON f.user_id = m.file_user_id AND f.id = m.file_id AND f.deleted_at IS NULL
		WHERE m.user_id = ? AND m.base_id = ? AND m.file_user_id = ? AND NOT EXISTS (SELECT 1 FROM knowledge_base_files o
			JOIN knowledge_bases ob ON ob.user_id = o.user_id AND ob.id = o.base_id AND ob.deleted_at IS NULL
			WHERE o.file_user_id = m.file_user_id AND o.file_id = m.file_id AND NOT (o.user_id = m.user_id AND o.base_id = m.base_id))
		ORDER BY f.id LIMIT ?`, t.userID, baseID, t.userID, limit)
}

func (t knowledgeTx) InUse(fileID string) (bool, error) {
	unused, err := t.Has(`SELECT 1 FROM files f WHERE f.user_id = ? AND f.id = ? AND f.deleted_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM knowledge_base_files m
			JOIN knowledge_bases b ON b.user_id = m.user_id AND b.id = m.base_id AND b.deleted_at IS NULL
			WHERE m.file_user_id = f.user_id AND m.file_id = f.id)
		AND NOT EXISTS (SELECT 1 FROM character_files k WHERE k.file_user_id = f.user_id AND k.file_id = f.id)`, t.userID, fileID)
	return !unused, err
}

func (t knowledgeTx) BasesOf(f *knowledge.File) ([]*knowledge.Base, error) {
	return sqldb.Map(t, (*baseRow).base, selectBases+`JOIN knowledge_base_files m ON m.user_id = b.user_id AND m.base_id = b.id
		WHERE m.file_user_id = ? AND m.file_id = ? ORDER BY b.created_at, b.id`, t.userID, t.userID, f.OwnerID, f.ID)
}

func (t knowledgeTx) WantsContext(fileID string) (bool, error) {
	return t.Has(`SELECT 1 FROM knowledge_base_files m
		JOIN knowledge_bases b ON b.user_id = m.user_id AND b.id = m.base_id AND b.deleted_at IS NULL AND b.context_lines
		WHERE m.user_id = ? AND m.file_user_id = ? AND m.file_id = ?`, t.userID, t.userID, fileID)
}

func (t knowledgeTx) RulesOf(fileID string) (*chunk.Rules, error) {
	return sqldb.One[chunk.Rules](t, `SELECT b.chunk_size AS size, b.chunk_overlap AS overlap FROM knowledge_base_files m
		JOIN knowledge_bases b ON b.user_id = m.user_id AND b.id = m.base_id AND b.deleted_at IS NULL
		WHERE m.file_user_id = ? AND m.file_id = ? AND b.chunk_size > 0 ORDER BY m.created_at, b.id LIMIT 1`, t.userID, fileID)
}
