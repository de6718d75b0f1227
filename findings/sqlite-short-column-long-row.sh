#!/usr/bin/env bash
# SQLite 3.53.4 by mattn/go-sqlite3 1.14.52, 2026-11.
# One would guess: an UPDATE of a small integer writes a page or two, whatever else is in the row, or
# that it always writes the whole row. In fact both happen: as long as the record keeps its length, only
# the pages that differ are written; as soon as the integer needs one byte more (127 to 128), every
# overflow page of the row is written again. 0 and 1 take no byte at all, so a flag is cheap and 1 to 2
# is not. A counter beside a long text rewrites the text, in steps that no query plan shows.
# Here: the lines of imported chats stood in the rows whose revision counts up; they have a table now.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
go get github.com/mattn/go-sqlite3@v1.14.52 >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"database/sql"
	"fmt"
	"os"

	_ "github.com/mattn/go-sqlite3"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	db, err := sql.Open("sqlite3", "file:x.db?_journal_mode=WAL")
	must(err)
	db.SetMaxOpenConns(1)
	exec := func(query string) { _, err := db.Exec(query); must(err) }
	exec("CREATE TABLE t (id INTEGER PRIMARY KEY, rev INTEGER, body BLOB)")
	exec("INSERT INTO t VALUES (1, 0, zeroblob(300000))")
	set := func(rev int) (pages int) { // that the update writes to the log
		var busy, all, copied int
		must(db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &all, &copied))
		exec(fmt.Sprintf("UPDATE t SET rev = %d WHERE id = 1", rev))
		must(db.QueryRow("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &copied))
		return pages
	}
	var version string
	must(db.QueryRow("SELECT sqlite_version()").Scan(&version))
	fmt.Println("SQLite", version, "– pages written by UPDATE t SET rev = … beside 300,000 bytes")
	was, changed := 0, false
	for _, c := range []struct {
		rev   int
		whole bool
	}{{1, false}, {2, true}, {100, false}, {127, false}, {128, true}, {129, false}, {32767, false}, {32768, true}} {
		pages := set(c.rev)
		fmt.Printf("%5d to %5d: %d\n", was, c.rev, pages)
		was, changed = c.rev, changed || (pages > 50) != c.whole
	}
	if changed {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("Where the integer gets longer, the whole row is written.")
}
GO
go run .
