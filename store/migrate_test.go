package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"nodest/internal/fault"
	"nodest/migrations"
	"nodest/store"
	"nodest/store/storetest"
)

// tables returns the columns of every table, sorted.
func tables(t testing.TB, db *store.DB) map[string][]string {
	t.Helper()
	query := "SELECT m.name || '.' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c" +
		" WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
	if store.OnPostgres(db) {
		query = "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = current_schema()"
	}
	names, err := store.Query[string](db, query)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, name := range names {
		table, column, _ := strings.Cut(name, ".")
		if table != "schema_versions" && table != "goose_lock" {
			all[table] = append(all[table], column)
		}
	}
	for _, columns := range all {
		slices.Sort(columns)
	}
	return all
}

func TestBothSchemasAreTheSame(t *testing.T) {
	t.Parallel()
	pg := storetest.OpenPostgres(t, store.Options{})
	lite := storetest.Open(t)
	a, b := tables(t, lite), tables(t, pg)
	if got, want := slices.Sorted(maps.Keys(b)), slices.Sorted(maps.Keys(a)); !slices.Equal(got, want) {
		t.Errorf("tables on PostgreSQL: %v\non SQLite: %v", got, want)
	}
	for table, columns := range a {
		if !slices.Equal(b[table], columns) {
			t.Errorf("%s has on PostgreSQL: %v\non SQLite: %v", table, b[table], columns)
		}
	}
	indexes := func(db *store.DB, query string) []string {
		names, err := store.Query[string](db, query)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	i := indexes(lite, "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
	j := indexes(pg, "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexname NOT LIKE '%_pkey' AND indexname NOT LIKE '%_key' ORDER BY indexname")
	if !slices.Equal(i, j) {
		t.Errorf("indexes on PostgreSQL: %v\non SQLite: %v", j, i)
	}
	// Ids would have another order, which depends on the language of the database.
	other := indexes(pg, "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = current_schema()"+
		" AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'")
	if len(other) > 0 {
		t.Errorf("columns without the collation C: %v", other)
	}
}

// emptyDatabase returns the options of a new database of the same kind.
func (e *env) emptyDatabase() store.Options {
	e.Helper()
	if store.OnPostgres(e.db) {
		return store.Options{Log: quiet, URL: storetest.PostgresURL(e.T)}
	}
	return store.Options{Log: quiet, Dir: e.TempDir()}
}

// openAt opens the database of o with the schema of a version.
func (e *env) openAt(o store.Options, version int64) *sql.DB {
	e.Helper()
	driver, dsn, folder, dialect := "pgx", o.URL, "postgres", database.DialectPostgres
	if o.URL == "" {
		driver, dsn, folder, dialect = "sqlite3", filepath.Join(o.Dir, "nodest.db"), "sqlite", database.DialectSQLite3
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		e.Fatal(err)
	}
	files, err := fs.Sub(migrations.Files(), folder)
	if err != nil {
		e.Fatal(err)
	}
	notes, err := database.NewStore(dialect, "schema_versions")
	if err != nil {
		e.Fatal(err)
	}
	p, err := goose.NewProvider("", db, files, goose.WithStore(notes), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		e.Fatal(err)
	}
	if _, err := p.UpTo(context.Background(), version); err != nil {
		e.Fatal(err)
	}
	return db
}

func TestADatabaseOfANewerProgramIsRefused(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		o := e.emptyDatabase()
		for range 2 { // the second time there is nothing to migrate
			db, err := store.Open(context.Background(), o)
			if err != nil {
				e.Fatal(err)
			}
			if err := db.Close(); err != nil {
				e.Fatal(err)
			}
		}
		driver, dsn := "pgx", o.URL
		if o.URL == "" {
			driver, dsn = "sqlite3", filepath.Join(o.Dir, "nodest.db")
		}
		raw, err := sql.Open(driver, dsn)
		if err != nil {
			e.Fatal(err)
		}
		defer raw.Close()
		if _, err := raw.Exec("INSERT INTO schema_versions (version_id, is_applied) VALUES (9999, true)"); err != nil {
			e.Fatal(err)
		}
		db, err := store.Open(context.Background(), o)
		if err == nil {
			_ = db.Close()
		}
		e.code(fault.NewerVersion, err)
		if !strings.Contains(err.Error(), "9999") {
			e.Errorf("the error does not name the version: %v", err)
		}
	})
}

func TestASecondProcessIsKeptOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := store.Open(context.Background(), store.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.Open(context.Background(), store.Options{Dir: dir, Log: quiet})
	if err == nil {
		_ = second.Close()
		t.Fatal("a folder was opened twice")
	}
	for _, part := range []string{dir, "in use", "pid"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := store.Open(context.Background(), store.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	_ = third.Close()
}

func TestOpenRefusesInvalidOptionsWithoutTellingThePassword(t *testing.T) {
	t.Parallel()
	for _, o := range []store.Options{{}, {URL: "mysql://x"}, {URL: "postgres://user:secret@/%zz"}} {
		db, err := store.Open(context.Background(), o)
		if err == nil {
			_ = db.Close()
			t.Fatalf("%+v was opened", o)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains the password: %v", err)
		}
	}
}

func TestSeveralProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresURL(t)
	opened := make(chan error, 4)
	for range cap(opened) {
		go func() {
			db, err := store.Open(context.Background(), store.Options{URL: url, Readers: 4, Log: quiet})
			if err == nil {
				err = db.Close()
			}
			opened <- err
		}()
	}
	for range cap(opened) {
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
}

func TestAFolderNameMayHaveSpecialCharacters(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?c#d%20é")
	db, err := store.Open(context.Background(), store.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "nodest.db")); len(files) != 1 {
		t.Error(fmt.Sprint("the database is not in its folder: ", files))
	}
}

// The data folder may be one that everybody can read; the files in it are not.
func TestOthersCannotReadTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // a folder that others can read is what is tested
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

// Creating a database logs one line, however many migrations there are; opening an up-
// to-date one logs nothing.
func TestMigrationsAreLoggedInOneLine(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	o := store.Options{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&said, nil))}
	for range 2 {
		db, err := store.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(said.String(), "\n"); n != 1 || !strings.Contains(said.String(), `msg="database created"`) {
		t.Errorf("the log is %s", said.String())
	}
}
