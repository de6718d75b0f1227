package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/memory/lang"
	"nodest/store/sqldb"
)

// Dreams returns the store of dream.Service.
func (db *DB) Dreams() dream.Store { return dreamStore{part[dream.Tx]{db, (*tx).forDreams}} }

type dreamStore struct{ part[dream.Tx] }

// forDreams returns t as package dream has it.
func (t *tx) forDreams() dream.Tx {
	return dream.Tx{Tx: t, DocumentTx: t.dreams, RunTx: t.dreams, Memory: t.forMemory(), Log: t.cognition}
}

// dreamTx stores the documents of memories.
type dreamTx struct{ *tx }

type documentRow struct {
	UserID, CharacterID string
	Path                string
	Version             int64
	IsLocked            bool
	Made                int64
}

type documentVersionRow struct {
	UserID, CharacterID string
	dream.Version
	Lines sqldb.Zstd // JSON array
}

// readDocument is a document in one version.
type readDocument struct {
	documentVersionRow
	Newest   int64
	IsLocked bool
	Made     int64
}

func (r *readDocument) document() (*dream.Document, error) {
	d := &dream.Document{
		Path: r.Path, Version: r.Version.Version, Newest: r.Newest, Locked: r.IsLocked, Author: r.Author, RunID: r.RunID, Made: r.Made, UpdatedAt: r.At,
	}
	if err := json.Unmarshal(r.Lines, &d.Lines); err != nil {
		return nil, fmt.Errorf("document %s in version %d: %w", r.Path, r.Version.Version, err)
	}
	return d, nil
}

const selectMemoryDocuments = `SELECT v.*, d.version AS newest, d.is_locked, d.made
	FROM memory_documents d JOIN memory_document_versions v ON v.user_id = d.user_id AND v.character_id = d.character_id AND v.path = d.path
	WHERE d.user_id = ? AND d.character_id = ?`

func (t dreamTx) readDocuments(characterID, rest string, args ...any) (all []*dream.Document, err error) {
	err = sqldb.Each(t.characters.with(characterID), func(r *readDocument) error {
		d, err := r.document()
		all = append(all, d)
		return err
	}, selectMemoryDocuments+rest, append([]any{t.userID, characterID}, args...)...)
	return all, err
}

func (t dreamTx) MemoryDocuments(characterID string) ([]*dream.Document, error) {
	return t.readDocuments(characterID, " AND v.version = d.version ORDER BY d.path")
}

