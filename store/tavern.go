package store

import (
	"time"

	"nodest/internal/tavern"
	"nodest/internal/tavern/folder"
	"nodest/store/sqldb"
)

// Tavern returns the store of tavern.Service.
func (db *DB) Tavern() tavern.Store { return part[tavern.Tx]{db, (*tx).forTavern} }

// forTavern returns t as package tavern has it.
func (t *tx) forTavern() tavern.Tx {
	return tavern.Tx{Tx: t, FolderTx: t.tavern, Jobs: t.jobs, Characters: t.forCharacters(), Chats: t.forChats()}
}

// tavernTx stores imports of folders.
type tavernTx struct{ *tx }

type tavernImportRow struct {
	tavern.Import
	UserID string
}

func (r *tavernImportRow) imported() *tavern.Import { return &r.Import }

type tavernReportRow struct {
	tavern.File
	UserID, ImportID string
	Seq              int64
}

type tavernFileRow struct {
	tavern.Known `db:"Key=file_key"`
	UserID       string
}

func (r *tavernFileRow) known() *tavern.Known { return &r.Known }

func (t tavernTx) PutUpload(importID string, part int, data []byte) error {
	t.room.stores = true
	return t.Run("INSERT INTO tavern_parts (user_id, import_id, part, created_at, data) VALUES (?, ?, ?, ?, ?)"+
		" ON CONFLICT (user_id, import_id, part) DO NOTHING", sqldb.ID(t.userID), sqldb.ID(importID), part, t.Now(), data)
}

func (t tavernTx) Upload(importID string, part int) ([]byte, error) {
	return valueOf(sqldb.Get[[]byte](t, "part of the archive", "SELECT data FROM tavern_parts WHERE user_id = ? AND import_id = ? AND part = ?", t.userID, importID, part))
}

// DropUpload removes the first part last: by it, what is left of an interrupted removal is found.
func (t tavernTx) DropUpload(importID string, limit int) (removed int, err error) {
	n, err := t.Exec(`DELETE FROM tavern_parts WHERE user_id = ? AND import_id = ? AND part IN (SELECT p.part FROM tavern_parts p
		WHERE p.user_id = ? AND p.import_id = ? ORDER BY p.part DESC LIMIT ?)`, t.userID, importID, t.userID, importID, limit)
	return int(n), err
}

func (t tavernTx) InsertImport(i *tavern.Import) error {
	t.fillTimes(&i.CreatedAt, &i.UpdatedAt)
	return t.Insert("tavern_imports", &tavernImportRow{*i, t.userID})
}

func (t tavernTx) FolderImport(id string) (*tavern.Import, error) {
	lock := ""
	if t.Writable() == nil {
		lock = t.ForUpdate()
	}
	return sqldb.Find(t, "import", (*tavernImportRow).imported, "SELECT * FROM tavern_imports WHERE user_id = ? AND id = ?"+lock, t.userID, id)
}

func (t tavernTx) FolderImports(cursor string, limit int) ([]*tavern.Import, string, error) {
	return sqldb.Page(t, (*tavernImportRow).imported, "id", cursor, limit, "SELECT * FROM tavern_imports WHERE user_id = ?", t.userID)
}

// OpenImports locks the user's row.
func (t tavernTx) OpenImports() (int, error) {
	if _, err := t.users.LockLimits(); err != nil {
		return 0, err
	}
	return sqldb.Value[int](t, "SELECT COUNT(*) FROM tavern_imports WHERE user_id = ? AND state IN ('queued', 'running')", t.userID)
}

func (t tavernTx) UpdateImport(i *tavern.Import) error {
	i.UpdatedAt = t.Now()
	return t.UpdateOne("import", "tavern_imports", &tavernImportRow{*i, t.userID},
		[]string{"user_id", "id", "filename", "dry_run", "make_characters", "size", "created_at"}, "WHERE user_id = ? AND id = ?", t.userID, i.ID)
}

func (t tavernTx) DeleteImport(id string) error {
	return t.Unless(t.dropReplies(t.userID, id)).ExecOne("import", "DELETE FROM tavern_imports WHERE user_id = ? AND id = ?", t.userID, id)
}

func (t tavernTx) AddReports(importID string, first int, files []*tavern.File) error {
	rows := make([]*tavernReportRow, len(files))
	for i, f := range files {
		rows[i] = &tavernReportRow{*f, t.userID, importID, int64(first + i)}
	}
	return t.ofImport(importID).Insert("tavern_reports", rows)
}

// ofImport returns the session for statements about an import.
func (t tavernTx) ofImport(id string) *sqldb.Session {
	return t.Unless(t.Require("import", "SELECT 1 FROM tavern_imports WHERE user_id = ? AND id = ?", t.userID, id))
}

func (t tavernTx) Reports(importID string, f tavern.Filter, after int64, limit int) (files []*tavern.File, last int64, err error) {
	query, args := "SELECT * FROM tavern_reports WHERE user_id = ? AND import_id = ? AND seq > ?", []any{t.userID, importID, after}
	if f.Outcome != "" {
		query, args = query+" AND outcome = ?", append(args, f.Outcome)
	}
	if f.Kind != "" {
		query, args = query+" AND kind = ?", append(args, f.Kind)
	}
	rows, err := sqldb.All[tavernReportRow](t.ofImport(importID), query+" ORDER BY seq LIMIT ?", append(args, sqldb.Length(limit)+1)...)
	for i := range rows {
		if i == sqldb.Length(limit) {
			return files, last, err
		}
		files, last = append(files, &rows[i].File), rows[i].Seq
	}
	return files, -1, err
}

