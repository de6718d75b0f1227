package store

import (
	"context"
	"testing"
	"time"

	"nodest/circle"
	"nodest/cognition"
	"nodest/internal/account"
	"nodest/internal/attachment"
	"nodest/internal/feedback"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/tavern"
	"nodest/knowledge"
	"nodest/memory/dream"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/store/sqldb"
	"nodest/websearch"
	"nodest/websearch/research"
)

// Access for the tests of this package only.

// Query reads one column of texts or numbers with a statement of the test's own.
func Query[T any](db *DB, query string, args ...any) (values []T, err error) {
	err = db.read(context.Background(), func(s *session) error {
		values, err = sqldb.All[T](s, query, args...)
		return err
	})
	return values, err
}

// QueryIn is Query within a transaction of the store.
func QueryIn[T any](t nodest.Tx, query string, args ...any) (values []T, err error) {
	s := t.Tx.(*tx).session
	values, err = sqldb.All[T](s, query, args...)
	return values, err
}

// Exec runs a statement of the test's own within a transaction of the store.
func Exec(t nodest.Tx, query string, args ...any) error {
	s := t.Tx.(*tx).session
	_, err := s.Exec(query, args...)
	return err
}

// Recount sets the counters of a user right, unless that was done in the last minute.
func Recount(db *DB, userID string) error {
	return db.recount(context.Background(), userID)
}

// RemoveCharacter removes what one transaction removes of the deleted characters of a user.
func RemoveCharacter(db *DB, userID string) error {
	return db.write(context.Background(), func(s *session) error {
		_, err := s.removeWhole(&characterParts, "c.user_id = ? AND c.deleted_at IS NOT NULL", userID)
		return err
	})
}

// ClaimKey is tx.ClaimKey that waits for wait at most.
func ClaimKey(t nodest.Tx, key string, wait time.Duration) error {
	_, err := t.Tx.(*tx).claimKey(key, "h", wait)
	return err
}

// AppKeys is t as package app has it for keys.
func AppKeys(t nodest.Tx) app.KeyTx { return t.Tx.(*tx).app }

// Web is t as package websearch has it.
func Web(t nodest.Tx) websearch.Tx { return t.Tx.(*tx).forWebSearch() }

// Dreams is t as package dream has it.
func Dreams(t nodest.Tx) dream.Tx { return t.Tx.(*tx).forDreams() }

// Circle is t as package circle has it.
func Circle(t nodest.Tx) circle.Tx { return t.Tx.(*tx).forCircle() }

// Attachments is t as package attachment has it.
func Attachments(t nodest.Tx) attachment.Tx { return t.Tx.(*tx).forAttachments() }

// Tavern is t as package tavern has it.
func Tavern(t nodest.Tx) tavern.Tx { return t.Tx.(*tx).forTavern() }

// Votes is t as package feedback has it.
func Votes(t nodest.Tx) feedback.Tx { return t.Tx.(*tx).votes }

// Knowledge is t as package knowledge has it.
func Knowledge(t nodest.Tx) knowledge.Tx { return t.Tx.(*tx).forKnowledge() }

// Settle empties the log of changes.
func Settle(db *DB) error { return db.backend.Settle(context.Background()) }

// Commits counts the transactions of the writing connection of SQLite.
func Commits(db *DB) int64 { return db.backend.(*sqldb.SQLite).Commits() }

// GroupPatiently lets no group of closures end because of its time.
func GroupPatiently(db *DB) { db.backend.(*sqldb.SQLite).GroupFor(time.Hour) }

// Waiting counts the closures that wait for the writing connection of SQLite.
func Waiting(db *DB) int { return db.backend.(*sqldb.SQLite).Waiting() }

// Deadlocks counts the deadlocks that PostgreSQL reported in this store's
// transactions.
func Deadlocks(db *DB) int64 { return db.backend.(*sqldb.Postgres).Deadlocks() }

// OnPostgres reports whether the database is PostgreSQL.
func OnPostgres(db *DB) bool { _, ok := db.backend.(*sqldb.Postgres); return ok }

const maintainLease = time.Minute

