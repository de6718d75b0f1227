package store_test

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func backup(t testing.TB, o store.Options, b store.BackupOptions) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "b.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := store.Backup(context.Background(), o, f, b); err != nil {
		t.Fatal(err)
	}
	return path
}

func restore(t testing.TB, o store.Options, path string, r store.RestoreOptions) (*store.Restored, error) {
	t.Helper()
	b, err := store.OpenBackup(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := b.Verify(context.Background()); err != nil {
		t.Fatal(err)
	}
	return store.Restore(context.Background(), o, b, r)
}

// entries returns the lines of a backup's tables, sorted, because the order of rows
// depends on the database.
func entries(t testing.TB, path string) map[string][]string {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[string][]string{}
	for _, f := range r.File {
		if !strings.HasPrefix(f.Name, "tables/") || f.Name == "tables/streams.jsonl" || f.Name == "tables/quotas.jsonl" {
			continue // after a restore, the epochs of streams are new and quotas are counted
		}
		entry, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(entry)
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name] = slices.Sorted(strings.Lines(string(text)))
	}
	return all
}

// Every column of every table survives a backup and restore from SQLite to PostgreSQL
// and back, with unusual values. New tables are tested without a change here.
func TestEveryValueSurvivesBackupAndRestore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	second := store.Options{URL: storetest.PostgresURL(t), Dir: t.TempDir(), Log: quiet}
	first := store.Options{Dir: storetest.Dir(t), Log: quiet}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(first.Dir, "nodest.db")+"?_foreign_keys=on")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	rng := random(t)
	tables, err := store.BackupTables(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for n := range 7 {
			fillRow(t, db, rng, table, n)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"secret.key": []byte("the secret\n")}
	one := backup(t, first, store.BackupOptions{Files: files})
	want := entries(t, one)
	for name, lines := range want {
		if len(lines) != 7 {
			t.Fatalf("%s has %d rows", name, len(lines))
		}
	}
	if lines := want["tables/users.jsonl"]; !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "[\"726f7720-") }) {
		t.Errorf("ids are not texts in a backup: %q", lines)
	}
	third := store.Options{Dir: filepath.Join(t.TempDir(), "new"), Log: quiet}
	from := one
	for _, o := range []store.Options{second, third} {
		if _, err := restore(t, o, from, store.RestoreOptions{Files: files}); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(o.Dir, "secret.key")); err != nil || string(text) != "the secret\n" {
			t.Errorf("secret %q, %v", text, err)
		}
		from = backup(t, o, store.BackupOptions{})
		got := entries(t, from)
		for name, lines := range want {
			if !slices.Equal(got[name], lines) {
				t.Errorf("%s:\n got %.500q\nwant %.500q", name, got[name], lines)
			}
		}
	}
}

var oddTexts = []string{"", "plain", "日本語 🦊", "\x010", "quote \" back \\ slash", "line\nline\r\n\t", "<b>&amp;</b>\u2028\u2029", "null", "\ufffd", `\N`, `\x00`}

// fillRow inserts a row with valid foreign keys.
func fillRow(t *testing.T, db *sql.DB, rng *rand.Rand, table store.BackupTable, n int) {
	t.Helper()
	values := make([]any, len(table.Columns))
	for i, c := range table.Columns {
		switch c.Kind {
		case "text":
			values[i] = fmt.Sprintf("%s %d %s", c.Name, n, oddTexts[rng.IntN(len(oddTexts))])
		case "id":
			values[i] = []byte(fmt.Sprintf("row%4d col %4d", n, i))
		case "integer":
			x := []int64{0, -1, 1 << 62, -1 << 63, rng.Int64()}[rng.IntN(5)]
			if table.Short(t, db, c.Name) {
				x >>= 32
			}
			values[i] = x&^7 | int64(n) // the low bits make it unique
		case "real":
			values[i] = []float64{0, -0.1, 1e-300, 1.7976931348623157e308, rng.NormFloat64()}[rng.IntN(5)]
		case "boolean":
			values[i] = rng.IntN(2) == 0
		case "blob":
			values[i] = append([]byte{0, 255, byte(n)}, oddTexts[rng.IntN(len(oddTexts))]...)
		}
		if parent, column, ok := table.Parent(t, db, c.Name); ok {
			if err := db.QueryRow(`SELECT "`+column+`" FROM "`+parent+`" ORDER BY "`+column+`" LIMIT 1 OFFSET ?`, n).Scan(&values[i]); err != nil {
				t.Fatal(err)
			}
		} else if n == 6 && table.Nullable(t, db, c.Name) {
			values[i] = nil
		}
	}
	_, err := db.Exec(`INSERT INTO "`+table.Name+`" VALUES (?`+strings.Repeat(", ?", len(values)-1)+")", values...)
	if err != nil {
		t.Fatalf("%s: %v", table.Name, err)
	}
}

