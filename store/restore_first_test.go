package store_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/store"
	"nodest/store/storetest"
)

// firstBackup is a backup of schema 1.
var firstBackup = filepath.Join("testdata", "first", "backup.zip")

// restoredFirst restores it into an empty database, and returns this with a backup of it.
func restoredFirst(e *env, of string) (o store.Options, now *store.BackupFile) {
	e.Helper()
	o = e.emptyDatabase()
	if o.Dir == "" {
		o.Dir = e.TempDir()
	}
	if _, err := restore(e.T, o, of, store.RestoreOptions{}); err != nil {
		e.Fatal(err)
	}
	now, err := store.OpenBackup(context.Background(), backup(e.T, o, store.BackupOptions{}))
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = now.Close() })
	return o, now
}

// Each row of each table of a backup of schema 1 comes over, except for prompts, events and stored
// answers, with its vector, so that no model is asked for it again.
func TestEveryRowOfTheFirstSchemaComesOver(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		old, err := store.OpenBackup(context.Background(), firstBackup)
		if err != nil {
			e.Fatal(err)
		}
		defer old.Close() //nolint:errcheck // it is only read
		o, now := restoredFirst(e, firstBackup)
		for _, was := range old.Manifest.Tables {
			want := was.Rows
			switch was.Name {
			case "prompts", "prompt_parts", "events", "call_keys":
				if want == 0 {
					e.Errorf("the backup has no rows of %s", was.Name)
				}
				want = 0
			case "quotas":
				continue // they are counted
			}
			if got := now.Manifest.Rows(was.Name); got != want {
				e.Errorf("%s has %d rows, want %d", was.Name, got, want)
			}
		}
		if n := now.Manifest.Rows("memory_uses"); n == 0 {
			e.Error("nothing that was recalled came over")
		}
		for _, table := range []string{"memory_texts", "memories", "knowledge_vectors"} {
			if got, want := vectorsIn(e, now, table), vectorsIn(e, old, table); got != want || got == 0 {
				e.Errorf("%s has %d vectors, want %d", table, got, want)
			}
		}
		wrong, err := store.CheckCounters(context.Background(), o)
		if err != nil || len(wrong) > 0 {
			e.Errorf("counters that differ: %+v, %v", wrong, err)
		}
	})
}

func vectorsIn(e *env, b *store.BackupFile, table string) (n int) {
	e.Helper()
	err := b.Each(table, func(row map[string]any) error {
		if row["vector"] != nil {
			n++
		}
		return nil
	})
	if err != nil {
		e.Fatal(err)
	}
	return n
}

// Programs that wrote schema 1 differ: later ones kept the lines of imported logs in a table, and knew
// which model was asked for. Backups of both are restored alike.
func TestBackupsOfAllProgramsOfTheFirstSchemaAreRestored(t *testing.T) {
	t.Parallel()
	later := edited(t, map[string]tableEdit{
		"messages": func(columns []string, rows [][]any) ([]string, [][]any) {
			extra := slices.Index(columns, "extra text")
			columns[extra] = "is_imported boolean"
			for _, row := range rows {
				row[extra] = row[extra] != nil
			}
			return columns, rows
		},
		"message_lines": func([]string, [][]any) ([]string, [][]any) {
			var lines [][]any
			edited(t, map[string]tableEdit{"messages": func(columns []string, rows [][]any) ([]string, [][]any) {
				for _, row := range rows {
					if extra := row[slices.Index(columns, "extra text")]; extra != nil {
						lines = append(lines, []any{row[0], row[1], extra})
					}
				}
				return columns, rows
			}})
			return []string{"user_id text", "message_id text", "line text"}, lines
		},
		"app_characters": func([]string, [][]any) ([]string, [][]any) {
			return []string{"user_id text", "app_key text", "character_id text"}, nil
		},
		"revisions": asked, "generations": asked,
	})
	onBothDatabases(t, func(e *env) {
		_, first := restoredFirst(e, firstBackup)
		_, now := restoredFirst(e, later)
		lines := 0
		if err := now.Each("message_lines", func(map[string]any) error { lines++; return nil }); err != nil || lines == 0 {
			e.Errorf("%d lines of logs, %v", lines, err)
		}
		for i, table := range first.Manifest.Tables {
			if other := now.Manifest.Tables[i]; other.Rows != table.Rows {
				e.Errorf("%s has %d rows, want %d", table.Name, other.Rows, table.Rows)
			}
		}
		for _, table := range []string{"revisions", "generations"} {
			if err := now.Each(table, func(row map[string]any) error {
				if row["requested_model"] != "an alias" {
					return fmt.Errorf("%s has the model %v", table, row["requested_model"])
				}
				return nil
			}); err != nil {
				e.Error(err)
			}
		}
	})
}

// asked adds the model that was asked for.
func asked(columns []string, rows [][]any) ([]string, [][]any) {
	for i := range rows {
		rows[i] = append(rows[i], "an alias")
	}
	return append(columns, "requested_model text"), rows
}

