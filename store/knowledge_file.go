package store

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"nodest/internal/cite"
	"nodest/knowledge"
	"nodest/store/sqldb"
)

type fileRow struct {
	knowledge.File `db:"OwnerID=user_id Declared=declared_type -Access -Duplicate"`
}

// file is the file as the acting user sees it.
func (t knowledgeTx) file(r *fileRow) *knowledge.File {
	r.Access = knowledge.AccessRead
	if r.OwnerID == t.userID {
		r.Access = knowledge.AccessOwner
	}
	return &r.File
}

var (
	fileColumns = "f." + strings.Join(sqldb.Columns[fileRow](), ", f.")
	ownFiles    = "SELECT " + fileColumns + " FROM files f WHERE f.user_id = ? AND f.deleted_at IS NULL "
)

// readableFile is true of a file f that the acting user may read; its arguments are the user,
// three times.
const readableFile = "f.deleted_at IS NULL AND (f.user_id = ? OR EXISTS (SELECT 1" + inReadable +
	" WHERE m.file_user_id = f.user_id AND m.file_id = f.id))"

// LockFiles locks the user's row.
func (t knowledgeTx) LockFiles() (files int, bytes int64, err error) {
	if _, err := t.users.LockLimits(); err != nil {
		return 0, 0, err
	}
	return t.CountFiles()
}

func (t knowledgeTx) CountFiles() (files int, bytes int64, err error) {
	n, err := sqldb.Value[struct{ Files, Bytes int64 }](t, "SELECT COUNT(*) AS files, CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes"+
		" FROM files WHERE user_id = ? AND deleted_at IS NULL", t.userID)
	return int(n.Files), n.Bytes, err
}

func (t knowledgeTx) InsertFile(f *knowledge.File) error {
	t.fillTimes(&f.CreatedAt, &f.UpdatedAt)
	f.OwnerID, f.Access = t.userID, knowledge.AccessOwner
	return t.Insert("files", &fileRow{*f})
}

func (t knowledgeTx) OwnFile(id string) (*knowledge.File, error) {
	return sqldb.Find(t, "file", t.file, ownFiles+"AND f.id = ?"+t.locked("f"), t.userID, id)
}

func (t knowledgeTx) File(id string) (*knowledge.File, error) {
	if own, err := t.anyFile("AND f.id = ?", id); err != nil || own != nil {
		return own, err
	}
	return sqldb.Find(t, "file", t.file, "SELECT "+fileColumns+inReadable+
		"JOIN files f ON f.user_id = m.file_user_id AND f.id = m.file_id AND f.deleted_at IS NULL WHERE m.file_id = ? LIMIT 1",
		t.userID, t.userID, id)
}

// mostCited is how many files one statement of markGone looks up.
const mostCited = 500

// markGone sets Gone of references to files: whether the user cannot read the file now.
func (t knowledgeTx) markGone(refs []*cite.Reference) error {
	readable := map[string]bool{}
	for _, r := range refs {
		if r.FileID != "" {
			readable[r.FileID] = false
		}
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(readable)), mostCited) {
		err := sqldb.Each(t, func(id *string) error {
			readable[*id] = true
			return nil
		}, "SELECT f.id FROM files f WHERE f.user_id = ? AND f.deleted_at IS NULL AND f.id IN (?) UNION SELECT f.id"+inReadable+
			"JOIN files f ON f.user_id = m.file_user_id AND f.id = m.file_id AND f.deleted_at IS NULL WHERE m.file_id IN (?)",
			t.userID, ids, t.userID, t.userID, ids)
		if err != nil {
			return err
		}
	}
	for _, r := range refs {
		r.Gone = r.FileID != "" && !readable[r.FileID]
	}
	return nil
}

func (t knowledgeTx) FileByHash(sha256 string) (*knowledge.File, error) {
	return t.anyFile("AND f.sha256 = ?", sha256)
}

func (t knowledgeTx) FileByURL(url string) (*knowledge.File, error) {
	return t.anyFile("AND f.source_url <> '' AND f.source_url = ? ORDER BY f.created_at DESC, f.id DESC LIMIT 1", url)
}

// anyFile is an own file that a condition finds, nil if there is none.
func (t knowledgeTx) anyFile(where string, arg string) (*knowledge.File, error) {
	row, err := sqldb.One[fileRow](t, ownFiles+where, t.userID, arg)
	if err != nil || row == nil {
		return nil, err
	}
	return t.file(row), nil
}

func (t knowledgeTx) Files(state, cursor string, limit int) ([]*knowledge.File, string, error) {
	query, args := ownFiles, []any{t.userID}
	if state != "" {
		query, args = query+"AND f.state = ?", append(args, state)
	}
	return sqldb.Page(t, t.file, "f.created_at", cursor, limit, query, args...)
}

