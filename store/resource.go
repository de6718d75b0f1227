package store

import (
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"nodest/character"
	"nodest/fault"
)

type resourceRow struct {
	bun.BaseModel `bun:"table:resources"`
	ID            string `bun:"id,pk"`
	UserID        string
	Kind          text
	BindAll       bool
	Version       int64
	CreatedAt     int64
	UpdatedAt     int64
	DeletedAt     *int64
}

type resourceVersionRow struct {
	bun.BaseModel `bun:"table:resource_versions"`
	ResourceID    string
	Version       int64
	UserID        string
	Name          text
	Dialect       text
	Document      document
	BindAll       bool
	CharacterIDs  document `bun:"character_ids"`
	CreatedAt     int64
}

// bindingRow joins the newest version of a resource to a character.
type bindingRow struct {
	bun.BaseModel `bun:"table:resource_bindings"`
	ResourceID    string
	CharacterID   text
	UserID        string
}

// storedResource is a version as it is read.
type storedResource struct {
	ID           string
	Kind         text
	Version      int64
	CreatedAt    int64
	UpdatedAt    int64
	Name         text
	Dialect      text
	Document     document
	BindAll      bool
	CharacterIDs document `bun:"character_ids"`
}

const selectResources = `SELECT r.id, r.kind, v.version, r.created_at, v.created_at AS updated_at,
		v.name, v.dialect, v.document, v.bind_all, v.character_ids
	FROM resources r JOIN resource_versions v ON v.user_id = r.user_id AND v.resource_id = r.id
	WHERE r.user_id = ? AND r.kind = ? `

// listResources is selectResources without the documents.
var listResources = strings.Replace(selectResources, "v.document, ", "", 1)

const living = "AND r.deleted_at IS NULL "

func (r *storedResource) resource() (*character.Resource, error) {
	item := &character.Resource{
		ID: r.ID, Kind: character.ResourceKind(r.Kind), Name: string(r.Name), Dialect: string(r.Dialect),
		Document: []byte(r.Document), BindAll: r.BindAll, Characters: []string{}, Version: r.Version,
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt),
	}
	return item, decode(r.CharacterIDs, &item.Characters)
}

// InsertResource stores a new resource as version 1.
func (t *tx) InsertResource(r *character.Resource) error {
	if err := t.writable(); err != nil {
		return err
	}
	t.fillTimes(&r.CreatedAt, &r.UpdatedAt)
	r.Version = max(r.Version, 1)
	err := t.insert(&resourceRow{
		ID: r.ID, UserID: t.userID, Kind: text(r.Kind), BindAll: r.BindAll, Version: r.Version,
		CreatedAt: millis(r.CreatedAt), UpdatedAt: millis(r.UpdatedAt),
	})
	if err != nil {
		return err
	}
	return t.insertResourceVersion(r)
}

