package storetest

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"nodest/internal/codec"
	"nodest/internal/index/dict"
	"nodest/store"
	"nodest/store/sqldb"
)

// Words looks for words in everything that a database stores, whatever the tables are called: every
// column of every table, as it stands and decompressed, and every file of a new backup. It returns
// the places of each word that is there, "table.column", and "backup: FILE". Words are in lower case
// and have no endings that a search leaves out.
func Words(t testing.TB, db *store.DB, words ...string) map[string][]string {
	t.Helper()
	o := optionsOf(t, db)
	places := map[string][]string{}
	note := func(place string, value []byte) {
		forms, err := formsOf(value)
		if err != nil {
			t.Fatalf("%s: %v", place, err)
		}
		for _, form := range forms {
			for _, word := range words {
				if bytes.Contains(form, []byte(word)) && !slices.Contains(places[word], place) {
					places[word] = append(places[word], place)
				}
			}
		}
	}
	eachValue(t, o, note)
	eachOfBackup(t, o, note)
	return places
}

// WantFilesWithout fails the test if one of the words stands in the files of a database on SQLite,
// also where no table reaches. On PostgreSQL it does nothing.
func WantFilesWithout(t testing.TB, db *store.DB, words ...string) {
	t.Helper()
	o := optionsOf(t, db)
	if o.URL != "" {
		return
	}
	for _, name := range []string{sqldb.File, sqldb.File + "-wal"} {
		data, err := os.ReadFile(filepath.Join(o.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if n := bytes.Count(bytes.ToLower(data), []byte(word)); n > 0 {
				t.Errorf("%q stands in %s %d times", word, name, n)
			}
		}
	}
}

// formsOf returns a stored value in all forms in which it may have words. The error tells that a
// form cannot be read, so that words in it could not be found.
func formsOf(value []byte) ([][]byte, error) {
	forms := [][]byte{bytes.ToLower(value), termsOf(value)}
	if bytes.HasPrefix(value, zstdMagic) {
		text, err := codec.Unpack(value)
		if err != nil {
			return nil, err
		}
		forms = append(forms, bytes.ToLower(text))
	}
	return forms, nil
}

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// termsOf returns the terms of search indexes. Each begins a block of a dictionary, whose first term
// shares nothing with another one; blocks may begin anywhere.
func termsOf(value []byte) (terms []byte) {
	for at := range len(value) - 2 {
		if value[at] != 0 || value[at+1] == 0 || value[at+2] <= ' ' { // shared, length, and a letter
			continue
		}
		for t := dict.Block(value[at:]).Terms(); t.Next(); {
			terms = append(append(terms, t.Term...), '\n')
		}
	}
	return terms
}

// eachValue calls f with each text and each BLOB of all tables.
func eachValue(t testing.TB, o store.Options, f func(place string, value []byte)) {
	t.Helper()
	db, tables := openForReading(t, o)
	defer db.Close() //nolint:errcheck // nothing was written
	for _, table := range column(t, db, tables) {
		eachOfTable(t, db, table, f)
	}
}

func eachOfTable(t testing.TB, db *sql.DB, table string, f func(place string, value []byte)) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), `SELECT * FROM "`+table+`"`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // read to the end
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	row, targets := make([]any, len(names)), make([]any, len(names))
	for i := range row {
		targets[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		for i, v := range row {
			switch v := v.(type) {
			case string:
				f(table+"."+names[i], []byte(v))
			case []byte:
				f(table+"."+names[i], v)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// openForReading opens a database beside the store, and returns the statement that lists its tables.
func openForReading(t testing.TB, o store.Options) (db *sql.DB, tables string) {
	t.Helper()
	if o.URL != "" {
		config, err := pgx.ParseConfig(o.URL)
		if err != nil {
			t.Fatal(err)
		}
		return stdlib.OpenDB(*config), "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"
	}
	db, err := sql.Open("sqlite3", sqldb.SQLiteDSN(filepath.Join(o.Dir, sqldb.File), true))
	if err != nil {
		t.Fatal(err)
	}
	return db, "SELECT name FROM sqlite_schema WHERE type = 'table'"
}

func column(t testing.TB, db *sql.DB, query string) (values []string) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // read to the end
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

// eachOfBackup makes a backup and calls f with each text of it, and with each that may be a BLOB.
func eachOfBackup(t testing.TB, o store.Options, f func(place string, value []byte)) {
	t.Helper()
	var file bytes.Buffer
	if _, err := store.Backup(context.Background(), o, &file, store.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	entries, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries.File {
		r, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		place := "backup: " + entry.Name
		f(place, data)
		for line := range bytes.Lines(data) {
			var row []any
			if json.Unmarshal(line, &row) != nil {
				break // no rows
			}
			for _, v := range row {
				text, _ := v.(string)
				if blob, err := base64.StdEncoding.DecodeString(text); err == nil && len(blob) > 0 {
					f(place, blob)
				}
			}
		}
	}
}
