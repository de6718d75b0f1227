package store

import (
	"time"

	"nodest/knowledge"
	"nodest/store/sqldb"
)

type boundFileRow struct {
	fileRow
	Enabled  bool
	Position int
}

type boundBaseRow struct {
	baseRow
	Enabled bool
}

func (t knowledgeTx) Bound(characterID string) (*knowledge.Bound, error) {
	if err := t.characters.owns(characterID); err != nil {
		return nil, err
	}
	b := &knowledge.Bound{Files: []knowledge.BoundFile{}, Bases: []knowledge.BoundBase{}}
	err := sqldb.Each(t, func(r *boundFileRow) error {
		b.Files = append(b.Files, knowledge.BoundFile{File: *t.file(&r.fileRow), Enabled: r.Enabled, Position: r.Position})
		return nil
	}, "SELECT "+fileColumns+", k.enabled, k.position FROM character_files k JOIN files f ON f.user_id = k.file_user_id AND f.id = k.file_id"+
		" WHERE k.user_id = ? AND k.character_id = ? AND "+readableFile+" ORDER BY k.position, k.created_at, f.id",
		t.userID, characterID, t.userID, t.userID, t.userID)
	if err != nil {
		return nil, err
	}
	err = sqldb.Each(t, func(r *boundBaseRow) error {
		b.Bases = append(b.Bases, knowledge.BoundBase{Base: *r.base(), Enabled: r.Enabled})
		return nil
	}, "SELECT "+baseColumns+", k.enabled FROM "+readableBases+` r JOIN knowledge_bases b ON b.user_id = r.user_id AND b.id = r.id AND b.deleted_at IS NULL
		JOIN character_bases k ON k.base_user_id = b.user_id AND k.base_id = b.id
		WHERE k.user_id = ? AND k.character_id = ? ORDER BY k.created_at, b.id`, t.userID, t.userID, t.userID, characterID)
	if err != nil {
		return nil, err
	}
	bases := make([]*knowledge.Base, len(b.Bases))
	for i := range b.Bases {
		bases[i] = &b.Bases[i].Base
	}
	return b, t.countFiles(bases)
}

type characterFileRow struct {
	UserID, CharacterID, FileUserID, FileID string
	Enabled                                 bool
	Position                                int
	CreatedAt                               time.Time
}

func (t knowledgeTx) PutBoundFile(characterID string, f *knowledge.File, enabled bool, position int) error {
	readable := t.Require("file", "SELECT 1 FROM files f WHERE f.user_id = ? AND f.id = ? AND "+readableFile,
		f.OwnerID, f.ID, t.userID, t.userID, t.userID)
	return t.characters.with(characterID).Unless(readable).Insert("character_files",
		&characterFileRow{t.userID, characterID, f.OwnerID, f.ID, enabled, position, t.Now()},
		"ON CONFLICT (user_id, character_id, file_user_id, file_id) DO UPDATE SET enabled = EXCLUDED.enabled, position = EXCLUDED.position")
}

type characterBaseRow struct {
	UserID, CharacterID, BaseUserID, BaseID string
	Enabled                                 bool
	CreatedAt                               time.Time
}

func (t knowledgeTx) PutBoundBase(characterID string, b *knowledge.Base, enabled bool) error {
	readable := t.Require("knowledge base", "SELECT 1 FROM "+readableBases+
		" r JOIN knowledge_bases b ON b.user_id = r.user_id AND b.id = r.id AND b.deleted_at IS NULL WHERE r.user_id = ? AND r.id = ?",
		t.userID, t.userID, b.OwnerID, b.ID)
	return t.characters.with(characterID).Unless(readable).Insert("character_bases",
		&characterBaseRow{t.userID, characterID, b.OwnerID, b.ID, enabled, t.Now()},
		"ON CONFLICT (user_id, character_id, base_user_id, base_id) DO UPDATE SET enabled = EXCLUDED.enabled")
}

func (t knowledgeTx) DropBoundFile(characterID, fileID string) error {
	return t.characters.with(characterID).ExecOne("file", "DELETE FROM character_files WHERE user_id = ? AND character_id = ? AND file_id = ?",
		t.userID, characterID, fileID)
}

func (t knowledgeTx) DropBoundBase(characterID, baseID string) error {
	return t.characters.with(characterID).ExecOne("knowledge base", "DELETE FROM character_bases WHERE user_id = ? AND character_id = ? AND base_id = ?",
		t.userID, characterID, baseID)
}
