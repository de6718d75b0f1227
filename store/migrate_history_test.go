package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"nodest/migrations"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// another names an empty database of the same kind.
func (e *env) another() store.Options {
	e.Helper()
	if store.OnPostgres(e.db) {
		return store.Options{Log: quiet, URL: storetest.PostgresURL(e.T)}
	}
	return store.Options{Log: quiet, Dir: e.TempDir()}
}

// before opens the database that o names with the schema of a version.
func (e *env) before(o store.Options, version int64) *sql.DB {
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

// TestAFilledDatabaseGetsAHistory migrates a conversation of the first schema,
// with branches, deleted messages, edits, and a second root.
func TestAFilledDatabaseGetsAHistory(t *testing.T) {
	conform(t, func(e *env) {
		o := e.another()
		raw := e.before(o, 1)
		run := func(statement string, args ...any) {
			e.Helper()
			if _, err := raw.Exec(fmt.Sprintf(statement, args...)); err != nil {
				e.Fatal(err)
			}
		}
		run("INSERT INTO users VALUES ('u', 'Ada', 'ada', 'member', 0, 0, '', 1)")
		run("INSERT INTO streams VALUES ('u', 'e', 0)")
		for _, c := range []string{"c", "other"} {
			run(`INSERT INTO conversations VALUES ('%s', 'u', '', '', '', 'm6', NULL, '{}', FALSE, NULL, 20, NULL, 9, 1, 1, 1, NULL)`, c)
			for version := 1; version <= 20; version++ {
				run("INSERT INTO conversation_states VALUES ('%s', %d, 'u', 'm6', '', NULL, '{}', 1, 1)", c, version)
			}
		}
		tree := []struct {
			parent, deleted string
			depth, chain    int64
			states          string // versions and those before
		}{
			1: {"", "NULL", 1, 1, "2-0"},
			2: {"m1", "NULL", 2, 1, "3-0 9-3 10-9 20-10"},
			3: {"m2", "5", 3, 1, "3-0 20-3"}, // the first child, deleted
			4: {"m2", "NULL", 3, 4, "4-0"},
			5: {"m3", "NULL", 4, 1, "5-0"},
			6: {"m4", "NULL", 4, 4, "6-0"},
			7: {"m2", "NULL", 3, 7, "7-0"},
			8: {"", "NULL", 1, 8, "8-0"},
			9: {"m8", "NULL", 2, 8, "9-0"},
		}
		for seq, m := range tree[1:] {
			seq++
			run(`INSERT INTO messages VALUES ('m%d', 'u', 'c', '%s', '', %d, 'user', '', '', FALSE, FALSE, 0, 1, 'complete', NULL, '', NULL, 1, NULL, %s)`,
				seq, m.parent, seq, m.deleted)
			run("INSERT INTO swipes VALUES ('m%d', 's', 0, 1, 'r%d', FALSE, 1)", seq, seq)
			run("INSERT INTO revisions VALUES ('r%d', 'u', 'm%d', 's', 1, 'text %d', '', NULL, '', '', NULL, '', 1)", seq, seq, seq)
			for state := range strings.FieldsSeq(m.states) {
				version, _, _ := strings.Cut(state, "-")
				run("INSERT INTO message_states VALUES ('c', 'm%d', %s, 'u', 1, 'r%d', 'complete', %s)",
					seq, version, seq, map[bool]string{true: "TRUE", false: "FALSE"}[seq == 3 && version == "20"])
			}
		}
		if err := raw.Close(); err != nil {
			e.Fatal(err)
		}

		db, err := store.Open(context.Background(), o)
		if err != nil {
			e.Fatal(err)
		}
		defer db.Close()
		for seq, m := range tree[1:] {
			seq++
			places, err := store.Query[string](db, "SELECT CAST(depth AS TEXT) || ' ' || CAST(chain AS TEXT) FROM messages WHERE seq = ?", seq)
			if err != nil {
				e.Fatal(err)
			}
			e.equal(fmt.Sprint("place of ", seq), places, []string{fmt.Sprint(m.depth, " ", m.chain)})
			states, err := store.Query[string](db, "SELECT CAST(version AS TEXT) || '-' || CAST(previous AS TEXT)"+
				" FROM message_states WHERE message_id = ? ORDER BY version", fmt.Sprint("m", seq))
			if err != nil {
				e.Fatal(err)
			}
			e.equal(fmt.Sprint("states of ", seq), strings.Join(states, " "), m.states)
		}
		err = db.Update(context.Background(), "u", func(tx nodest.Tx) error {
			n, err := tx.Count("c", "m5")
			if err != nil {
				return err
			}
			e.equal("count", n, 3)
			c, err := tx.LockConversation("c")
			if err != nil {
				return err
			}
			changed, err := tx.Rewind(c, 12, "m5")
			if err != nil {
				return err
			}
			e.equal("what came back", texts(changed), []string{"text 3"})
			c.Version++
			return tx.UpdateConversation(c)
		})
		if err != nil {
			e.Fatal(err)
		}
	})
}

// TestAJobThatRunsKeepsItsFollower migrates jobs of the schema in which a running one
// had the time and the payload of its follower.
func TestAJobThatRunsKeepsItsFollower(t *testing.T) {
	conform(t, func(e *env) {
		o := e.another()
		raw := e.before(o, 5)
		run := func(statement string) {
			e.Helper()
			if _, err := raw.Exec(statement); err != nil {
				e.Fatal(err)
			}
		}
		run("INSERT INTO users VALUES ('u', 'Ada', 'ada', 'member', 0, 0, '', 1)")
		run("INSERT INTO streams VALUES ('u', 'e', 0)")
		for _, job := range []struct {
			id, state string
			notBefore int64
		}{{"followed", "running", 60_000}, {"alone", "running", 0}, {"waits", "queued", 60_000}} {
			run(fmt.Sprintf("INSERT INTO jobs VALUES ('%s', 'a.b', 'u', '%[1]s', '\"%[1]s\"', '%s', NULL, 1, %d, 'p', 0, NULL, 1, 1)",
				job.id, job.state, job.notBefore))
		}
		if err := raw.Close(); err != nil {
			e.Fatal(err)
		}
		db, err := store.Open(context.Background(), o)
		if err != nil {
			e.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // nothing was left to write
		err = db.View(context.Background(), "u", func(tx nodest.Tx) error {
			for id, want := range map[string]string{
				"followed": `"followed", then "followed" at 60000`, "alone": `"alone"`, "waits": `"waits"`,
			} {
				j, err := tx.Job(id)
				if err != nil {
					return err
				}
				got := string(j.Payload)
				if j.Next != nil {
					got += fmt.Sprint(", then ", string(j.Next.Payload), " at ", j.Next.NotBefore.UnixMilli())
				}
				e.equal("job", got, want)
			}
			return nil
		})
		if err != nil {
			e.Fatal(err)
		}
	})
}
