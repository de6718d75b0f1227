package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/store/sqldb"
)

// Characters returns the store of character.Service.
func (db *DB) Characters() character.Store { return part[character.Tx]{db, (*tx).forCharacters} }

// forCharacters returns t as package character has it.
func (t *tx) forCharacters() character.Tx {
	return character.Tx{Tx: t, SettingsTx: t.characters, CharacterTx: t.characters, ResourceTx: t.characters, StampTx: t.characters, Jobs: t.jobs}
}

// characterTx stores characters, resources and the user's settings.
type characterTx struct{ *tx }

type characterRow struct {
	ID, UserID           string
	Version              int64
	CreatedAt, UpdatedAt time.Time
}

// characterVersionRow is one version. An imported document can be large and
// seldom changes: only the version that brought it has it, later ones point there.
type characterVersionRow struct {
	character.Character `db:"ID=character_id -HasAvatar -CreatedAt UpdatedAt=created_at"`
	UserID              string
	SourceVersion       int64
}

// selectVersions reads versions v of characters c; the time of a version is that of its row.
const selectVersions = `SELECT c.id, v.version, v.documents_version, c.created_at, v.created_at AS updated_at, v.name, v.dialect, v.is_cradle,
		v.role_card, v.world_book, v.preset, v.author_note, v.regex_scripts, v.settings, v.tags, v.archived, src.source,
		EXISTS (SELECT 1 FROM avatars a WHERE a.user_id = c.user_id AND a.character_id = c.id) AS has_avatar
	FROM characters c
	JOIN character_versions v ON v.user_id = c.user_id AND v.character_id = c.id
	JOIN character_versions src ON src.user_id = c.user_id AND src.character_id = c.id AND src.version = v.source_version
	WHERE c.user_id = ? `

// selectDocuments is selectVersions of characters that are not deleted, without the imported files: they may be
// large, and only an export needs them.
var selectDocuments = strings.Replace(selectVersions, "src.source,", "NULL AS source,", 1) + "AND c.deleted_at IS NULL "

// selectCards is selectDocuments without what may be large and is not the card.
var selectCards = strings.Replace(selectDocuments, "v.world_book, v.preset, v.author_note, v.regex_scripts, ", "", 1)

// listCharacters is selectDocuments without any document.
const listCharacters = `SELECT c.id, v.version, v.documents_version, c.created_at, v.created_at AS updated_at, v.name, v.dialect, v.is_cradle, v.tags, v.archived,
		EXISTS (SELECT 1 FROM avatars a WHERE a.user_id = c.user_id AND a.character_id = c.id) AS has_avatar
	FROM characters c
	JOIN character_versions v ON v.user_id = c.user_id AND v.character_id = c.id AND v.version = c.version
	WHERE c.user_id = ? AND c.deleted_at IS NULL `

func (t characterTx) InsertCharacter(c *character.Character) error {
	t.fillTimes(&c.CreatedAt, &c.UpdatedAt)
	c.Version = max(c.Version, 1)
	c.DocumentsVersion = c.Version
	return cmp.Or(t.Insert("characters", &characterRow{c.ID, t.userID, c.Version, c.CreatedAt, c.UpdatedAt}), t.insertCharacterVersion(c, c.Version))
}

func (t characterTx) insertCharacterVersion(c *character.Character, sourceVersion int64) error {
	row := &characterVersionRow{*c, t.userID, sourceVersion}
	if sourceVersion != c.Version {
		row.Source = nil
	}
	return t.Insert("character_versions", row)
}

func (t characterTx) Character(id string) (*character.Character, error) {
	return sqldb.Get[character.Character](t, "character", selectDocuments+"AND c.id = ? AND v.version = c.version", t.userID, id)
}

func (t characterTx) CharacterCard(id string) (*character.Character, error) {
	return sqldb.Get[character.Character](t, "character", selectCards+"AND c.id = ? AND v.version = c.version", t.userID, id)
}

func (t characterTx) CharacterSource(id string, version int64) (json.RawMessage, error) {
	return valueOf(sqldb.Get[json.RawMessage](t, "character", `SELECT src.source FROM character_versions v
		JOIN character_versions src ON src.user_id = v.user_id AND src.character_id = v.character_id AND src.version = v.source_version
		WHERE v.user_id = ? AND v.character_id = ? AND v.version = ?`, t.userID, id, version))
}

func (t characterTx) CharacterVersion(id string, version int64) (*character.Character, error) {
	return sqldb.Get[character.Character](t, "character", selectVersions+"AND c.id = ? AND v.version = ?", t.userID, id, version)
}

