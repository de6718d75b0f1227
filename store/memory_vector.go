package store

import (
	"cmp"
	"maps"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store/sqldb"
)

// storedVector is the vector of a text or fact.
type storedVector struct {
	Model  int               // its place among the models of the scope, from 1; 0 = no vector
	Vector sqldb.ZstdNumbers // an index.Packed
}

// kept is the vector as a unit has it; models are those of its scope.
func (v *storedVector) kept(models modelList) []index.Kept {
	if v.Model < 1 || v.Model > len(models) {
		return nil
	}
	return []index.Kept{{Model: models[v.Model-1], Packed: index.Packed(v.Vector)}}
}

// WithoutVector returns contents without a vector of a model, each once. It reads rows by change and
// stops where it has enough, so rows before since cost nothing.
func (t *memoryTx) WithoutVector(characterID, model string, since int64, limit int) ([]memory.Content, error) {
	limit = sqldb.Length(limit)
	at, err := t.scope(characterID)
	if err != nil {
		return nil, err
	}
	for n := limit; ; n *= 4 { // if many rows have few contents, more are read
		rows, whole, err := t.lacking(characterID, at.number(model), since, n)
		if err != nil {
			return nil, err
		}
		place, out := make(map[string]int, limit), make([]memory.Content, 0, limit)
		for _, r := range rows {
			i, seen := place[r.Hash]
			switch {
			case seen:
				out[i].IDs = append(out[i].IDs, r.ID)
			case len(out) < limit:
				place[r.Hash] = len(out)
				out = append(out, memory.Content{Hash: r.Hash, Text: r.words(), IDs: []string{r.ID}})
			}
		}
		if whole || len(out) == limit {
			return out, nil
		}
	}
}

func (t *memoryTx) UnitVectors(characterID, model string, ids ...string) (map[string]index.Packed, error) {
	at, err := t.scope(characterID)
	if err != nil {
		return nil, err
	}
	found, number := make(map[string]index.Packed, len(ids)), at.number(model)
	if number == 0 {
		return found, nil
	}
	return found, sqldb.Each(t, func(r *struct {
		ID     string
		Vector sqldb.ZstdNumbers // an index.Packed
	},
	) error {
		found[r.ID] = index.Packed(r.Vector)
		return nil
	}, "SELECT revision_id AS id, vector FROM memory_texts WHERE "+ofScope+" AND revision_id IN (?) AND model = ?"+
		" UNION ALL SELECT id, vector FROM memories WHERE "+ofScope+" AND id IN (?) AND model = ?",
		t.userID, characterID, ids, number, t.userID, characterID, ids, number)
}

// lackingRow is a row that has no vector.
type lackingRow struct {
	ID         string
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

// lacking returns the first n rows without a vector of the model with a number, by change. whole
// reports that there are no others.
func (t *memoryTx) lacking(characterID string, number int, since int64, n int) (rows []lackingRow, whole bool, err error) {
	const without = "t.user_id = ? AND t.character_id = ? AND t.change > ? AND (t.model = 0 OR t.model <> ?)"
	args := []any{t.userID, characterID, since, number, n}
	texts, err := sqldb.All[lackingRow](t, `SELECT t.revision_id AS id, t.change, t.hash, r.text, t.role FROM memory_texts t CROSS JOIN revisions r
		WHERE `+without+` AND NOT t.is_forgotten AND r.user_id = t.user_id AND r.id = t.revision_id ORDER BY t.change LIMIT ?`, args...)
	if err != nil {
		return nil, false, err
	}
	facts, err := sqldb.All[lackingRow](t, "SELECT t.id, t.change, t.hash, t.text, '' AS role FROM memories t WHERE "+without+
		" AND "+counts("t")+" ORDER BY t.change LIMIT ?", args...)
	rows = slices.Concat(texts, facts)
	slices.SortStableFunc(rows, func(a, b lackingRow) int { return cmp.Compare(a.Change, b.Change) })
	return rows[:min(n, len(rows))], len(rows) < n, err
}

func (t *memoryTx) Embedded(characterID string) (model string, change int64, err error) {
	at, err := valueOf(t.scope(characterID))
	return at.EmbeddedModel, at.EmbeddedChange, err
}

func (t *memoryTx) SetEmbedded(characterID, model string, change int64) error {
	return t.characters.with(characterID).Run("UPDATE memory_scopes SET embedded_model = ?, embedded_change = ? WHERE "+ofScope,
		model, change, t.userID, characterID)
}

// PutVectors stores vectors of texts and facts that are there, when the transaction ends.
func (t *memoryTx) PutVectors(characterID, model string, vectors map[string][]float32) error {
	if err := t.LockMemory(characterID); err != nil || len(vectors) == 0 {
		return err
	}
	number, err := t.numberModel(characterID, model)
	if err != nil {
		return err
	}
	t.room.stores = true // also on a full disk it takes room
	if err := t.lockUnits(characterID, slices.Sorted(maps.Keys(vectors))); err != nil {
		return err
	}
	n := t.news(characterID)
	if n.vectors == nil {
		n.vectors = make(map[string]storedVector, len(vectors))
	}
	for id, vector := range vectors {
		packed := index.Pack(vector)
		if packed == nil {
			return fault.New(fault.UpstreamBadAnswer, "an embedding of %s is zero or not finite", model)
		}
		n.vectors[id] = storedVector{number, sqldb.ZstdNumbers(packed)}
	}
	return nil
}

// lockUnits locks rows of texts and facts on PostgreSQL: before that of their scope, as all do.
func (t *memoryTx) lockUnits(characterID string, ids []string) error {
	if !t.Postgres {
		return nil
	}
	for _, query := range []string{
		"SELECT revision_id FROM memory_texts WHERE " + ofScope + " AND revision_id IN (?) ORDER BY revision_id",
		"SELECT id FROM memories WHERE " + ofScope + " AND id IN (?) ORDER BY id",
	} {
		if _, err := sqldb.All[string](t, query+t.ForNoKeyUpdate(), t.userID, characterID, ids); err != nil {
			return err
		}
	}
	return nil
}

// flushVectors stores vectors under a version of their scope: with it, so that a row is written once.
func (t *memoryTx) flushVectors(characterID string, vectors map[string]storedVector, version int64) error {
	const set = " SET model = ?, vector = ?, " + atVersion
	for _, id := range slices.Sorted(maps.Keys(vectors)) { // as locks are taken
		args := []any{vectors[id].Model, vectors[id].Vector, version, version, t.userID, characterID, id}
		texts, err := t.Exec("UPDATE memory_texts"+set+" AND revision_id = ? AND NOT is_forgotten", args...)
		if err == nil && texts == 0 {
			err = t.Run("UPDATE memories"+set+" AND id = ?", args...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// number is the number of a model, 0 if it has made no vector of the scope.
func (r *scopeRow) number(model string) int { return slices.Index(r.Models, model) + 1 }

// numberModel is scopeRow.number of a model that gets one if it has none.
func (t *memoryTx) numberModel(characterID, model string) (int, error) {
	at, err := t.scope(characterID)
	if err != nil || at.number(model) > 0 {
		return at.number(model), err
	}
	at.Models = append(at.Models, model)
	return len(at.Models), t.Run("UPDATE memory_scopes SET models = ? WHERE "+ofScope, at.Models, t.userID, characterID)
}
