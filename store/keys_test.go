package store_test

import (
	"slices"
	"strings"
	"testing"

	"nodest/store"
	"nodest/store/storetest"
)

// keyExceptions are the keys of user tables that do not start with the user, each with
// the reason.
var keyExceptions = map[string]string{
	"tokens: hash":  "a request has only the token, which identifies the user",
	"tickets: hash": "a request has only the ticket, which identifies the user",
	"jobs: id":      "the queue is the server's; its own jobs have no user",
}

// tablesWithoutUser are the tables that have no user_id.
var tablesWithoutUser = []string{"users", "search_usage", "audit_log", "model_servers"}

// Every primary, unique and foreign key of user data starts with the user, so tables
// can be split by user without a rewrite, and no reference can lead to another user's
// row.
func TestKeysStartWithTheUser(t *testing.T) {
	t.Parallel()
	for database, queries := range map[string][2]string{
		"sqlite": {
			`SELECT t.name || ': ' || GROUP_CONCAT(COALESCE(c.name, 'user_id'), ' ') -- an expression of the first column is COALESCE(user_id, x'')
				FROM sqlite_schema t JOIN pragma_index_list(t.name) i JOIN pragma_index_info(i.name) c
				WHERE t.type = 'table' AND i."unique" AND t.name NOT IN ('schema_versions', 'sqlite_stat1')
				GROUP BY t.name, i.name`,
			`SELECT t.name || ' ' || k.id || ': ' || GROUP_CONCAT(k."from", ' ') || ' > ' || k."table" || ' ' || GROUP_CONCAT(k."to", ' ')
				FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) k WHERE t.type = 'table' GROUP BY t.name, k.id`,
		},
		"postgres": {
			`SELECT t.relname || ': ' || (SELECT STRING_AGG(REPLACE(pg_get_indexdef(i.indexrelid, n, TRUE), 'COALESCE(user_id, ''00000000-0000-0000-0000-000000000000''::uuid)', 'user_id'), ' ' ORDER BY n)
					FROM generate_series(1, i.indnkeyatts) n)
				FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
				WHERE i.indisunique AND t.relnamespace = current_schema()::regnamespace AND t.relname <> 'schema_versions'`,
			`SELECT t.relname || ' ' || k.conname || ': ' || (SELECT STRING_AGG(a.attname, ' ' ORDER BY c.n) FROM UNNEST(k.conkey) WITH ORDINALITY c (num, n)
					JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = c.num) || ' > ' || p.relname || ' ' ||
				(SELECT STRING_AGG(a.attname, ' ' ORDER BY c.n) FROM UNNEST(k.confkey) WITH ORDINALITY c (num, n)
					JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = c.num)
				FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
				WHERE k.contype = 'f' AND t.relnamespace = current_schema()::regnamespace`,
		},
	} {
		t.Run(database, func(t *testing.T) {
			var db *store.DB
			if database == "postgres" {
				db = storetest.OpenPostgres(t, store.Options{})
			} else {
				db = storetest.Open(t)
			}
			ofUsers := userTables(t, db)
			keys, references := query(t, db, queries[0]), query(t, db, queries[1])
			if len(keys) < len(ofUsers) || len(references) < len(ofUsers)-len(tablesWithoutUser) {
				t.Fatalf("%d keys and %d references of %d tables were found", len(keys), len(references), len(ofUsers))
			}
			met := map[string]bool{}
			for _, key := range keys {
				table, columns, _ := strings.Cut(key, ": ")
				switch {
				case !ofUsers[table] || columns == "user_id" || strings.HasPrefix(columns, "user_id "):
				case keyExceptions[key] != "":
					met[key] = true
				default:
					t.Errorf("the key %s does not start with the user", key)
				}
			}
			if len(met) != len(keyExceptions) {
				t.Errorf("of the exceptions only these exist: %v", met)
			}
			for _, reference := range references {
				_, rest, _ := strings.Cut(reference, ": ")
				from, to, _ := strings.Cut(rest, " > ")
				if to != "users id" && !strings.HasPrefix(to[strings.Index(to, " ")+1:], "user_id ") || !strings.HasPrefix(from+" ", "user_id ") {
					t.Errorf("the foreign key %s does not start with the user", reference)
				}
			}
		})
	}
}

// userTables are the tables with a column user_id; every other table must be listed in
// tablesWithoutUser.
func userTables(t *testing.T, db *store.DB) map[string]bool {
	t.Helper()
	of := map[string]bool{}
	for table, columns := range tables(t, db) {
		if of[table] = slices.Contains(columns, "user_id"); !of[table] && !slices.Contains(tablesWithoutUser, table) {
			t.Errorf("the table %s has no user_id", table)
		}
	}
	return of
}

func query(t *testing.T, db *store.DB, text string) []string {
	t.Helper()
	rows, err := store.Query[string](db, text)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Every index has statistics in SQLite; without them the planner assumes ten rows per
// user.
func TestSQLiteHasIndexStatistics(t *testing.T) {
	t.Parallel()
	missing := query(t, storetest.Open(t), `SELECT i.name FROM sqlite_schema t JOIN pragma_index_list(t.name) i JOIN pragma_index_info(i.name) c
		WHERE t.type = 'table' AND t.name <> 'jobs' AND c.seqno = 0 AND c.name = 'user_id'
			AND i.name NOT IN (SELECT idx FROM sqlite_stat1)`)
	if len(missing) > 0 {
		t.Errorf("no statistics for %v; see the end of the first migration", missing)
	}
}