// tableEdit changes a table of a backup, or makes one.
type tableEdit func(columns []string, rows [][]any) ([]string, [][]any)

// edited returns a copy of the backup of schema 1 with other rows in some tables, whose manifest fits.
func edited(t testing.TB, edits map[string]tableEdit) (path string) {
	t.Helper()
	r, err := zip.OpenReader(firstBackup)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it is only read
	var m map[string]any
	path = filepath.Join(t.TempDir(), "edited.zip")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(out)
	write := func(name string, data []byte) {
		entry, err := w.Create(name)
		if err == nil {
			_, err = entry.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string][]byte{}
	for _, f := range r.File {
		entry, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if kept[f.Name], err = io.ReadAll(entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(kept["manifest.json"], &m); err != nil {
		t.Fatal(err)
	}
	delete(kept, "manifest.json")
	tables := m["tables"].([]any)
	for name, change := range edits {
		at := slices.IndexFunc(tables, func(v any) bool { return v.(map[string]any)["name"] == name })
		if at < 0 {
			at, tables = len(tables), append(tables, map[string]any{"name": name})
		}
		tables[at] = editTable(t, tables[at].(map[string]any), kept, change)
	}
	m["tables"] = tables
	for name, data := range kept {
		write(name, data)
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write("manifest.json", manifest)
	if err := errors.Join(w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// editTable changes a table in the files of a backup, and returns its entry in the manifest.
func editTable(t testing.TB, entry map[string]any, files map[string][]byte, change tableEdit) map[string]any {
	t.Helper()
	file := fmt.Sprintf("tables/%s.jsonl", entry["name"])
	var columns []string
	listed, _ := entry["columns"].([]any)
	for _, c := range listed {
		columns = append(columns, c.(string))
	}
	var rows [][]any
	lines := json.NewDecoder(bytes.NewReader(files[file]))
	lines.UseNumber()
	for lines.More() {
		var row []any
		if err := lines.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	columns, rows = change(columns, rows)
	var text bytes.Buffer
	for _, row := range rows {
		if err := json.NewEncoder(&text).Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	files[file] = text.Bytes()
	sum := sha256.Sum256(text.Bytes())
	return map[string]any{"name": entry["name"], "columns": columns, "rows": len(rows), "sha256": hex.EncodeToString(sum[:])}
}

// A backup of schema 1 that is not whole is refused, and nothing is made.
func TestADamagedBackupOfTheFirstSchemaIsRefused(t *testing.T) {
	t.Parallel()
	manifest := func(old, now string) string {
		return rewritten(t, firstBackup, "manifest.json", func(text string) string { return strings.Replace(text, old, now, 1) })
	}
	for name, path := range map[string]string{
		"an unknown table":                   manifest(`"name": "users"`, `"name": "people"`),
		"an unknown column":                  manifest(`"username text"`, `"nickname text"`),
		"another kind":                       manifest(`"username text"`, `"username blob"`),
		"too few columns":                    manifest(`"username text",`, ``),
		"no rows":                            rewritten(t, firstBackup, "tables/memories.jsonl", func(string) string { return "" }),
		"a summary that cannot be read":      edited(t, map[string]tableEdit{"summary_texts": cut("document blob")}),
		"recalled items that cannot be read": edited(t, map[string]tableEdit{"revisions": cut("uses blob")}),
	} {
		b, err := store.OpenBackup(context.Background(), path)
		if err == nil {
			err = b.Verify(context.Background())
			_ = b.Close()
		}
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fmt.Sprint(err), "not a complete NodeST backup") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// cut leaves three bytes of each BLOB of a column.
func cut(column string) tableEdit {
	return func(columns []string, rows [][]any) ([]string, [][]any) {
		at := slices.Index(columns, column)
		for _, row := range rows {
			if text, ok := row[at].(string); ok && len(text) > 4 {
				row[at] = text[:4]
			}
		}
		return columns, rows
	}
}

// A restored file is no larger than the one that the backup was made of, even if that one has no room
// to spare.
func TestARestoredFileIsNoLarger(t *testing.T) {
	t.Parallel()
	storetest.NeedSQLite(t)
	source, target := store.Options{Dir: t.TempDir(), Log: quiet}, store.Options{Dir: t.TempDir(), Log: quiet}
	if _, err := restore(t, source, firstBackup, store.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", filepath.Join(source.Dir, "nodest.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
		INSERT INTO call_keys (user_id, call_key, hash, created_at, is_short) SELECT u.id, hex(randomblob(16)), '', 0, FALSE FROM n, (SELECT id FROM users LIMIT 1) u;
		VACUUM`) // keys in no order
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(t, target, backup(t, source, store.BackupOptions{}), store.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if before, after := fileSize(t, source.Dir), fileSize(t, target.Dir); after > before {
		t.Errorf("%d bytes became %d", before, after)
	}
}

func fileSize(t testing.TB, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "nodest.db"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
