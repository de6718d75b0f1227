#!/usr/bin/env bash
# SQLite 3.53.4 by mattn/go-sqlite3 1.14.52, 2026-11.
# One would guess: in WAL mode readers and writers do not wait for each other, so emptying the log with
# PRAGMA wal_checkpoint(TRUNCATE) beside a reader at worst does nothing. In fact the checkpoint takes the
# lock of the writer first and then waits for the reader: for its whole busy timeout every write of every
# connection waits. In the end it gives up, and that is no error but a 1 in the first column of its row:
# Exec returns nil. A PASSIVE one beside the same reader copies what it can and keeps nobody waiting.
# Here: maintenance empties the log, and a busy timeout of seconds was everybody's pause.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
go get github.com/mattn/go-sqlite3@v1.14.52 >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

const wait = 1500 * time.Millisecond // busy timeout of the checkpoint

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func open(timeout string) *sql.Conn {
	db, err := sql.Open("sqlite3", "file:x.db?_journal_mode=WAL&_busy_timeout="+timeout)
	must(err)
	conn, err := db.Conn(context.Background())
	must(err)
	return conn
}

func main() {
	ctx := context.Background()
	writer, reader, keeper := open("20000"), open("20000"), open("1500")
	exec := func(c *sql.Conn, query string) { _, err := c.ExecContext(ctx, query); must(err) }
	exec(writer, "CREATE TABLE t (x)")
	exec(writer, "INSERT INTO t VALUES (1)")
	exec(reader, "BEGIN")
	var n int
	must(reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM t").Scan(&n)) // and goes on reading
	exec(writer, "INSERT INTO t VALUES (2)")

	beside := func(mode string) (busy bool, write time.Duration) {
		done := make(chan bool)
		go func() {
			var pages, copied int
			must(keeper.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &pages, &copied))
			close(done)
		}()
		time.Sleep(300 * time.Millisecond)
		start := time.Now()
		exec(writer, "INSERT INTO t VALUES (3)")
		write = time.Since(start)
		<-done
		return busy, write
	}
	var version string
	must(writer.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version))
	fmt.Println("SQLite", version)
	passiveBusy, passive := beside("PASSIVE")
	fmt.Printf("PASSIVE beside a reader: busy %t, a write takes %.1f s\n", passiveBusy, passive.Seconds())
	truncateBusy, truncate := beside("TRUNCATE")
	fmt.Printf("TRUNCATE beside a reader: busy %t, no error, a write takes %.1f s\n", truncateBusy, truncate.Seconds())
	if passive > wait/3 || truncate < wait/2 || !truncateBusy {
		fmt.Println("The behaviour has changed.")
		os.Exit(1)
	}
	fmt.Println("The writer waits until the checkpoint has given up.")
}
GO
go run .