func (t *tx) insertResourceVersion(r *character.Resource) error {
	if r.Characters == nil {
		r.Characters = []string{}
	}
	ids, err := encode(r.Characters)
	if err != nil {
		return err
	}
	err = t.insert(&resourceVersionRow{
		ResourceID: r.ID, Version: r.Version, UserID: t.userID, Name: text(r.Name), Dialect: text(r.Dialect),
		Document: document(r.Document), BindAll: r.BindAll, CharacterIDs: ids, CreatedAt: millis(r.UpdatedAt),
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(r.Characters, 500) {
		rows := make([]bindingRow, len(part))
		for i, id := range part {
			rows[i] = bindingRow{ResourceID: r.ID, CharacterID: text(id), UserID: t.userID}
		}
		_, err := t.exec(t.db.NewInsert().Model(&rows).On("CONFLICT (user_id, resource_id, character_id) DO NOTHING"))
		if err != nil {
			return err
		}
	}
	return nil
}

// Resource returns the newest version.
func (t *tx) Resource(kind character.ResourceKind, id string) (*character.Resource, error) {
	return t.oneResource(kind, living+"AND r.id = ? AND v.version = r.version", text(id))
}

// ResourceVersion returns one version, also of a resource that is deleted: a save
// point may name it.
func (t *tx) ResourceVersion(kind character.ResourceKind, id string, version int64) (*character.Resource, error) {
	return t.oneResource(kind, "AND r.id = ? AND v.version = ?", text(id), version)
}

func (t *tx) oneResource(kind character.ResourceKind, rest string, args ...any) (*character.Resource, error) {
	items, err := t.resources(kind, rest, args...)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fault.New(fault.NotFound, "no such %s", kind)
	}
	return items[0], nil
}

func (t *tx) resources(kind character.ResourceKind, rest string, args ...any) ([]*character.Resource, error) {
	return t.readResources(selectResources+rest, kind, args...)
}

func (t *tx) readResources(query string, kind character.ResourceKind, args ...any) ([]*character.Resource, error) {
	var rows []*storedResource
	_, err := t.scan(t.raw(query, append([]any{text(t.userID), text(kind)}, args...)...), &rows)
	if err != nil {
		return nil, err
	}
	items := make([]*character.Resource, len(rows))
	for i, row := range rows {
		if items[i], err = row.resource(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Resources lists newest first, without documents.
func (t *tx) Resources(kind character.ResourceKind, cursor string, limit int) ([]*character.Resource, string, error) {
	limit = pageLength(limit)
	rest, args := living+"AND v.version = r.version", []any{}
	if cursor != "" {
		after, err := parseCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		rest += " AND (r.created_at, r.id) < (?, ?)"
		args = append(args, after.ms, text(after.id))
	}
	items, err := t.readResources(listResources+rest+" ORDER BY r.created_at DESC, r.id DESC LIMIT ?", kind, append(args, limit+1)...)
	if err != nil {
		return nil, "", err
	}
	items, next := cut(items, limit, func(r *character.Resource) place { return place{millis(r.CreatedAt), r.ID} })
	return items, next, nil
}

// boundTo selects resources r that are bound to a character or to all.
const boundTo = "(r.bind_all OR EXISTS (SELECT 1 FROM resource_bindings b" +
	" WHERE b.user_id = r.user_id AND b.resource_id = r.id AND b.character_id = ?))"

// BoundResources returns those bound to the character or to all, oldest first.
func (t *tx) BoundResources(kind character.ResourceKind, characterID string) ([]*character.Resource, error) {
	return t.resources(kind, living+"AND v.version = r.version AND "+boundTo+" ORDER BY r.created_at, r.id", text(characterID))
}

// UpdateResource stores r as the next version.
func (t *tx) UpdateResource(r *character.Resource) error {
	if err := t.writable(); err != nil {
		return err
	}
	r.UpdatedAt = t.Now()
	n, err := t.exec(t.raw("UPDATE resources SET version = ?, bind_all = ?, updated_at = ?"+
		" WHERE user_id = ? AND id = ? AND kind = ? AND deleted_at IS NULL AND version = ?",
		r.Version, r.BindAll, t.now, text(t.userID), text(r.ID), text(r.Kind), r.Version-1))
	if err != nil {
		return err
	}
	if n == 0 {
		if _, err := t.Resource(r.Kind, r.ID); err != nil {
			return err
		}
		return fault.New(fault.PreconditionFailed, "the %s was changed by another request", r.Kind)
	}
	_, err = t.exec(t.raw("DELETE FROM resource_bindings WHERE user_id = ? AND resource_id = ?", text(t.userID), text(r.ID)))
	if err != nil {
		return err
	}
	return t.insertResourceVersion(r)
}

// DeleteResource hides it; maintenance removes it later.
func (t *tx) DeleteResource(kind character.ResourceKind, id string) error {
	if err := t.writable(); err != nil {
		return err
	}
	n, err := t.exec(t.raw("UPDATE resources SET deleted_at = ? WHERE user_id = ? AND id = ? AND kind = ? AND deleted_at IS NULL",
		t.now, text(t.userID), text(id), text(kind)))
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no such %s", kind)
	}
	return err
}

// Stamps tells the versions of a turn's documents without reading them.
func (t *tx) Stamps(characterID string, more ...string) (*character.Stamps, error) {
	s := &character.Stamps{}
	_, err := t.scan(t.raw("SELECT version FROM characters WHERE user_id = ? AND id = ? AND deleted_at IS NULL",
		text(t.userID), text(characterID)), &s.Character)
	if err != nil {
		return nil, err
	}
	var bound []*resourceRow
	_, err = t.scan(t.raw("SELECT r.* FROM resources r WHERE r.user_id = ? AND r.deleted_at IS NULL AND "+boundTo+
		" ORDER BY r.created_at, r.id", text(t.userID), text(characterID)), &bound)
	if err != nil {
		return nil, err
	}
	for _, r := range bound {
		s.Resources = append(s.Resources, stamp(r, true))
	}
	for _, id := range more {
		var named resourceRow
		found, err := t.scan(t.raw("SELECT * FROM resources WHERE user_id = ? AND id = ? AND deleted_at IS NULL",
			text(t.userID), text(id)), &named)
		if err != nil {
			return nil, err
		}
		if found {
			s.Resources = append(s.Resources, stamp(&named, false))
		}
	}
	return s, nil
}

func stamp(r *resourceRow, bound bool) character.ResourceStamp {
	return character.ResourceStamp{Kind: character.ResourceKind(r.Kind), ID: r.ID, Version: r.Version, Bound: bound}
}
