package store

import (
	"bytes"
	"strings"

	"github.com/uptrace/bun"

	"nodest/character"
	"nodest/fault"
)

type characterRow struct {
	bun.BaseModel `bun:"table:characters"`
	ID            string `bun:"id,pk"`
	UserID        string
	Version       int64
	CreatedAt     int64
	UpdatedAt     int64
	DeletedAt     *int64
}

// characterVersionRow is one version. An imported document can be large and
// seldom changes: only the version that brought it has it, later ones point there.
type characterVersionRow struct {
	bun.BaseModel `bun:"table:character_versions"`
	CharacterID   string
	Version       int64
	UserID        string
	Name          text
	Dialect       text
	IsCradle      bool
	RoleCard      document
	WorldBook     document
	Preset        document
	AuthorNote    document
	RegexScripts  document
	Settings      document
	Source        document
	SourceVersion int64
	CreatedAt     int64
}

// storedCharacter is a version as it is read.
type storedCharacter struct {
	ID           string
	Version      int64
	CreatedAt    int64
	UpdatedAt    int64
	Name         text
	Dialect      text
	IsCradle     bool
	RoleCard     document
	WorldBook    document
	Preset       document
	AuthorNote   document
	RegexScripts document
	Settings     document
	Source       document
	HasAvatar    bool
}

// selectCharacters reads versions v of characters c that are not deleted; the
// time of a version is that of its row.
const selectCharacters = `SELECT c.id, v.version, c.created_at, v.created_at AS updated_at, v.name, v.dialect, v.is_cradle,
		v.role_card, v.world_book, v.preset, v.author_note, v.regex_scripts, v.settings, src.source,
		EXISTS (SELECT 1 FROM avatars a WHERE a.user_id = c.user_id AND a.character_id = c.id) AS has_avatar
	FROM characters c
	JOIN character_versions v ON v.user_id = c.user_id AND v.character_id = c.id
	JOIN character_versions src ON src.user_id = c.user_id AND src.character_id = c.id AND src.version = v.source_version
	WHERE c.user_id = ? AND c.deleted_at IS NULL `

// selectDocuments is selectCharacters without the imported files: they may be
// large, and only an export needs them.
var selectDocuments = strings.Replace(selectCharacters, "src.source,", "NULL AS source,", 1)

// listCharacters is selectCharacters without any document.
const listCharacters = `SELECT c.id, v.version, c.created_at, v.created_at AS updated_at, v.name, v.dialect, v.is_cradle,
		EXISTS (SELECT 1 FROM avatars a WHERE a.user_id = c.user_id AND a.character_id = c.id) AS has_avatar
	FROM characters c
	JOIN character_versions v ON v.user_id = c.user_id AND v.character_id = c.id AND v.version = c.version
	WHERE c.user_id = ? AND c.deleted_at IS NULL `

func (r *storedCharacter) character() *character.Character {
	return &character.Character{
		ID: r.ID, Name: string(r.Name), Dialect: string(r.Dialect), IsCradle: r.IsCradle,
		RoleCard: []byte(r.RoleCard), WorldBook: []byte(r.WorldBook), Preset: []byte(r.Preset),
		AuthorNote: []byte(r.AuthorNote), RegexScripts: []byte(r.RegexScripts), Source: []byte(r.Source),
		Settings: []byte(r.Settings), HasAvatar: r.HasAvatar, Version: r.Version,
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt),
	}
}

// InsertCharacter stores a new character as version 1.
func (t *tx) InsertCharacter(c *character.Character) error {
	if err := t.writable(); err != nil {
		return err
	}
	t.fillTimes(&c.CreatedAt, &c.UpdatedAt)
	c.Version = max(c.Version, 1)
	err := t.insert(&characterRow{
		ID: c.ID, UserID: t.userID, Version: c.Version, CreatedAt: millis(c.CreatedAt), UpdatedAt: millis(c.UpdatedAt),
	})
	if err != nil {
		return err
	}
	return t.insertCharacterVersion(c, c.Version)
}

func (t *tx) insertCharacterVersion(c *character.Character, sourceVersion int64) error {
	row := &characterVersionRow{
		CharacterID: c.ID, Version: c.Version, UserID: t.userID, Name: text(c.Name), Dialect: text(c.Dialect),
		IsCradle: c.IsCradle, RoleCard: document(c.RoleCard), WorldBook: document(c.WorldBook),
		Preset: document(c.Preset), AuthorNote: document(c.AuthorNote), RegexScripts: document(c.RegexScripts),
		Settings: document(c.Settings), SourceVersion: sourceVersion, CreatedAt: millis(c.UpdatedAt),
	}
	if sourceVersion == c.Version {
		row.Source = document(c.Source)
	}
	return t.insert(row)
}

// Character returns the newest version, without Source.
func (t *tx) Character(id string) (*character.Character, error) {
	return t.oneCharacter(selectDocuments+"AND c.id = ? AND v.version = c.version", text(id))
}

// CharacterVersion returns one version, Source included.
func (t *tx) CharacterVersion(id string, version int64) (*character.Character, error) {
	return t.oneCharacter(selectCharacters+"AND c.id = ? AND v.version = ?", text(id), version)
}

