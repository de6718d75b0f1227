package store

import (
	"cmp"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/knowledge"
	"nodest/store/sqldb"
)

// indexTx stores what is made of files, and reads it.
type indexTx struct{ *tx }

type editionRow struct {
	knowledge.Edition
	UserID string
}

type textPartRow struct {
	UserID  string
	FileID  string
	Edition int64
	Part    int
	Text    string
}

type chunkRow struct {
	knowledge.StoredChunk `db:"Index=idx Start=start_at End=end_at -Text -Embedded"`
	UserID                string
}

// ofFile is the condition on rows of an own file.
const ofFile = " WHERE user_id = ? AND file_id = ?"

// myFile is a session on which statements return fault.NotFound unless an own file is there.
func (t indexTx) myFile(id string) *sqldb.Session {
	return t.Unless(t.Require("file", "SELECT 1 FROM files WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.userID, id))
}

func (t indexTx) Editions(fileID string) ([]knowledge.Edition, error) {
	return sqldb.Map(t, func(r *editionRow) knowledge.Edition { return r.Edition },
		"SELECT * FROM knowledge_documents"+ofFile+" ORDER BY edition DESC", t.userID, fileID)
}

func (t indexTx) PutTexts(fileID string, edition int64, from int, parts []string) error {
	rows := make([]textPartRow, len(parts))
	for i, text := range parts {
		rows[i] = textPartRow{t.userID, fileID, edition, from + i, text}
	}
	return t.myFile(fileID).Insert("knowledge_texts", rows, "ON CONFLICT (user_id, file_id, edition, part) DO UPDATE SET text = EXCLUDED.text")
}

func (t indexTx) PutChunks(chunks []knowledge.StoredChunk) error {
	if len(chunks) == 0 {
		return nil
	}
	rows := make([]chunkRow, len(chunks))
	for i, c := range chunks {
		rows[i] = chunkRow{c, t.userID}
	}
	return t.myFile(chunks[0].FileID).Insert("knowledge_chunks", rows, `ON CONFLICT (user_id, file_id, edition, idx) DO UPDATE SET start_at = EXCLUDED.start_at,
		end_at = EXCLUDED.end_at, heading = EXCLUDED.heading, context = EXCLUDED.context, page = EXCLUDED.page, kind = EXCLUDED.kind, hash = EXCLUDED.hash`)
}

type contextRow struct {
	UserID  string
	FileID  string
	Hash    string
	Edition int64
	Line    string
}

func (t indexTx) Contexts(fileID string, hashes []string) (map[string]string, error) {
	lines := map[string]string{}
	err := sqldb.Each(t, func(r *contextRow) error {
		lines[r.Hash] = r.Line
		return nil
	}, "SELECT * FROM knowledge_contexts"+ofFile+" AND hash IN (?)", t.userID, fileID, hashes)
	return lines, err
}

func (t indexTx) PutContexts(fileID string, edition int64, lines map[string]string) error {
	rows := make([]contextRow, 0, len(lines))
	for hash, line := range lines {
		rows = append(rows, contextRow{t.userID, fileID, hash, edition, line})
	}
	slices.SortFunc(rows, func(a, b contextRow) int { return cmp.Compare(a.Hash, b.Hash) })
	return t.myFile(fileID).Insert("knowledge_contexts", rows, "ON CONFLICT (user_id, file_id, hash) DO UPDATE SET line = EXCLUDED.line, edition = EXCLUDED.edition")
}

func (t indexTx) PutEdition(e *knowledge.Edition) error {
	t.fillTimes(&e.CreatedAt)
	s := t.myFile(e.FileID)
	parts := (e.Chars + knowledge.TextPart - 1) / knowledge.TextPart
	return cmp.Or(
		s.Run("DELETE FROM knowledge_texts"+ofFile+" AND edition = ? AND part >= ?", t.userID, e.FileID, e.Edition, parts),
		s.Run("DELETE FROM knowledge_chunks"+ofFile+" AND edition = ? AND idx >= ?", t.userID, e.FileID, e.Edition, max(0, e.Chunks)),
		s.Run("DELETE FROM knowledge_documents"+ofFile+" AND edition = ?", t.userID, e.FileID, e.Edition),
		s.Insert("knowledge_documents", &editionRow{*e, t.userID}),
	)
}

func (t indexTx) PutFileSegment(fileID string, edition int64, data []byte) error {
	return t.myFile(fileID).Insert("knowledge_segments", &struct {
		UserID  string
		FileID  string
		Edition int64
		Data    []byte
	}{t.userID, fileID, edition, data}, "ON CONFLICT (user_id, file_id, edition) DO UPDATE SET data = EXCLUDED.data")
}

// PutProgress stores how far the running step of a file is.
func (t indexTx) PutProgress(fileID string, p knowledge.Progress) error {
	return t.ExecOne("file", "UPDATE files SET progress = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL", &p, t.userID, fileID)
}

// indexTables are the tables of editions and what is left of their keys.
var indexTables = []struct{ name, key string }{
	{"knowledge_segments", "edition"},
	{"knowledge_chunks", "edition, idx"},
	{"knowledge_contexts", "hash"},
	{"knowledge_texts", "edition, part"},
	{"knowledge_documents", "edition"},
}

// dropSome removes at most limit rows of an own file from a table.
func (t indexTx) dropSome(fileID, table, key, where string, limit int, args ...any) (int, error) {
	of := []any{t.userID, fileID}
	n, err := t.Exec("DELETE FROM "+table+ofFile+" AND ("+key+") IN (SELECT "+key+" FROM "+table+ofFile+where+" LIMIT ?)",
		slices.Concat(of, of, args, []any{limit})...)
	return int(n), err
}

// dropFrom removes at most limit rows of an own file from the tables of editions.
func (t indexTx) dropFrom(fileID, where string, limit int, args ...any) (removed int, err error) {
	for _, table := range indexTables {
		n, err := t.dropSome(fileID, table.name, table.key, where, limit-removed, args...)
		if removed += n; err != nil || removed >= limit {
			return removed, err
		}
	}
	return removed, nil
}

func (t indexTx) DropEditions(fileID string, before int64, limit int) (removed int, err error) {
	removed, err = t.dropFrom(fileID, " AND edition < ?", limit, before)
	if err != nil || removed >= limit {
		return removed, err
	}
	n, err := t.dropSome(fileID, "knowledge_vectors", "model, hash", " AND hash NOT IN (SELECT hash FROM knowledge_chunks"+ofFile+")",
		limit-removed, t.userID, fileID)
	return removed + n, err
}

func (t indexTx) PurgeIndex(fileID string, limit int) (removed int, err error) {
	if live := t.myFile(fileID).Ready(); !fault.Is(live, fault.NotFound) {
		return 0, live
	}
	removed, err = t.dropSome(fileID, "knowledge_vectors", "model, hash", "", limit)
	if err != nil || removed >= limit {
		return removed, err
	}
	n, err := t.dropFrom(fileID, "", limit-removed)
	return removed + n, err
}

func (t indexTx) IndexRows(fileID string) (map[string]int64, error) {
	rows := map[string]int64{}
	for _, table := range []string{"knowledge_documents", "knowledge_texts", "knowledge_chunks", "knowledge_contexts", "knowledge_segments", "knowledge_vectors"} {
		n, err := sqldb.Value[int64](t, "SELECT COUNT(*) FROM "+table+ofFile, t.userID, fileID)
		if err != nil {
			return nil, err
		}
		rows[table] = n
	}
	return rows, nil
}

func (t indexTx) Unembedded(fileID string, edition int64, model string, after, limit int) ([]knowledge.StoredChunk, error) {
	return t.chunks(t.Session, t.userID, "SELECT c.* FROM knowledge_chunks c WHERE c.user_id = ? AND c.file_id = ? AND c.edition = ? AND c.idx > ? AND "+lacksVector+
		" ORDER BY c.idx LIMIT ?", t.userID, fileID, edition, after, model, limit)
}

// lacksVector is a condition on a chunk c; its argument is the model.
const lacksVector = "NOT EXISTS (SELECT 1 FROM knowledge_vectors v WHERE v.user_id = c.user_id AND v.file_id = c.file_id" +
	" AND v.model = ? AND v.hash = c.hash)"

type kbVectorRow struct {
	UserID, FileID, Model, Hash string
	Vector                      sqldb.ZstdNumbers // an index.Packed
}

func (t indexTx) PutChunkVectors(fileID, model string, vectors map[string]index.Packed) error {
	rows := make([]kbVectorRow, 0, len(vectors))
	for hash, v := range vectors {
		rows = append(rows, kbVectorRow{t.userID, fileID, model, hash, sqldb.ZstdNumbers(v)})
	}
	slices.SortFunc(rows, func(a, b kbVectorRow) int { return cmp.Compare(a.Hash, b.Hash) })
	return t.myFile(fileID).Insert("knowledge_vectors", rows, "ON CONFLICT (user_id, file_id, model, hash) DO NOTHING")
}

func (t indexTx) EditionCoverage(fileID string, edition int64, model string) (done, rejected int, err error) {
	counts, err := sqldb.Value[struct{ Done, Rejected int }](t, `SELECT COUNT(v.vector) AS done, COUNT(*) - COUNT(v.vector) AS rejected
		FROM knowledge_chunks c JOIN knowledge_vectors v ON v.user_id = c.user_id AND v.file_id = c.file_id AND v.model = ? AND v.hash = c.hash
		WHERE c.user_id = ? AND c.file_id = ? AND c.edition = ?`, model, t.userID, fileID, edition)
	return counts.Done, counts.Rejected, err
}

func (t indexTx) Incomplete(model, after string, limit int) ([]knowledge.FileEdition, error) {
	return sqldb.All[knowledge.FileEdition](t, `SELECT f.id AS file_id, f.edition FROM files f
		WHERE f.user_id = ? AND f.id > ? AND f.deleted_at IS NULL AND f.edition > 0 AND EXISTS (SELECT 1 FROM knowledge_chunks c
			WHERE c.user_id = f.user_id AND c.file_id = f.id AND c.edition = f.edition AND `+lacksVector+`)
		ORDER BY f.id LIMIT ?`, t.userID, after, model, limit)
}

func (t indexTx) SpaceCoverage(model, baseID string) (done, total int, err error) {
	query, args := `SELECT COUNT(*) AS total, COUNT(v.hash) AS done FROM files f
		JOIN knowledge_chunks c ON c.user_id = f.user_id AND c.file_id = f.id AND c.edition = f.edition
		LEFT JOIN knowledge_vectors v ON v.user_id = c.user_id AND v.file_id = c.file_id AND v.model = ? AND v.hash = c.hash
		WHERE f.user_id = ? AND f.deleted_at IS NULL`, []any{model, t.userID}
	if baseID != "" {
		query += " AND f.id IN (SELECT b.file_id FROM knowledge_base_files b WHERE b.file_user_id = ? AND b.base_id = ?)"
		args = append(args, t.userID, baseID)
	}
	counts, err := sqldb.Value[struct{ Done, Total int }](t, query, args...)
	return counts.Done, counts.Total, err
}

func (t indexTx) DropVectors(keep []string, from string, limit int) (next string, err error) {
	where, args := "", []any{t.userID, t.userID, from}
	for _, model := range keep {
		where, args = where+" AND model <> ?", append(args, model)
	}
	files, err := sqldb.All[string](t, "DELETE FROM knowledge_vectors WHERE user_id = ? AND (file_id, model, hash) IN"+
		" (SELECT file_id, model, hash FROM knowledge_vectors WHERE user_id = ? AND file_id >= ?"+where+" ORDER BY file_id LIMIT ?)"+
		" RETURNING file_id", append(args, limit)...)
	if err != nil || len(files) < limit {
		return "", err
	}
	return slices.Max(files), nil
}

type spaceRow struct {
	knowledge.Space
	UserID string
}

func (t indexTx) Spaces() ([]knowledge.Space, error) {
	return sqldb.All[knowledge.Space](t, "SELECT model, dim, state FROM knowledge_spaces WHERE user_id = ? ORDER BY model", t.userID)
}

func (t indexTx) PutSpace(s knowledge.Space) error {
	return t.Insert("knowledge_spaces", &spaceRow{s, t.userID},
		"ON CONFLICT (user_id, model) DO UPDATE SET dim = EXCLUDED.dim, state = EXCLUDED.state")
}

// FixLength gives a space the length of its first vectors; later ones get what it is. Of two at
// once on PostgreSQL, the second waits here for the first.
func (t indexTx) FixLength(model string, length int) (int, error) {
	if length > 0 { // a statement that fails ends the session, so the next one says it
		_ = t.Run("UPDATE knowledge_spaces SET dim = ? WHERE user_id = ? AND model = ? AND dim = 0", length, t.userID, model)
	}
	return valueOf(sqldb.Get[int](t, "space", "SELECT dim FROM knowledge_spaces WHERE user_id = ? AND model = ?", t.userID, model))
}

// DropSpace removes a space; its vectors stay until DropVectors.
func (t indexTx) DropSpace(model string) error {
	return t.Run("DELETE FROM knowledge_spaces WHERE user_id = ? AND model = ?", t.userID, model)
}

// Busy reports whether files of a knowledge base are being processed again. A file that is ready
// only has its vectors checked.
func (t indexTx) Busy(baseID string) (bool, error) {
	return t.Has(`SELECT 1 FROM knowledge_base_files b JOIN files f ON f.user_id = b.file_user_id AND f.id = b.file_id AND f.deleted_at IS NULL AND f.edition > 0
		JOIN jobs j ON j.subject = `+t.IDText("f.id")+` AND j.user_id = f.user_id AND j.state IN ('queued', 'running')
		WHERE b.file_user_id = ? AND b.base_id = ?
			AND (j.kind = 'knowledge.ingest' OR j.kind = 'knowledge.embed' AND f.state NOT IN ('ready', 'failed'))`, t.userID, baseID)
}

func (t indexTx) Unfinished(limit int) ([]string, error) {
	return sqldb.All[string](t, `SELECT f.id FROM files f WHERE f.user_id = ? AND f.deleted_at IS NULL AND f.state NOT IN ('ready', 'failed')
		AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.user_id = ? AND j.subject = `+t.IDText("f.id")+` AND j.state IN ('queued', 'running')
			AND j.kind LIKE 'knowledge.%') ORDER BY f.id LIMIT ?`, t.userID, t.userID, limit)
}

func (t indexTx) Wordless(after string, limit int) ([]knowledge.FileEdition, error) {
	return sqldb.All[knowledge.FileEdition](t, `SELECT f.id AS file_id, f.edition FROM files f
		WHERE f.user_id = ? AND f.id > ? AND f.deleted_at IS NULL AND f.edition > 0 AND NOT EXISTS (SELECT 1 FROM knowledge_segments s
			WHERE s.user_id = f.user_id AND s.file_id = f.id AND s.edition = f.edition)
		ORDER BY f.id LIMIT ?`, t.userID, after, limit)
}

func (t indexTx) Refused(codes []string, limit int) ([]string, error) {
	type failed struct {
		ID    string
		Error *knowledge.FileError
	}
	all, err := sqldb.All[failed](t, "SELECT id, error FROM files WHERE user_id = ? AND deleted_at IS NULL AND state = 'failed' ORDER BY id", t.userID)
	var ids []string
	for _, r := range all {
		if r.Error != nil && slices.Contains(codes, r.Error.Code) && len(ids) < limit {
			ids = append(ids, r.ID)
		}
	}
	return ids, err
}

func (t indexTx) OwnConversation(id string) error { return t.chats.owns(id) }

// InsertQuery stores a question that was answered; fault.NotFound for a conversation that is
// not the user's.
func (t indexTx) InsertQuery(q *knowledge.Query) error {
	if q.ConversationID != nil {
		if err := t.chats.owns(*q.ConversationID); err != nil {
			return err
		}
	}
	t.fillTimes(&q.CreatedAt)
	return t.Insert("knowledge_queries", &struct {
		knowledge.Query
		UserID string
	}{*q, t.userID})
}