// Maintain does one round of maintenance, as a job runner does; ran is false if
// another process holds the job.
func Maintain(ctx context.Context, db *DB) (removed Removed, ran bool, err error) {
	if err := db.Enqueue(ctx, Upkeep); err != nil {
		return nil, false, err
	}
	if err := db.RecoverJobs(ctx, map[string]int{Upkeep.Kind: maintainAttempts}, ""); err != nil {
		return nil, false, err
	}
	claimed, err := db.ClaimJobs(ctx, op.NewID(), maintainLease, []jobs.Want{{Kind: Upkeep.Kind, Free: 1, PerUser: 1}})
	if err != nil || len(claimed) == 0 {
		return nil, false, err
	}
	removed = Removed{}
	if err := db.maintain(ctx, claimed[0], removed); err != nil {
		return removed, true, err
	}
	return removed, true, db.EndJob(ctx, claimed[0], jobs.Outcome{State: jobs.Done})
}

// ClaimMaintenance claims the job as another process would, and returns its id.
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

// Plan returns SQLite's query plan.
func Plan(db *DB, query string) (lines []string, err error) {
	err = db.read(context.Background(), func(s *session) error {
		lines, err = sqldb.Map(s, func(r *struct {
			ID, Parent, Notused int
			Detail              string
		},
		) string {
			return r.Detail
		}, "EXPLAIN QUERY PLAN "+query)
		return err
	})
	return lines, err
}

// Parts of statements whose plans are tested.
var (
	EachChain    = eachChain
	UpChain      = upChain
	ChildrenOf   = childrenOf
	HasChild     = hasChild
	BacklogQuery = backlogQuery
	ShownText    = shownText
	OldMessage   = oldMessage

	RangesOf         = rangesOf
	RangesOfGaps     = rangesOfGaps
	WordsOf          = wordsOf
	TextsOfRange     = textsOfRange
	RevisionsOfRange = revisionsOfRange

	LatestComments = latestComments
	AllComments    = allComments
)

// TablesOfEditions and TablesOfUsers are tables with what was made of documents: those of which a
// file's rows are dropped, and a deleted user's, in small transactions.
func TablesOfEditions() (names []string) {
	for _, t := range indexTables {
		names = append(names, t.name)
	}
	return names
}

func TablesOfUsers() (names []string) {
	tables, _ := userTables(context.Background())
	for _, t := range tables {
		names = append(names, t.name)
	}
	return names
}

// WaitForLost lets the time pass that a process has to take its lock again.
func WaitForLost(db *DB) {
	db.lost.mu.Lock()
	defer db.lost.mu.Unlock()
	for process := range db.lost.since {
		db.lost.since[process] = db.lost.since[process].Add(-lostAfter)
	}
}

// Present reports whether a process holds its lock.
func Present(db *DB, process string) (yes bool, err error) {
	err = db.read(context.Background(), func(s *session) error {
		gone, err := s.Has("SELECT 1 FROM (SELECT CAST(? AS TEXT) AS process) one WHERE "+sqldb.Gone("process"), process)
		yes = !gone
		return err
	})
	return yes, err
}

// CutPresence has PostgreSQL close the connection that holds the lock of a process.
func CutPresence(db *DB, process string) error {
	return db.write(context.Background(), func(s *session) error {
		return s.Require("lock", "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"+
			" AND (CAST(classid AS BIGINT) << 32 | CAST(objid AS BIGINT)) = hashtextextended('nodest process ' || ?, 0)", process)
	})
}

// SetFree says how much room the disk has.
func (db *DB) SetFree(free func() int64) { db.free = func(string) int64 { return free() } }

// Options are those with which the database was opened.
func (db *DB) Options() Options { return db.opts }

// SetQuotas changes the limits.
func (db *DB) SetQuotas(q account.Quotas) { db.opts.Quotas = q }

// PurgeChat removes what one transaction removes of the user's deleted chats, and returns the number of rows.
func PurgeChat(db *DB, userID string) (n int64, err error) {
	err = db.write(context.Background(), func(s *session) error {
		n, err = s.purgeChat(userID)
		return err
	})
	return n, err
}

// Cognition returns the transaction as package cognition has it.
func Cognition(t nodest.Tx) cognition.Tx { return t.Tx.(*tx).forCognition() }

// Research returns the transaction as package research has it.
func Research(t nodest.Tx) research.Tx { return t.Tx.(*tx).forResearch() }

// MostAudited is how many rows of the audit log one user may cause in a day.
const MostAudited = mostAudited

// LeftOut are the tables that no file of a user has.
var LeftOut = leftOut