// Backups of every earlier schema version are migrated when restored.
func TestAnOldBackupIsMigrated(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		for version := store.OldestVersion; version <= store.NewestVersion(); version++ {
			old := e.emptyDatabase()
			db := e.openAt(old, version)
			ada := uuid.MustParse(id())
			literal := "x'" + hex.EncodeToString(ada[:]) + "'"
			if old.URL != "" {
				literal = "'" + ada.String() + "'"
			}
			if _, err := db.Exec("INSERT INTO users (id, username, username_key, role, tokens_per_day, generations, max_bytes, password_hash, created_at) VALUES (" + literal + ", 'Ada', 'ada', 'owner', 0, 0, 0, '', 1)"); err != nil {
				e.Fatal(err)
			}
			if err := db.Close(); err != nil {
				e.Fatal(err)
			}
			path := backup(e.T, old, store.BackupOptions{})
			fresh := e.emptyDatabase()
			if fresh.Dir == "" {
				fresh.Dir = e.TempDir()
			}
			if _, err := restore(e.T, fresh, path, store.RestoreOptions{}); err != nil {
				e.Fatal(err)
			}
			now := storetest.OpenWith(e.T, fresh)
			u, err := now.User(context.Background(), ada.String())
			if err != nil || u.Username != "Ada" {
				e.Fatalf("version %d: %+v, %v", version, u, err)
			}
			at, err := store.Query[int64](now, "SELECT MAX(version_id) FROM schema_versions")
			if err != nil || at[0] != store.NewestVersion() {
				e.Fatalf("version %d is now %v, %v", version, at, err)
			}
		}
	})
}

func TestABackupOfANewerProgramIsRefused(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		o := e.emptyDatabase()
		o.Dir = e.TempDir()
		db := e.openAt(o, store.NewestVersion())
		defer db.Close()
		good := backup(e.T, o, store.BackupOptions{})
		if _, err := db.Exec("INSERT INTO schema_versions (version_id, is_applied) VALUES (9999, true)"); err != nil {
			e.Fatal(err)
		}
		_, err := store.Backup(context.Background(), o, io.Discard, store.BackupOptions{})
		e.code(fault.NewerVersion, err)

		newer := rewritten(e.T, good, "manifest.json", func(text string) string {
			return strings.Replace(text, fmt.Sprintf(`"schemaVersion": %d`, store.NewestVersion()), `"schemaVersion": 9999`, 1)
		})
		_, err = store.OpenBackup(context.Background(), newer)
		e.code(fault.NewerVersion, err)
	})
}

// A backup that was edited by hand is refused.
func TestAModifiedBackupIsRefused(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		o := e.emptyDatabase()
		o.Dir = e.TempDir()
		db := storetest.OpenWith(e.T, o)
		storetest.User(e.T, db)
		if err := db.Close(); err != nil {
			e.Fatal(err)
		}
		good := backup(e.T, o, store.BackupOptions{Files: map[string][]byte{"secret.key": []byte("x")}})
		for name, bad := range map[string]string{
			"a row is missing":             rewritten(e.T, good, "tables/users.jsonl", func(string) string { return "" }),
			"a row is changed":             rewritten(e.T, good, "tables/users.jsonl", func(s string) string { return strings.Replace(s, "member", "owner!", 1) }),
			"a line is cut":                rewritten(e.T, good, "tables/users.jsonl", func(s string) string { return s[:len(s)-3] }),
			"a value is missing":           rewritten(e.T, good, "tables/streams.jsonl", func(string) string { return "[1]\n" }),
			"a number is a text":           rewritten(e.T, good, "tables/streams.jsonl", func(s string) string { return strings.Replace(s, ",0]", `,"0"]`, 1) }),
			"the secret is changed":        rewritten(e.T, good, "files/secret.key", func(string) string { return "y" }),
			"the manifest is empty":        rewritten(e.T, good, "manifest.json", func(string) string { return "{}" }),
			"a file is outside the folder": rewritten(e.T, good, "manifest.json", func(s string) string { return strings.Replace(s, `"secret.key"`, `"../secret.key"`, 1) }),
			"a table has other columns": rewritten(e.T, good, "manifest.json", func(s string) string {
				return strings.Replace(s, `"username text"`, `"username\" text"`, 1)
			}),
		} {
			b, err := store.OpenBackup(context.Background(), bad)
			if err == nil {
				err = b.Verify(context.Background())
				_ = b.Close()
			}
			if !fault.Is(err, fault.Invalid) {
				e.Errorf("%s: %v", name, err)
			}
		}
	})
}

// rewritten returns a copy of a backup with one entry changed.
func rewritten(t testing.TB, path, name string, change func(string) string) string {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		entry, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(entry)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == name {
			data = []byte(change(string(data)))
		}
		part, err := w.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "changed.zip")
	if err := os.WriteFile(changed, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return changed
}

