package store

import (
	"slices"
	"strings"

	"nodest/internal/fault"
	"nodest/knowledge"
	"nodest/store/sqldb"
)

// The columns that are read of an allowed file, and the rows of a knowledge base's files.
const (
	refColumns = "SELECT f.user_id AS owner_id, f.id AS id, f.edition, f.name, f.content_type, f.state, f.chars, f.chunks, f.updated_at"
	ofBases    = refColumns + ", b.id AS base_id, b.name AS base_name" + inReadable +
		"JOIN files f ON f.user_id = m.file_user_id AND f.id = m.file_id AND f.deleted_at IS NULL"
	noBase = ", NULL AS base_id, '' AS base_name FROM "
)

// livingCharacter joins the character of a binding k.
const livingCharacter = " JOIN characters c ON c.user_id = k.user_id AND c.id = k.character_id AND c.deleted_at IS NULL"

// Allowed is the one way from a request to what may be searched or read: one statement for the
// files, which joins the grants of the acting user; another one before it if knowledge bases
// were named, of which all must be readable.
func (t knowledgeTx) Allowed(s knowledge.Scope) ([]knowledge.FileRef, error) {
	if !s.FilesOnly {
		if err := t.requireBases(s.BaseIDs); err != nil {
			return nil, err
		}
	}
	query, args := allowed(t.userID, s)
	refs, at := []knowledge.FileRef{}, map[[2]string]int{}
	err := sqldb.Each(t, func(r *knowledge.FileRef) error {
		key := [2]string{r.OwnerID, r.ID}
		if i, known := at[key]; !known {
			at[key] = len(refs)
			refs = append(refs, *r)
		} else if refs[i].BaseID == "" {
			refs[i].BaseID, refs[i].BaseName = r.BaseID, r.BaseName
		}
		return nil
	}, query+" ORDER BY id, owner_id, base_id", args...)
	return refs, err
}

// requireBases returns fault.NotFound unless the acting user may read all of these.
func (t knowledgeTx) requireBases(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	readable, err := sqldb.All[string](t, "SELECT DISTINCT b.id FROM "+readableBases+
		" r JOIN knowledge_bases b ON b.user_id = r.user_id AND b.id = r.id AND b.deleted_at IS NULL WHERE r.id IN (?)", t.userID, t.userID, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(readable, id) {
			return fault.New(fault.NotFound, "no such knowledge base")
		}
	}
	return nil
}

// allowed is the statement of Allowed for a user.
func allowed(userID string, s knowledge.Scope) (query string, args []any) {
	filter, filters := filterOf(s)
	query, args = ofBases, []any{userID, userID}
	if s.CharacterID != "" {
		query += " JOIN character_bases k ON k.base_user_id = b.user_id AND k.base_id = b.id AND k.user_id = ? AND k.character_id = ? AND k.enabled" + livingCharacter
		args = append(args, userID, s.CharacterID)
	}
	query += " WHERE TRUE"
	if s.BaseIDs != nil && !s.FilesOnly {
		query, args = query+" AND b.id IN (?)", append(args, s.BaseIDs)
	}
	query, args = query+filter, append(args, filters...)
	if !s.FilesOnly {
		return query, args
	}
	query += " UNION ALL " + refColumns + noBase
	if s.CharacterID == "" {
		query, args = query+"files f WHERE f.user_id = ? AND f.deleted_at IS NULL", append(args, userID)
	} else {
		query += "character_files k" + livingCharacter + " JOIN files f ON f.user_id = k.file_user_id AND f.id = k.file_id" +
			" WHERE k.user_id = ? AND k.character_id = ? AND k.enabled AND " + readableFile
		args = append(args, userID, s.CharacterID, userID, userID, userID)
	}
	return query + filter, append(args, filters...)
}

// filterOf is the condition on files f that a scope sets.
func filterOf(s knowledge.Scope) (condition string, args []any) {
	add := func(more string, arg ...any) { condition, args = condition+more, append(args, arg...) }
	if s.FileIDs != nil {
		add(" AND f.id IN (?)", s.FileIDs)
	}
	if s.Types != nil {
		add(" AND f.content_type IN (?)", s.Types)
	}
	if folder := strings.Trim(s.Folder, "/"); folder != "" {
		add(" AND substr(f.name, 1, length(CAST(? AS TEXT))) = CAST(? AS TEXT)", folder+"/", folder+"/")
	}
	if !s.After.IsZero() {
		add(" AND f.updated_at > ?", s.After)
	}
	return condition, args
}