// keptFile holds for files whose content is kept, and whose object is there.
const keptFile = "parts > 0 AND times > 0 AND (object_id IS NULL" +
	" OR EXISTS (SELECT 1 FROM characters o WHERE o.user_id = tavern_files.user_id AND o.id = tavern_files.object_id AND o.deleted_at IS NULL)" +
	" OR EXISTS (SELECT 1 FROM resources o WHERE o.user_id = tavern_files.user_id AND o.id = tavern_files.object_id AND o.deleted_at IS NULL))"

const knownFiles = "SELECT * FROM tavern_files WHERE user_id = ?"

// KnownFile returns nil for a file that became nothing.
func (t tavernTx) KnownFile(key string) (*tavern.Known, error) {
	return knownOf(sqldb.One[tavernFileRow](t, knownFiles+" AND file_key = ?", t.userID, key))
}

func (t tavernTx) KnownAt(kind folder.Kind, path string) (*tavern.Known, error) {
	return knownOf(sqldb.One[tavernFileRow](t, knownFiles+" AND kind = ? AND path = ? ORDER BY created_at DESC, id DESC LIMIT 1", t.userID, kind, path))
}

func knownOf(row *tavernFileRow, err error) (*tavern.Known, error) {
	if row == nil || err != nil {
		return nil, err
	}
	return row.known(), nil
}

func (t tavernTx) KnownID(id string) (*tavern.Known, error) {
	return sqldb.Find(t, "file", (*tavernFileRow).known, knownFiles+" AND id = ?", t.userID, id)
}

func (t tavernTx) DeleteKnown(id string) error {
	return t.ExecOne("file", "DELETE FROM tavern_files WHERE user_id = ? AND id = ?", t.userID, id)
}

func (t tavernTx) KnownFiles(kind folder.Kind, objectID string, kept bool, cursor string, limit int) ([]*tavern.Known, string, error) {
	query, args := knownFiles, []any{t.userID}
	if kind != "" {
		query, args = query+" AND kind = ?", append(args, kind)
	}
	if objectID != "" {
		query, args = query+" AND object_id = ?", append(args, sqldb.ID(objectID))
	}
	if kept {
		query += " AND " + keptFile
	}
	return sqldb.Page(t, (*tavernFileRow).known, "id", cursor, limit, query, args...)
}

func (t tavernTx) PutKnown(k *tavern.Known) error {
	k.CreatedAt = t.Now()
	return t.Insert("tavern_files", &tavernFileRow{*k, t.userID}, "ON CONFLICT (user_id, file_key) DO UPDATE SET path = EXCLUDED.path,"+
		" object_kind = EXCLUDED.object_kind, object_id = EXCLUDED.object_id, times = EXCLUDED.times, version = EXCLUDED.version, parts = EXCLUDED.parts, created_at = EXCLUDED.created_at")
}

func (t tavernTx) PutKnownPart(fileID string, part int, data []byte) error {
	return t.Unless(t.Require("file", "SELECT 1 FROM tavern_files WHERE user_id = ? AND id = ?", t.userID, fileID)).
		Insert("tavern_contents", &tavernContentRow{t.userID, fileID, part, data}, "ON CONFLICT (user_id, file_id, part) DO NOTHING")
}

type tavernContentRow struct {
	UserID, FileID string
	Part           int
	Data           []byte
}

func (t tavernTx) KnownPart(fileID string, part int) ([]byte, error) {
	return valueOf(sqldb.Get[[]byte](t, "file", "SELECT data FROM tavern_contents WHERE user_id = ? AND file_id = ? AND part = ?", t.userID, fileID, part))
}

func (t tavernTx) PutReflected(conversationIDs ...string) error {
	if len(conversationIDs) == 0 {
		return nil
	}
	return t.Run("INSERT INTO dream_readings (user_id, conversation_id, reflected) SELECT c.user_id, c.id, c.message_seq FROM conversations c"+
		" WHERE c.user_id = ? AND c.id IN (?) ON CONFLICT (user_id, conversation_id) DO NOTHING", t.userID, conversationIDs)
}

// abandonedFolders removes archives of which no import came, or whose import has ended: one at a time.
func abandonedFolders(s *session, life time.Duration) (int64, error) {
	return s.Exec(`DELETE FROM tavern_parts WHERE (user_id, import_id, part) IN (SELECT q.user_id, q.import_id, q.part FROM tavern_parts q
		WHERE (q.user_id, q.import_id) IN (SELECT p.user_id, p.import_id FROM tavern_parts p
			WHERE p.part = 0 AND p.created_at <= ? AND NOT EXISTS (SELECT 1 FROM tavern_imports i
				WHERE i.user_id = p.user_id AND i.id = p.import_id AND i.state IN ('queued', 'running')) LIMIT 1)
		ORDER BY q.part DESC LIMIT 20)`, s.Now().Add(-life))
}

// goneFiles removes what is known of files whose object was removed for good. It is kept as long as
// the key under which the object was made.
func goneFiles(s *session, life time.Duration) (int64, error) {
	return s.Exec(`DELETE FROM tavern_files WHERE (user_id, id) IN (SELECT f.user_id, f.id FROM tavern_files f WHERE f.object_id IS NOT NULL AND f.created_at <= ?
		AND NOT EXISTS (SELECT 1 FROM conversations o WHERE o.user_id = f.user_id AND o.id = f.object_id)
		AND NOT EXISTS (SELECT 1 FROM characters o WHERE o.user_id = f.user_id AND o.id = f.object_id)
		AND NOT EXISTS (SELECT 1 FROM resources o WHERE o.user_id = f.user_id AND o.id = f.object_id) LIMIT 20)`, s.Now().Add(-life))
}