// A restore that is interrupted after any of its file moves is completed when the
// folder is opened.
func TestAnInterruptedRestoreIsCompleted(t *testing.T) {
	t.Parallel()
	made := func(user string) string { // a data folder with one user
		dir := storetest.Dir(t)
		db := storetest.OpenWith(t, store.Options{Dir: dir, Log: quiet})
		if err := db.Update(context.Background(), storetest.User(t, db), func(tx nodest.Tx) error {
			return store.Exec(tx, "UPDATE users SET username = ?", user)
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "secret.key"), []byte(user), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	const ready, aside = "restore-1.ready/", "replaced-1/"
	moves := [][2]string{ // in this order
		{"nodest.db-wal", aside + "nodest.db-wal"}, {"nodest.db", aside + "nodest.db"}, {ready + "nodest.db", "nodest.db"},
		{"secret.key", aside + "secret.key"}, {ready + "secret.key", "secret.key"},
	}
	for done := range len(moves) + 1 {
		dir := made("old")
		if err := os.Rename(made("new"), filepath.Join(dir, ready)); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, ready, "nodest.lock"))
		if err := os.WriteFile(filepath.Join(dir, "nodest.db-wal"), []byte("a log of the old database"), 0o600); err != nil {
			t.Fatal(err)
		}
		if done > 0 {
			if err := os.Mkdir(filepath.Join(dir, aside), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range moves[:done] {
			if err := os.Rename(filepath.Join(dir, m[0]), filepath.Join(dir, m[1])); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := store.Backup(context.Background(), store.Options{Dir: dir}, io.Discard, store.BackupOptions{}); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("a backup during a restore: %v", err)
		}
		db, err := store.Open(context.Background(), store.Options{Dir: dir, Log: quiet})
		if err != nil {
			t.Fatalf("after %d moves: %v", done, err)
		}
		names, err := store.Query[string](db, "SELECT username FROM users")
		secret, _ := os.ReadFile(filepath.Join(dir, "secret.key"))
		old, _ := os.ReadFile(filepath.Join(dir, aside, "secret.key"))
		if err != nil || fmt.Sprint(names) != "[new]" || string(secret) != "new" || string(old) != "old" {
			t.Errorf("after %d moves: %v %v, secret %s, moved aside %s", done, names, err, secret, old)
		}
		if _, err := os.Stat(filepath.Join(dir, ready)); err == nil {
			t.Errorf("after %d moves the restore is not complete", done)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged database is not backed up, because rows could be lost unnoticed.
func TestADamagedDatabaseIsNotBackedUp(t *testing.T) {
	t.Parallel()
	dir := storetest.Dir(t)
	path := filepath.Join(dir, "nodest.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(data); i++ { // all but the first page
		data[i] = 0xff
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = store.Backup(context.Background(), store.Options{Dir: dir}, io.Discard, store.BackupOptions{})
	if err == nil {
		t.Error("a damaged database was backed up")
	}
	b := backup(t, store.Options{Dir: storetest.Dir(t)}, store.BackupOptions{})
	if _, err := restore(t, store.Options{Dir: dir}, b, store.RestoreOptions{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("restoring over a damaged database without force: %v", err)
	}
	if _, err := restore(t, store.Options{Dir: dir}, b, store.RestoreOptions{Force: true}); err != nil {
		t.Errorf("with force: %v", err)
	}
}

// Restoring leaves other programs' tables in the same PostgreSQL database alone.
func TestOtherTablesInPostgresStay(t *testing.T) {
	t.Parallel()
	o := store.Options{URL: storetest.PostgresURL(t), Dir: t.TempDir(), Log: quiet}
	raw, err := sql.Open("pgx", o.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec("CREATE TABLE guests (name TEXT)"); err != nil {
		t.Fatal(err)
	}
	db := storetest.OpenWith(t, o)
	storetest.User(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	path := backup(t, o, store.BackupOptions{})
	done, err := restore(t, o, path, store.RestoreOptions{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	var guests, before, now, left int
	err = raw.QueryRow(`SELECT (SELECT COUNT(*) FROM guests), (SELECT COUNT(*) FROM `+done.MovedTo+`.users), (SELECT COUNT(*) FROM users),
		(SELECT COUNT(*) FROM pg_namespace WHERE nspname = 'nodest_restore_' || current_schema())`).Scan(&guests, &before, &now, &left)
	if err != nil || before != 1 || now != 1 || left != 0 {
		t.Errorf("%d users were moved aside, %d are there, %d schemas are left; %v", before, now, left, err)
	}
	if _, err := raw.Exec("DROP SCHEMA " + done.MovedTo + " CASCADE"); err != nil {
		t.Error(err)
	}
}

func FuzzOpenBackup(f *testing.F) {
	data, err := os.ReadFile(backup(f, store.Options{Dir: storetest.Dir(f)}, store.BackupOptions{Files: map[string][]byte{"secret.key": []byte("x")}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte("PK"))
	path := filepath.Join(f.TempDir(), "fuzz.zip")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := store.OpenBackup(context.Background(), path)
		if err != nil {
			return
		}
		_ = b.Verify(context.Background())
		_ = b.Close()
	})
}

func FuzzBackupRow(f *testing.F) {
	for _, line := range []string{`["a",1,true,0.5,"AAE="]`, `[null,null,null,null,null]`, `["\ud800",-9223372036854775808,false,"NaN",""]`, `[1]`, `[`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		again, ok := store.DecodeBackupRow(line)
		if !ok {
			return
		}
		if twice, ok := store.DecodeBackupRow(again); !ok || !bytes.Equal(again, twice) {
			t.Errorf("%q becomes %q and then %q", line, again, twice)
		}
	})
}