func (t characterTx) Characters(f character.Filter, cursor string, limit int) ([]*character.Character, string, error) {
	query, args, by := listCharacters, []any{t.userID}, "c.created_at"
	if f.Archived != nil {
		query, args = query+"AND v.archived = ?", append(args, *f.Archived)
	}
	if f.Sort == op.SortUpdated {
		by = "c.updated_at"
	}
	var keep func(*character.Character) bool
	if match := f.Match(); match != nil {
		keep = func(c *character.Character) bool { return match(c.Name, c.Tags) }
	}
	return sqldb.PageOf(t, keep, func(c *character.Character) *character.Character { return c }, by, cursor, limit, query, args...)
}

func (t characterTx) UpdateCharacter(c *character.Character) error {
	c.DocumentsVersion = c.Version
	return t.UpdateLabels(c)
}

func (t characterTx) UpdateLabels(c *character.Character) error {
	c.UpdatedAt = t.Now()
	n, err := t.Exec("UPDATE characters SET version = ?, updated_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL AND version = ?",
		c.Version, t.Now(), t.userID, c.ID, c.Version-1)
	if err != nil {
		return err
	}
	if n == 0 {
		if _, err := t.Character(c.ID); err != nil {
			return err
		}
		return fault.New(fault.PreconditionFailed, "the character was changed by another request")
	}
	source := "src.source"
	if c.Source == nil {
		source = "NULL AS source"
	}
	last, err := sqldb.Value[characterVersionRow](t, "SELECT "+source+", src.version AS source_version FROM character_versions v"+
		" JOIN character_versions src ON src.user_id = v.user_id AND src.character_id = v.character_id AND src.version = v.source_version"+
		" WHERE v.user_id = ? AND v.character_id = ? AND v.version = ?", t.userID, c.ID, c.Version-1)
	if err != nil {
		return err
	}
	if c.Source == nil || bytes.Equal(last.Source, c.Source) {
		return t.insertCharacterVersion(c, last.SourceVersion)
	}
	return t.insertCharacterVersion(c, c.Version)
}

// DeleteCharacter hides the character and its conversations, and removes it from the circle.
func (t characterTx) DeleteCharacter(id string) error {
	if err := t.HideCharacter(id, true); err != nil {
		return err
	}
	return cmp.Or(
		t.chats.unlock(),
		t.Run("UPDATE conversations SET deleted_at = ? WHERE user_id = ? AND character_id = ? AND deleted_at IS NULL", t.Now(), t.userID, id),
		t.jobs.cancel("kind LIKE ? AND (subject = ? OR subject IN (SELECT "+t.IDText("c.id")+" FROM conversations c"+
			" WHERE c.user_id = ? AND c.character_id = ?))", memoryJobs, id, t.userID, id),
		t.dreams.endDreams(id),
		t.circle.leaveCircle(id),
	)
}

func (t characterTx) HideCharacter(id string, hidden bool) error {
	const of = " WHERE user_id = ? AND id = ? AND deleted_at IS "
	if hidden {
		return t.ExecOne("character", "UPDATE characters SET deleted_at = ?"+of+"NULL", t.Now(), t.userID, id)
	}
	return t.ExecOne("character", "UPDATE characters SET deleted_at = NULL"+of+"NOT NULL", t.userID, id)
}

func (t characterTx) PutAvatar(characterID string, a *character.Avatar) error {
	t.noteInserted("avatars", []string{"data"}, []any{a.Data})
	return t.with(characterID).Run(`INSERT INTO avatars (user_id, character_id, content_type, etag, data) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, character_id) DO UPDATE
		SET content_type = EXCLUDED.content_type, etag = EXCLUDED.etag, data = EXCLUDED.data`,
		sqldb.ID(t.userID), sqldb.ID(characterID), a.ContentType, a.ETag, append([]byte{}, a.Data...))
}

func (t characterTx) Avatar(characterID string) (*character.Avatar, error) {
	return sqldb.Get[character.Avatar](t.with(characterID), "avatar",
		"SELECT content_type, etag, data FROM avatars WHERE user_id = ? AND character_id = ?", t.userID, characterID)
}

func (t characterTx) AvatarTag(characterID string) (string, error) {
	return valueOf(sqldb.Get[string](t.with(characterID), "avatar",
		"SELECT etag FROM avatars WHERE user_id = ? AND character_id = ?", t.userID, characterID))
}

// owns returns fault.NotFound for a character that is not there, or is not the
// user's.
func (t characterTx) owns(id string) error { return t.ownsLocked(id, "") }

// with returns the session for statements about a character: each returns
// fault.NotFound unless owns is satisfied.
func (t characterTx) with(id string) *sqldb.Session { return t.Unless(t.owns(id)) }

// ownsLocked is owns that locks the row with the words of lock.
func (t characterTx) ownsLocked(id, lock string) error {
	return t.Require("character", "SELECT 1 FROM characters WHERE user_id = ? AND id = ? AND deleted_at IS NULL"+lock, t.userID, id)
}