func (t *tx) oneCharacter(query string, args ...any) (*character.Character, error) {
	var row storedCharacter
	found, err := t.scan(t.raw(query, append([]any{text(t.userID)}, args...)...), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "no such character")
	}
	return row.character(), nil
}

// Characters lists newest first, without documents and settings.
func (t *tx) Characters(cursor string, limit int) ([]*character.Character, string, error) {
	limit = pageLength(limit)
	where, args := "", []any{text(t.userID)}
	if cursor != "" {
		after, err := parseCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		where += " AND (c.created_at, c.id) < (?, ?)"
		args = append(args, after.ms, text(after.id))
	}
	var rows []*storedCharacter
	_, err := t.scan(t.raw(listCharacters+where+" ORDER BY c.created_at DESC, c.id DESC LIMIT ?",
		append(args, limit+1)...), &rows)
	if err != nil {
		return nil, "", err
	}
	rows, next := cut(rows, limit, func(r *storedCharacter) place { return place{r.CreatedAt, r.ID} })
	items := make([]*character.Character, len(rows))
	for i, row := range rows {
		items[i] = row.character()
	}
	return items, next, nil
}

// UpdateCharacter stores c as the next version; a nil Source stays what it was.
func (t *tx) UpdateCharacter(c *character.Character) error {
	if err := t.writable(); err != nil {
		return err
	}
	c.UpdatedAt = t.Now()
	n, err := t.exec(t.raw("UPDATE characters SET version = ?, updated_at = ?"+
		" WHERE user_id = ? AND id = ? AND deleted_at IS NULL AND version = ?",
		c.Version, t.now, text(t.userID), text(c.ID), c.Version-1))
	if err != nil {
		return err
	}
	if n == 0 {
		if _, err := t.Character(c.ID); err != nil {
			return err
		}
		return fault.New(fault.PreconditionFailed, "the character was changed by another request")
	}
	var last struct {
		Source        document
		SourceVersion int64
	}
	source := "src.source"
	if c.Source == nil {
		source = "NULL AS source"
	}
	_, err = t.scan(t.raw("SELECT "+source+", src.version AS source_version FROM character_versions v"+
		" JOIN character_versions src ON src.user_id = v.user_id AND src.character_id = v.character_id AND src.version = v.source_version"+
		" WHERE v.user_id = ? AND v.character_id = ? AND v.version = ?", text(t.userID), text(c.ID), c.Version-1), &last)
	if err != nil {
		return err
	}
	if c.Source == nil || bytes.Equal(last.Source, c.Source) {
		return t.insertCharacterVersion(c, last.SourceVersion)
	}
	return t.insertCharacterVersion(c, c.Version)
}

// DeleteCharacter hides the character and its conversations.
func (t *tx) DeleteCharacter(id string) error {
	if err := t.writable(); err != nil {
		return err
	}
	n, err := t.exec(t.raw("UPDATE characters SET deleted_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL",
		t.now, text(t.userID), text(id)))
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New(fault.NotFound, "no such character")
	}
	clear(t.locked)
	_, err = t.exec(t.raw("UPDATE conversations SET deleted_at = ? WHERE user_id = ? AND character_id = ? AND deleted_at IS NULL",
		t.now, text(t.userID), text(id)))
	if err != nil {
		return err
	}
	return t.cancel("kind LIKE ? AND (subject = ? OR subject IN (SELECT c.id FROM conversations c"+
		" WHERE c.user_id = ? AND c.character_id = ?))", memoryJobs, text(id), text(t.userID), text(id))
}

// PutAvatar replaces the avatar.
func (t *tx) PutAvatar(characterID string, a *character.Avatar) error {
	if err := t.writable(); err != nil {
		return err
	}
	if err := t.ownsCharacter(characterID); err != nil {
		return err
	}
	_, err := t.exec(t.raw(`INSERT INTO avatars (user_id, character_id, content_type, etag, data) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, character_id) DO UPDATE
		SET content_type = EXCLUDED.content_type, etag = EXCLUDED.etag, data = EXCLUDED.data`,
		text(t.userID), text(characterID), text(a.ContentType), text(a.ETag), append([]byte{}, a.Data...)))
	return err
}

// Avatar returns the picture; fault.NotFound without one.
func (t *tx) Avatar(characterID string) (*character.Avatar, error) {
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	var row struct {
		ContentType text
		Etag        text
		Data        []byte
	}
	found, err := t.scan(t.raw("SELECT content_type, etag, data FROM avatars WHERE user_id = ? AND character_id = ?",
		text(t.userID), text(characterID)), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "the character has no avatar")
	}
	return &character.Avatar{ContentType: string(row.ContentType), ETag: string(row.Etag), Data: row.Data}, nil
}

func (t *tx) ownsCharacter(id string) error { return t.owns(id, "") }

// owns is ownsCharacter that locks the row with the words of lock.
func (t *tx) owns(id, lock string) error {
	var one int
	found, err := t.scan(t.raw("SELECT 1 FROM characters WHERE user_id = ? AND id = ? AND deleted_at IS NULL"+lock,
		text(t.userID), text(id)), &one)
	if err == nil && !found {
		return fault.New(fault.NotFound, "no such character")
	}
	return err
}
