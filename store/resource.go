package store

import (
	"cmp"
	"strings"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

type resourceRow struct {
	ID, UserID           string
	Kind                 character.ResourceKind
	BindAll              bool
	Version              int64
	CreatedAt, UpdatedAt time.Time
}

type resourceVersionRow struct {
	character.Resource `db:"ID=resource_id Characters=character_ids -Kind -CreatedAt UpdatedAt=created_at"`
	UserID             string
}

// bindingRow joins the newest version of a resource to a character.
type bindingRow struct{ UserID, ResourceID, CharacterID string }

const selectResources = `SELECT r.id, r.kind, v.version, r.created_at, v.created_at AS updated_at,
		v.name, v.dialect, v.document, v.bind_all, v.character_ids AS characters
	FROM resources r JOIN resource_versions v ON v.user_id = r.user_id AND v.resource_id = r.id
	WHERE r.user_id = ? AND r.kind = ? `

// listResources is selectResources without the documents.
var listResources = strings.Replace(selectResources, "v.document, ", "", 1)

const living = "AND r.deleted_at IS NULL "

// whole makes an empty list of what is stored as nothing.
func whole(r *character.Resource) *character.Resource {
	if r.Characters == nil {
		r.Characters = []string{}
	}
	return r
}

func (t characterTx) InsertResource(r *character.Resource) error {
	t.fillTimes(&r.CreatedAt, &r.UpdatedAt)
	r.Version = max(r.Version, 1)
	row := &resourceRow{r.ID, t.userID, r.Kind, r.BindAll, r.Version, r.CreatedAt, r.UpdatedAt}
	return cmp.Or(t.Insert("resources", row), t.insertResourceVersion(r))
}

func (t characterTx) insertResourceVersion(r *character.Resource) error {
	version := &resourceVersionRow{*whole(r), t.userID}
	rows := make([]bindingRow, len(r.Characters))
	for i, id := range r.Characters {
		rows[i] = bindingRow{t.userID, r.ID, id}
	}
	return cmp.Or(t.Insert("resource_versions", version), t.Insert("resource_bindings", rows, "ON CONFLICT (user_id, resource_id, character_id) DO NOTHING"))
}

func (t characterTx) Resource(kind character.ResourceKind, id string) (*character.Resource, error) {
	return t.oneResource(kind, living+"AND r.id = ? AND v.version = r.version", id)
}

// ResourceVersion returns one version, also of a resource that is deleted: a save
// point may name it.
func (t characterTx) ResourceVersion(kind character.ResourceKind, id string, version int64) (*character.Resource, error) {
	return t.oneResource(kind, "AND r.id = ? AND v.version = ?", id, version)
}

func (t characterTx) oneResource(kind character.ResourceKind, rest string, args ...any) (*character.Resource, error) {
	return sqldb.Find(t, string(kind), whole, selectResources+rest, append([]any{t.userID, kind}, args...)...)
}

func (t characterTx) Resources(kind character.ResourceKind, cursor string, limit int) ([]*character.Resource, string, error) {
	return sqldb.Page(t, whole, "r.created_at", cursor, limit, listResources+living+"AND v.version = r.version", t.userID, kind)
}

// boundTo selects resources r that are bound to a character or to all.
const boundTo = "(r.bind_all OR EXISTS (SELECT 1 FROM resource_bindings b" +
	" WHERE b.user_id = r.user_id AND b.resource_id = r.id AND b.character_id = ?))"

func (t characterTx) BoundResources(kind character.ResourceKind, characterID string) ([]*character.Resource, error) {
	return sqldb.Map(t, whole, selectResources+living+"AND v.version = r.version AND "+boundTo+" ORDER BY r.created_at, r.id",
		t.userID, kind, characterID)
}

func (t characterTx) UpdateResource(r *character.Resource) error {
	r.UpdatedAt = t.Now()
	n, err := t.Exec("UPDATE resources SET version = ?, bind_all = ?, updated_at = ?"+
		" WHERE user_id = ? AND id = ? AND kind = ? AND deleted_at IS NULL AND version = ?",
		r.Version, r.BindAll, t.Now(), t.userID, r.ID, r.Kind, r.Version-1)
	if err != nil {
		return err
	}
	if n == 0 {
		if _, err := t.Resource(r.Kind, r.ID); err != nil {
			return err
		}
		return fault.New(fault.PreconditionFailed, "the %s was changed by another request", r.Kind)
	}
	return cmp.Or(t.Run("DELETE FROM resource_bindings WHERE user_id = ? AND resource_id = ?", t.userID, r.ID), t.insertResourceVersion(r))
}

// DeleteResource hides it; maintenance removes it later.
func (t characterTx) DeleteResource(kind character.ResourceKind, id string) error {
	return t.ExecOne(string(kind), "UPDATE resources SET deleted_at = ? WHERE user_id = ? AND id = ? AND kind = ? AND deleted_at IS NULL",
		t.Now(), t.userID, id, kind)
}

func (t characterTx) Stamps(characterID string, more ...string) (*character.Stamps, error) {
	s := &character.Stamps{Resources: []character.ResourceStamp{}}
	err := sqldb.Each(t, func(r *struct {
		character.ResourceStamp
		DocumentsVersion int64
		HasKnowledge     bool
	}) error {
		if s.Character, s.HasKnowledge = r.DocumentsVersion, r.HasKnowledge; r.ID != "" {
			s.Resources = append(s.Resources, r.ResourceStamp)
		}
		return nil
	}, selectStamps, characterID, characterID, t.userID)
	for _, id := range more {
		if err != nil {
			return nil, err
		}
		err = sqldb.Each(t, func(r *character.ResourceStamp) error { s.Resources = append(s.Resources, *r); return nil },
			"SELECT kind, id, version FROM resources WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.userID, id)
	}
	return s, err
}

// selectStamps finds a row for each resource that is bound to a character, and at least one.
const selectStamps = `SELECT v.documents_version,
		EXISTS (SELECT 1 FROM character_files k WHERE k.user_id = c.user_id AND k.character_id = c.id AND k.enabled)
		OR EXISTS (SELECT 1 FROM character_bases k WHERE k.user_id = c.user_id AND k.character_id = c.id AND k.enabled) AS has_knowledge,
		r.kind, r.id, r.version, TRUE AS bound
	FROM users u LEFT JOIN characters c ON c.user_id = u.id AND c.id = ? AND c.deleted_at IS NULL
		LEFT JOIN character_versions v ON v.user_id = c.user_id AND v.character_id = c.id AND v.version = c.version
		LEFT JOIN resources r ON r.user_id = u.id AND r.deleted_at IS NULL AND ` + boundTo + `
	WHERE u.id = ? ORDER BY r.created_at, r.id`
