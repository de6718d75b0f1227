package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"testing"
)

// BackupTable is a table as a backup sees it.
type BackupTable struct {
	Name    string
	Columns []column
}

// BackupTables returns the tables of the newest schema, each after those it refers to.
func BackupTables(ctx context.Context) ([]BackupTable, error) {
	tables, err := tablesAt(ctx, newestVersion())
	if len(tables) != cap(tables) {
		return nil, errors.New("who appends to the tables changes those of others")
	}
	all := make([]BackupTable, len(tables))
	for i, t := range tables {
		all[i] = BackupTable{t.name, t.columns}
	}
	return all, err
}

// NewestVersion returns the newest version of the schema.
func NewestVersion() int64 { return newestVersion() }

// OldestVersion is the schema of the first migration.
const OldestVersion int64 = oldestVersion

// Parent returns the table and column that a foreign key refers to.
func (b BackupTable) Parent(t testing.TB, db *sql.DB, name string) (parent, key string, ok bool) {
	t.Helper()
	err := db.QueryRow(`SELECT "table", COALESCE("to", '') FROM pragma_foreign_key_list(?) WHERE "from" = ?`, b.Name, name).Scan(&parent, &key)
	return parent, key, err == nil
}

// Nullable reports whether a column may be NULL.
func (b BackupTable) Nullable(t testing.TB, db *sql.DB, name string) bool {
	t.Helper()
	var not bool
	if err := db.QueryRow(`SELECT "notnull" FROM pragma_table_info(?) WHERE name = ?`, b.Name, name).Scan(&not); err != nil {
		t.Fatal(err)
	}
	return !not
}

// Short reports whether a column of numbers has four bytes on PostgreSQL.
func (b BackupTable) Short(t testing.TB, db *sql.DB, name string) bool {
	t.Helper()
	var kind string
	if err := db.QueryRow(`SELECT type FROM pragma_table_info(?) WHERE name = ?`, b.Name, name).Scan(&kind); err != nil {
		t.Fatal(err)
	}
	return kind == "INTEGER"
}

// DecodeBackupRow reads a row with a column of each kind and writes it again.
func DecodeBackupRow(line []byte) (again []byte, ok bool) {
	columns := []column{{"a", kindText}, {"b", kindInt}, {"c", kindBool}, {"d", kindReal}, {"e", kindBlob}}
	r := &rowReader{table: &table{columns: columns}, row: make(cells, len(columns))}
	if r.decode(line) != nil {
		return nil, false
	}
	r.row.nameOdd()
	var written bytes.Buffer
	w := newRowWriter(&written)
	if w.add(r.row) != nil || w.out.Flush() != nil {
		return nil, false
	}
	return written.Bytes(), true
}
