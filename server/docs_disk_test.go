package server

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"nodest/store"
	"nodest/store/sqldb"
	"nodest/store/storetest"
)

// diskPage shows how to read the database by hand.
const diskPage = "../docs/disk.md"

// exampleIDs are the ids of the page's table, by the subject whose id each is.
var exampleIDs = regexp.MustCompile(`(?m)^\| (user|character|chat|message|generation) \| ([0-9a-f-]{36}) \|$`)

// Every SQL statement of the page finds rows in a database with a chat, on the database that it is for.
func TestTheStatementsOfTheDiskPageFindRows(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		testDiskPage(t, "sqlite", store.Options{Dir: dir}, "sqlite3", filepath.Join(dir, sqldb.File))
	})
	t.Run("psql", func(t *testing.T) {
		url := storetest.PostgresURL(t)
		testDiskPage(t, "psql", store.Options{Dir: t.TempDir(), URL: url}, "pgx", url)
	})
}

func testDiskPage(t *testing.T, tool string, data store.Options, driver, source string) {
	t.Helper()
	h := newTestServerOf(t, parts{data: &data}, nil)
	chat := h.newChat()
	h.addMemory(h.memoriesOf(chat), "Mia keeps bees.", `,"pinned":true`)
	_, reply := h.turn(chat, "What do you know of my bees?", "That you keep some.")
	message := h.rest("GET", "/messages/"+reply, "").wants(t, 200)
	ids := map[string]string{
		"user": h.user.ID, "character": h.characterOf(chat), "chat": chat, "message": reply, "generation": stringAt(message, "generationId"),
	}

	text, err := os.ReadFile(diskPage)
	h.must(err)
	page := string(text)
	shown := exampleIDs.FindAllStringSubmatch(page, -1)
	if len(shown) != len(ids) {
		t.Fatalf("the page has the example ids %q", shown)
	}
	for _, m := range shown {
		page = strings.ReplaceAll(page, m[2], ids[m[1]])
		page = strings.ReplaceAll(page, strings.ReplaceAll(m[2], "-", ""), strings.ReplaceAll(ids[m[1]], "-", ""))
	}
	db, err := sql.Open(driver, source)
	h.must(err)
	defer db.Close() //nolint:errcheck // it only reads
	statements := regexp.MustCompile("(?ms)^```sql "+tool+"$(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(statements) < 8 {
		t.Errorf("the page has %d statements for %s", len(statements), tool)
	}
	for _, statement := range statements {
		if found, err := findsRows(t, db, statement[1]); err != nil || !found {
			t.Errorf("finds rows: %t, %v:%s", found, err, statement[1])
		}
	}
}

func findsRows(t *testing.T, db *sql.DB, statement string) (bool, error) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement)
	if err != nil {
		return false, err
	}
	defer rows.Close() //nolint:errcheck // Err has what matters
	return rows.Next(), rows.Err()
}