// fileFixed are the columns of a file that do not change.
var fileFixed = []string{"user_id", "id", "source", "created_at"}

func (t knowledgeTx) UpdateFile(f *knowledge.File) error {
	return t.UpdateOne("file", "files", &fileRow{*f}, fileFixed, "WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.userID, f.ID)
}

func (t knowledgeTx) DeleteFile(id string) error {
	err := t.ExecOne("file", "UPDATE files SET deleted_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.Now(), t.userID, id)
	if err != nil {
		return err
	}
	readers, err := t.readers(id)
	if err != nil {
		return err
	}
	for _, userID := range readers {
		if err := errors.Join(t.dropReplies(userID, id), t.dropQuestions(userID, id), t.dropResearchesOn(userID, id)); err != nil {
			return err
		}
	}
	return cmp.Or(t.dropRecordsOfFile(id), t.each([]string{
		"DELETE FROM knowledge_base_files WHERE file_user_id = ? AND file_id = ?",
		"DELETE FROM character_files WHERE file_user_id = ? AND file_id = ?",
	}, t.userID, id))
}

// readers are the other users who can read an own file in knowledge bases, or were sent texts of it.
func (t knowledgeTx) readers(id string) ([]string, error) {
	const members = "FROM knowledge_base_files m WHERE m.file_user_id = ? AND m.file_id = ?"
	return sqldb.All[string](t, "SELECT user_id FROM (SELECT m.user_id "+members+" UNION SELECT user_id FROM prompt_files WHERE file_id = ?"+
		" UNION SELECT user_id FROM research_files WHERE file_id = ?"+
		" UNION SELECT g.grantee_id FROM knowledge_grants g WHERE (g.user_id, g.base_id) IN (SELECT m.user_id, m.base_id "+members+")) AS readers WHERE user_id <> ?",
		t.userID, id, id, id, t.userID, id, t.userID)
}

// dropQuestions removes the questions of a user whose answers may have words of a file.
func (s *session) dropQuestions(userID, fileID string) error {
	return s.Run("DELETE FROM knowledge_queries WHERE user_id = ? AND sources LIKE ?", userID, "%"+fileID+"%")
}

func (t knowledgeTx) PutPart(contentID string, part int, data []byte) error {
	t.room.stores = true
	return t.Run("INSERT INTO file_parts (user_id, content_id, part, created_at, data) VALUES (?, ?, ?, ?, ?)"+
		" ON CONFLICT (user_id, content_id, part) DO NOTHING", sqldb.ID(t.userID), sqldb.ID(contentID), part, t.Now(), data)
}

func (t knowledgeTx) FilePart(f *knowledge.File, part int) ([]byte, error) {
	return valueOf(sqldb.Get[[]byte](t, "file", "SELECT p.data FROM files f JOIN file_parts p ON p.user_id = f.user_id AND p.content_id = f.content_id"+
		" WHERE f.user_id = ? AND f.id = ? AND f.content_id = ? AND p.part = ? AND "+readableFile,
		f.OwnerID, f.ID, f.ContentID, part, t.userID, t.userID, t.userID))
}

// DropParts removes parts of an own content that no file has, the first one last: by it, what is
// left of an interrupted removal is found.
func (t knowledgeTx) DropParts(contentID string, limit int) (removed int, err error) {
	n, err := t.Exec(`DELETE FROM file_parts WHERE user_id = ? AND content_id = ? AND part IN (SELECT p.part FROM file_parts p
		WHERE p.user_id = ? AND p.content_id = ? AND NOT EXISTS (SELECT 1 FROM files f
			WHERE f.user_id = p.user_id AND f.content_id = p.content_id AND f.deleted_at IS NULL) ORDER BY p.part DESC LIMIT ?)`,
		t.userID, contentID, t.userID, contentID, limit)
	return int(n), err
}

func (t knowledgeTx) DeletedFiles(limit int) ([]*knowledge.File, error) {
	return sqldb.Map(t, t.file, "SELECT "+fileColumns+" FROM files f WHERE f.user_id = ? AND f.deleted_at IS NOT NULL ORDER BY f.id LIMIT ?", t.userID, limit)
}

func (t knowledgeTx) PurgeFiles(ids ...string) error {
	for _, id := range ids {
		if err := cmp.Or(t.dropQuestions(t.userID, id), t.dropResearchesOn(t.userID, id)); err != nil {
			return err
		}
	}
	return cmp.Or(t.dropSaid(t.userID, "file", ids...), t.Run("DELETE FROM files WHERE user_id = ? AND id IN (?) AND deleted_at IS NOT NULL", t.userID, ids))
}