func (t dreamTx) MemoryDocument(characterID, path string, version int64) (*dream.Document, error) {
	all, err := t.readDocuments(characterID, " AND d.path = ? AND v.version = CASE ? WHEN 0 THEN d.version ELSE ? END", path, version, version)
	if err == nil && len(all) == 0 {
		return nil, dream.NoDocument(path, version)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (t dreamTx) PutMemoryDocument(characterID string, d *dream.Document) error {
	row := &documentRow{t.userID, characterID, d.Path, d.Newest + 1, d.Locked, d.Made}
	stale := fault.New(fault.PreconditionFailed, "the document %s was changed by another request", d.Path)
	s := t.characters.with(characterID)
	if d.Newest == 0 {
		n, err := s.InsertNew("memory_documents", row, "ON CONFLICT DO NOTHING")
		if err == nil && n == 0 {
			err = stale
		}
		if err != nil {
			return err
		}
	} else {
		n, err := s.Exec("UPDATE memory_documents SET version = ?, made = ? WHERE "+ofScope+" AND path = ? AND version = ?",
			row.Version, row.Made, t.userID, characterID, d.Path, d.Newest)
		if err == nil && n == 0 {
			err = stale
		}
		if err != nil {
			return err
		}
	}
	lines, err := json.Marshal(slices.Concat([]dream.Line{}, d.Lines))
	if err != nil {
		return err
	}
	d.Version, d.Newest, d.UpdatedAt = row.Version, row.Version, t.Now()
	return t.Insert("memory_document_versions", &documentVersionRow{
		t.userID, characterID, dream.Version{Path: d.Path, Version: d.Version, Author: d.Author, RunID: d.RunID, Size: d.Size(), At: d.UpdatedAt}, lines,
	})
}

func (t dreamTx) LockMemoryDocument(characterID, path string, locked bool) error {
	return t.characters.with(characterID).ExecOne("document", "UPDATE memory_documents SET is_locked = ? WHERE "+ofScope+" AND path = ?", locked, t.userID, characterID, path)
}

func (t dreamTx) DeleteMemoryDocument(characterID, path string) error {
	err := t.characters.with(characterID).ExecOne("document", "DELETE FROM memory_documents WHERE "+ofScope+" AND path = ?", t.userID, characterID, path)
	return cmp.Or(err, t.dropPromptsOf(memory.Scope{UserID: t.userID, CharacterID: characterID}))
}

const selectDocumentVersions = "SELECT path, version, author, run_id, size, at FROM memory_document_versions WHERE " + ofScope

func (t dreamTx) DocumentVersions(characterID, path, cursor string, limit int) ([]dream.Version, string, error) {
	after, err := sqldb.ParseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	rows, err := sqldb.All[dream.Version](t.characters.with(characterID), selectDocumentVersions+" AND path = ? AND (? = 0 OR version < ?) ORDER BY version DESC LIMIT ?",
		t.userID, characterID, path, after.Number, after.Number, limit+1)
	rows, next := sqldb.Cut(rows, limit, func(v dream.Version) sqldb.Place { return sqldb.Place{Number: v.Version} })
	return rows, next, err
}

func (t dreamTx) VersionsOfDocuments(characterID string) ([]dream.Version, error) {
	return sqldb.All[dream.Version](t.characters.with(characterID), selectDocumentVersions, t.userID, characterID)
}

// dropLines removes from all versions of a memory's documents the lines that rest on one of these
// texts, or say what one of these contents says, and then the prompts that may have them.
func (s *session) dropLines(scope memory.Scope, revisionIDs, hashes []string) error {
	of, says := setOf(revisionIDs), setOf(hashes)
	goes := func(l dream.Line) bool {
		return slices.ContainsFunc(l.Evidence, func(e memory.Evidence) bool { return of[e.RevisionID] }) || says[lang.ContentHash(l.Text)]
	}
	if err := s.dropChanges(scope, goes); err != nil {
		return err
	}
	var changed []*dream.Document
	err := sqldb.Each(s, func(r *readDocument) error {
		d, err := r.document()
		if err != nil {
			return err
		}
		if n := len(d.Lines); n > 0 {
			if d.Lines = slices.DeleteFunc(d.Lines, goes); len(d.Lines) < n {
				changed = append(changed, d)
			}
		}
		return nil
	}, selectMemoryDocuments, scope.UserID, scope.CharacterID)
	if err != nil || len(changed) == 0 {
		return err
	}
	for _, d := range changed {
		lines, err := json.Marshal(d.Lines)
		if err == nil {
			err = s.Run("UPDATE memory_document_versions SET lines = ?, size = ? WHERE "+ofScope+" AND path = ? AND version = ?",
				sqldb.Zstd(lines), d.Size(), scope.UserID, scope.CharacterID, d.Path, d.Version)
		}
		if err != nil {
			return err
		}
	}
	return s.dropPromptsOf(scope)
}

// dropPromptsOf removes the prompts that have lines of a memory's documents.
func (s *session) dropPromptsOf(scope memory.Scope) error {
	return s.Run("DELETE FROM prompts WHERE user_id = ? AND id IN (SELECT f.prompt_id FROM prompt_files f WHERE f.user_id = ? AND f.file_id = ?)",
		scope.UserID, scope.UserID, scope.CharacterID)
}

// oldDocumentVersions removes versions that are no longer in force.
func oldDocumentVersions(s *session, life time.Duration) (int64, error) {
	return s.Exec(`DELETE FROM memory_document_versions WHERE (user_id, character_id, path, version) IN (
		SELECT v.user_id, v.character_id, v.path, v.version FROM memory_document_versions v
		JOIN memory_documents d ON d.user_id = v.user_id AND d.character_id = v.character_id AND d.path = v.path AND d.version > v.version
		WHERE v.at <= ? LIMIT ?)`, s.Now().Add(-life), maintainBatch)
}
