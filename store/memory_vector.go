package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"nodest/fault"
	"nodest/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store/sqldb"
)

// vectorRow is the vector of a content by a model.
type vectorRow struct {
	UserID, CharacterID, Hash, Model string
	Vector                           []byte // index.Packed.Half
}

// withoutVector is a condition on a text or fact; its argument is the model. It looks up one key
// per row: PostgreSQL turns a NOT EXISTS into a join, for which, as long as it has no statistics,
// it compares each row with all vectors of the character.
func withoutVector(table string) string {
	return strings.ReplaceAll("(SELECT v.model FROM memory_vectors v WHERE v.user_id = @.user_id"+
		" AND v.character_id = @.character_id AND v.hash = @.hash AND v.model = ?) IS NULL", "@", table)
}

// WithoutVector returns contents without a vector of a model, each once. It reads rows by change and
// stops where it has enough, so rows before since cost nothing.
func (t *tx) WithoutVector(characterID, model string, since int64, limit int) ([]memory.Content, error) {
	limit = sqldb.Length(limit)
	if err := t.ownsCharacter(characterID); err != nil {
		return nil, err
	}
	for n := limit; ; n *= 4 { // of many rows with few contents, more are read
		rows, whole, err := t.lacking(characterID, model, since, n)
		if err != nil {
			return nil, err
		}
		seen, out := make(map[string]bool, limit), make([]memory.Content, 0, limit)
		for _, r := range rows {
			if !seen[r.Hash] && len(out) < limit {
				seen[r.Hash], out = true, append(out, memory.Content{Hash: r.Hash, Text: r.words()})
			}
		}
		if whole || len(out) == limit {
			return out, nil
		}
	}
}

// UnitVectors looks up the content of each unit and then its vector.
func (t *tx) UnitVectors(characterID, model string, ids ...string) (map[string]index.Packed, error) {
	found := make(map[string]index.Packed, len(ids))
	const ofUnit = " AND v.user_id = u.user_id AND v.character_id = u.character_id AND v.hash = u.hash AND v.model = ?"
	err := sqldb.Each(t.withCharacter(characterID), func(r *struct {
		ID     string
		Vector []byte
	},
	) error {
		found[r.ID] = index.Whole(r.Vector)
		return nil
	}, "SELECT u.revision_id AS id, v.vector FROM memory_texts u CROSS JOIN memory_vectors v WHERE u.user_id = ? AND u.character_id = ? AND u.revision_id IN (?)"+ofUnit+
		" UNION ALL SELECT u.id, v.vector FROM memories u CROSS JOIN memory_vectors v WHERE u.user_id = ? AND u.character_id = ? AND u.id IN (?)"+ofUnit,
		t.userID, characterID, ids, model, t.userID, characterID, ids, model)
	return found, err
}

// lackingRow is a row of which the content has no vector.
type lackingRow struct {
	Change     int64
	Hash, Text string
	Role       lang.Role // "" of a fact
}

func (r *lackingRow) words() string {
	if r.Role == "" {
		return r.Text
	}
	return memory.Clean(r.Role, r.Text)
}

// lacking returns the first n rows without a vector, by change. whole reports that there are no others.
func (t *tx) lacking(characterID, model string, since int64, n int) (rows []lackingRow, whole bool, err error) {
	args := []any{t.userID, characterID, since, model, n}
	texts, err := sqldb.All[lackingRow](t, `SELECT t.change, t.hash, r.text, t.role FROM memory_texts t CROSS JOIN revisions r
		WHERE t.user_id = ? AND t.character_id = ? AND t.change > ? AND t.hash <> '' AND `+withoutVector("t")+`
			AND r.user_id = t.user_id AND r.id = t.revision_id ORDER BY t.change LIMIT ?`, args...)
	if err != nil {
		return nil, false, err
	}
	facts, err := sqldb.All[lackingRow](t, `SELECT t.change, t.hash, t.text, '' AS role FROM memories t
		WHERE t.user_id = ? AND t.character_id = ? AND t.change > ? AND `+counts("t")+` AND `+withoutVector("t")+` ORDER BY t.change LIMIT ?`, args...)
	rows = slices.Concat(texts, facts)
	slices.SortStableFunc(rows, func(a, b lackingRow) int { return cmp.Compare(a.Change, b.Change) })
	return rows[:min(n, len(rows))], len(rows) < n, err
}

// Embedded returns up to which change, and for which model, a scope has its vectors.
func (t *tx) Embedded(characterID string) (model string, change int64, err error) {
	at, err := t.scope(characterID)
	if err != nil {
		return "", 0, err
	}
	return at.EmbeddedModel, at.EmbeddedChange, nil
}

// SetEmbedded stores what Embedded returns.
func (t *tx) SetEmbedded(characterID, model string, change int64) error {
	return t.withCharacter(characterID).Run("UPDATE memory_scopes SET embedded_model = ?, embedded_change = ? WHERE "+ofScope,
		model, change, t.userID, characterID)
}

// PutVectors stores vectors of contents that are there.
func (t *tx) PutVectors(characterID, model string, vectors map[string][]float32) error {
	if err := t.LockMemory(characterID); err != nil || len(vectors) == 0 {
		return err
	}
	wanted := slices.Sorted(maps.Keys(vectors))
	hashes, err := sqldb.All[string](t, "SELECT hash FROM memory_texts WHERE "+ofScope+" AND hash IN (?)"+
		" UNION SELECT hash FROM memories WHERE "+ofScope+" AND hash IN (?)", t.userID, characterID, wanted, t.userID, characterID, wanted)
	if err != nil {
		return err
	}
	if _, err := t.Exec("DELETE FROM memory_vectors WHERE "+ofScope+" AND hash IN (?)", t.userID, characterID, hashes); err != nil {
		return err
	}
	rows := make([]vectorRow, len(hashes))
	for i, hash := range hashes {
		packed := index.Pack(vectors[hash])
		if packed == nil {
			return fault.New(fault.UpstreamBadAnswer, "an embedding of %s contains only zeros", model)
		}
		rows[i] = vectorRow{t.userID, characterID, hash, model, packed.Half()}
	}
	n := t.news(characterID)
	n.hashes = append(n.hashes, hashes...)
	return t.Insert("memory_vectors", rows)
}
