package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"nodest/store/first"
)

// A backup of schema 1 has other tables than a database of today: package first makes rows of its
// rows. Prompts, events and answers of commands do not come over; they would end within 7 days.

// isFirst reports whether the backup is of schema 1.
func (b *BackupFile) isFirst() bool { return b.Manifest.SchemaVersion == first.Schema }

// firstTables are the tables of a backup of schema 1 as its manifest has them: programs that wrote
// them differ in some.
func firstTables(m *Manifest) ([]*table, error) {
	var tables []*table
	for _, t := range m.Tables {
		columns := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			columns[i] = c.Name + " " + string(c.Kind)
		}
		if !first.Fits(t.Name, columns) {
			return nil, damaged("the table %s does not match schema version %d", t.Name, first.Schema)
		}
		tables = append(tables, &table{name: t.Name, columns: t.Columns})
	}
	for _, name := range first.Tables() {
		if first.Required(name) && m.place(name) < 0 {
			return nil, damaged("the table %s is missing", name)
		}
	}
	return tables, nil
}

// place is where the manifest lists a table; -1 = nowhere.
func (m *Manifest) place(name string) int {
	return slices.IndexFunc(m.Tables, func(t ManifestTable) bool { return t.Name == name })
}

// firstRows are rows of a table of today that are made of rows of a backup of schema 1.
type firstRows struct {
	*rowReader
	target *table
	step   first.Step
	made   []cells // rows made of the row that was read last
}

func (f *firstRows) into() *table { return f.target }

func (f *firstRows) values() cells { return f.made[0] }

func (f *firstRows) next() bool {
	if len(f.made) > 0 {
		f.made = f.made[1:]
	}
	for len(f.made) == 0 && f.rowReader.next() {
		old := make(first.Row, len(f.row))
		for i, c := range f.table.columns {
			old[c.Name] = f.row[i]
		}
		if err := f.step.Make(old, f.add); err != nil {
			f.err = err // which close tells with the row
		}
		if f.err != nil {
			return false
		}
	}
	return len(f.made) > 0
}

// add notes a row, which has a value for each column and no others.
func (f *firstRows) add(row first.Row) {
	values := make(cells, len(f.target.columns))
	for i, c := range f.target.columns {
		value, ok := row[c.Name]
		if !ok {
			f.err = fmt.Errorf("no value for %s", c.Name)
		}
		values[i] = value
	}
	if len(row) != len(values) {
		f.err = fmt.Errorf("more values than %s has columns", f.target.name)
	}
	f.made = append(f.made, values)
}

// eachSource calls f with what a table of a database of today gets from the backup.
func (b *BackupFile) eachSource(t *table, f func(rowSource) error) error {
	steps := []first.Step{{From: t.name}}
	if b.isFirst() {
		steps = first.Steps(t.name)
	}
	for _, step := range steps {
		at := b.Manifest.place(step.From)
		if at < 0 { // some programs did not have it
			continue
		}
		rows, err := b.rows(at)
		if err != nil {
			return err
		}
		var source rowSource = rows
		if b.isFirst() {
			source = &firstRows{rowReader: rows, target: t, step: step}
		}
		failed := f(source)
		err = source.close()
		if failed != nil && source.failure() == nil {
			return failed
		}
		if err != nil { // the cause, where both fail
			return err
		}
	}
	return nil
}

// usesOf is the table that takes what was recalled until the conversations of its messages are known.
func usesOf(tables []*table) *table {
	at := slices.IndexFunc(tables, func(t *table) bool { return t.name == "memory_uses" })
	t := &table{name: first.UsesTable, columns: slices.Clone(tables[at].columns)}
	for i := range t.columns {
		if t.columns[i].Name == "conversation_id" {
			t.columns[i].Name = "message_id"
		}
	}
	return t
}

// loadUses fills memory_uses. A unit that was purged is still listed for the text, without its score.
// Signals are kept as long as the generation is.
func (r *restoring) loadUses(ctx context.Context, db *sql.DB, tables []*table, insert insertRows) error {
	t := usesOf(tables)
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+t.name+" AS SELECT u.*, u.conversation_id AS message_id FROM memory_uses u WHERE 1 = 0"); err != nil {
		return err
	}
	if err := r.backup.eachSource(t, func(s rowSource) error { return insert(ctx, s) }); err != nil {
		return err
	}
	const isThere = "(f.id IS NOT NULL OR x.revision_id IS NOT NULL)"
	for _, statement := range []string{
		`INSERT INTO memory_uses (user_id, conversation_id, generation_id, unit_id, rank, layer, score, signals)
			SELECT user_id, conversation_id, generation_id, unit_id, rank, layer, score, signals
			FROM (SELECT s.user_id, m.conversation_id, s.generation_id, s.unit_id, s.rank,
				CASE WHEN s.layer <> '' THEN s.layer WHEN f.id IS NOT NULL THEN 'f' ELSE 'e' END AS layer,
				CASE WHEN ` + isThere + ` THEN s.score END AS score, CASE WHEN ` + isThere + ` AND g.id IS NOT NULL THEN s.signals END AS signals,
				ROW_NUMBER() OVER (PARTITION BY s.user_id, m.conversation_id, s.generation_id, s.unit_id ORDER BY s.score IS NULL, s.rank) AS place
			FROM ` + t.name + ` s JOIN messages m ON m.user_id = s.user_id AND m.id = s.message_id
			LEFT JOIN memories f ON f.user_id = s.user_id AND f.id = s.unit_id
			LEFT JOIN memory_texts x ON x.user_id = s.user_id AND x.revision_id = s.unit_id AND NOT x.is_forgotten
			LEFT JOIN generations g ON g.user_id = s.user_id AND g.id = s.generation_id
			WHERE s.generation_id IS NOT NULL AND (` + isThere + ` OR s.layer <> 'p')
			) AS uses WHERE place = 1`,
		"DROP TABLE " + t.name,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("store what was recalled: %w", err)
		}
	}
	return nil
}
