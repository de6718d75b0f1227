package store

import (
	"context"
	"testing"

	"nodest/jobs"
	"nodest/nodest"
)

// What the tests of this package may do and nobody else.

// Query reads one column of texts or numbers with a statement of the test's own.
func Query[T any](db *DB, query string, args ...any) (values []T, err error) {
	err = db.backend.read(context.Background(), func(s *session) error {
		values = nil
		_, err := s.scan(s.raw(query, args...), &values)
		return err
	})
	return values, err
}

// QueryIn is Query within a transaction of the store.
func QueryIn[T any](t nodest.Tx, query string, args ...any) (values []T, err error) {
	s := t.Tx.(*tx).session
	_, err = s.scan(s.raw(query, args...), &values)
	return values, err
}

// Exec runs a statement of the test's own within a transaction of the store.
func Exec(t nodest.Tx, query string, args ...any) error {
	s := t.Tx.(*tx).session
	_, err := s.exec(s.raw(query, args...))
	return err
}

// ExecOutside runs a statement on the writing connection outside a transaction.
// No transaction may be in work.
func ExecOutside(db *DB, query string) error {
	_, err := db.backend.(*sqlite).conn.ExecContext(context.Background(), query)
	return err
}

// Commits counts the transactions of the writing connection of SQLite.
func Commits(db *DB) int64 { return db.backend.(*sqlite).writer.commits.Load() }

// Waiting counts the closures that wait for the writing connection of SQLite.
func Waiting(db *DB) int { return len(db.backend.(*sqlite).writer.queue) }

// Deadlocks counts those that PostgreSQL found in transactions of this store.
func Deadlocks(db *DB) int64 { return db.backend.(*postgres).deadlocks.Load() }

// OnPostgres says which database it is.
func OnPostgres(db *DB) bool { _, ok := db.backend.(*postgres); return ok }

// TextRoundTrip is the way of a text through a column.
func TextRoundTrip(s string) (string, error) {
	v, err := text(s).Value()
	if err != nil {
		return "", err
	}
	var out text
	err = out.Scan(v)
	return string(out), err
}

// StoredText is what a text becomes in its column.
func StoredText(s string) string {
	v, _ := text(s).Value()
	return v.(string)
}

// ParseCursor tells whether a cursor can be read.
func ParseCursor(s string) error { _, err := parseCursor(s); return err }

// ClaimMaintenance claims the job as another process does, and returns its id.
func ClaimMaintenance(t testing.TB, db *DB) (id string) {
	ctx := context.Background()
	if err := db.Enqueue(ctx, Upkeep); err != nil {
		t.Fatal(err)
	}
	claimed, err := db.ClaimJobs(ctx, "another", maintainLease, []jobs.Want{{Kind: Upkeep.Kind, Free: 1, PerUser: 1}})
	if err != nil || len(claimed) != 1 {
		t.Fatal(len(claimed), err)
	}
	return claimed[0].ID
}

// Plan is how SQLite would answer a query.
func Plan(db *DB, query string) (lines []string, err error) {
	err = db.backend.read(context.Background(), func(s *session) error {
		var rows []struct {
			ID, Parent, Notused int
			Detail              string
		}
		_, err := s.scan(s.raw("EXPLAIN QUERY PLAN "+query), &rows)
		for _, r := range rows {
			lines = append(lines, r.Detail)
		}
		return err
	})
	return lines, err
}

// Parts of statements whose plans are looked at.
var (
	EachChain  = eachChain
	OldMessage = oldMessage
	OpenOf     = openOf
)
